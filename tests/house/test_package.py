"""The distribution: its programs start, its versions agree, and images install locked packages only."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

import eclectus
from eclectus.cli.ui.server import FILES
from eclectus_e2e.paths import CHART, CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
SCRIPTS = PROJECT["project"]["scripts"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_program_starts(name):
    program = Path(sys.executable).parent / name
    result = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    if name.startswith("kubectl_complete-"):  # --help is a word to complete
        assert result.stdout.endswith(":4\n")
    else:
        assert "Usage" in result.stdout
        assert "scheduler" in result.stdout


def test_every_program_prints_its_version():
    program = Path(sys.executable).parent / "eclectus"
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert PROJECT["project"]["version"] in result.stdout


def test_the_installed_programs_are_those_of_the_project():
    installed = {each.name: each.value for each in entry_points(group="console_scripts")}
    assert SCRIPTS.items() <= installed.items()


def test_version_is_the_same_everywhere():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    changelog = (CHECKOUT / "CHANGELOG.md").read_text()
    version = PROJECT["project"]["version"]
    assert (eclectus.__version__, chart["appVersion"]) == (version, version)
    assert re.search(rf"^## \[(Unreleased|{re.escape(version)})\]", changelog, flags=re.MULTILINE)


def test_the_wheel_has_the_files_of_the_page():
    included = {each.distribution_path for each in WheelBuilder(str(CHECKOUT)).recurse_included_files()}
    assert {f"eclectus/cli/ui/static/{name}" for name, _ in FILES.values()} <= included
    assert "eclectus/cli/ui/server.py" in included


def test_the_licence_file_is_the_declared_one():
    assert "Apache License" in (CHECKOUT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"


def locked(name):
    """Versions by package of a lock file, whose every entry must have a hash."""
    text = (CHECKOUT / "requirements" / name).read_text()
    entries = re.findall(
        r"^([a-z0-9_.-]+)==([^\s;]+)(.*?)(?=^[a-z0-9]|\Z)", text, flags=re.MULTILINE | re.DOTALL
    )
    assert all("--hash=sha256:" in rest for _, _, rest in entries)
    return {package: version for package, version, _ in entries}


def test_the_lock_of_the_flow_solver_is_the_extra_alone():
    (wanted,) = PROJECT["project"]["optional-dependencies"]["flow"]
    ((package, version),) = locked("flow.lock").items()
    assert wanted.startswith(f"{package}>=")
    assert version.startswith(re.search(r">=([\d.]+)", wanted)[1])


def test_images_and_tests_use_the_same_package_versions():
    live, operator, dev = locked("live.lock"), locked("operator.lock"), locked("dev.lock")
    assert {"aiohttp", "numpy", "uvloop"} <= live.keys()
    assert {"aiohttp", "kopf", "msgspec"} <= operator.keys()
    assert live.items() <= dev.items()
    assert operator.items() <= dev.items()
    assert "numpy" not in operator, "71 MB, more than all the rest of it together"
    plugin = locked("cli.lock")
    assert {"aiohttp", "click", "kubernetes", "msgspec"} <= plugin.keys()
    assert "numpy" not in plugin, "eclectus_hack.release.kubectl_plugin says why"
    assert plugin.items() <= dev.items()
    assert not live.keys() & {"pytest", "mypy", "helm-python-sdk", "kopf", "kubernetes"}
    assert not operator.keys() & {"pytest", "mypy", "helm-python-sdk", "kubernetes"}
