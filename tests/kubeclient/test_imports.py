"""What importing the client costs: the operator uses it, and must stay small."""

import subprocess
import sys

MODULES = ["addresses", "api_errors", "client", "credentials", "election", "leadership", "timing"]
MODULES += ["serving.certificate", "serving.access", "serving.health", "serving.pages"]
HEAVY = ["cryptography", "kubernetes", "numpy", "yaml"]  # not in the operator's image, or large
ABOVE = ["eclectus.config", "eclectus.engine", "eclectus.live"]


def imported_by(*modules):
    """The names of all modules that a new Python has imported after these."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_client_imports_nothing_heavy_and_nothing_above_it():
    found = imported_by(*(f"eclectus.kubeclient.{name}" for name in MODULES))
    assert found.isdisjoint(HEAVY + ABOVE)


def test_the_api_imports_the_model_alone():
    modules = ["common", "names", "node_probe", "node_profile"]
    found = {
        name for name in imported_by(*(f"eclectus.api.{each}" for each in modules)) if "eclectus" in name
    }
    packages = {".".join(name.split(".")[:2]) for name in found}
    assert packages == {"eclectus", "eclectus.api", "eclectus.model"}
