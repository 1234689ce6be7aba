"""The cluster that the test bed uses: an existing one, kind, or a control plane built here.

The environment variable E2E selects it: `existing` (with KUBECONFIG), `kind`, or unset.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from eclectus_e2e.errors import MachineError, UsageError
from eclectus_e2e.paths import CHECKOUT, KIND_CONFIG, cache_directory
from eclectus_e2e.testbed.controlplane.plane import (
    DEFAULT_OPTIONS,
    MARKER_FILE,
    ControlPlane,
    PlaneOptions,
    remove,
)
from eclectus_e2e.testbed.controlplane.toolchain import go_program

CHOICES = ("", "kind", "existing")
KIND = "sigs.k8s.io/kind@v0.33.0"  # with its default node image


@dataclass(frozen=True)
class ExternalCluster:
    """kind or an existing cluster: its API server cannot be restarted here, and its pids are unknown."""

    kubeconfig: Path
    url: str

    def environment(self) -> dict[str, str]:
        """Environment variables for a shell that uses the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}


Cluster = ControlPlane | ExternalCluster


def choice(environment: Mapping[str, str] = os.environ) -> str:
    """The value of E2E. Raises UsageError for an unknown one."""
    chosen = environment.get("E2E", "")
    if chosen not in CHOICES:
        raise UsageError(
            f"E2E={chosen}: choose `kind` or `existing`, or leave it unset to build a control plane"
        )
    return chosen


@contextmanager
def opened(directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> Iterator[Cluster]:
    """The selected cluster within a `with` block; one that was started here is stopped after it."""
    cluster = start(directory, options)
    try:
        yield cluster
    finally:
        end(directory)


def start(directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> Cluster:
    """Start the selected cluster, or connect to the existing one."""
    match choice():
        case "existing":
            _create_directory(directory)
            return existing_cluster()
        case "kind":
            return _start_kind(directory)
        case _:
            return ControlPlane.start(directory, options)


def end(directory: Path) -> list[str]:
    """Stop what was started for a directory and delete the directory; returns the names of what ran."""
    ended = _end_kind(directory) if (directory / "kind").exists() else []
    return ended + remove(directory)


def existing_cluster(environment: Mapping[str, str] = os.environ) -> ExternalCluster:
    """The cluster that KUBECONFIG names."""
    file = environment.get("KUBECONFIG", "")
    if not file or not Path(file).is_file():
        raise UsageError(f"E2E=existing needs KUBECONFIG to name one kubeconfig file; it is {file!r}")
    return _external(Path(file))


def _external(kubeconfig: Path) -> ExternalCluster:
    content = yaml.safe_load(kubeconfig.read_text())
    current = content["current-context"]
    contexts = {entry["name"]: entry["context"] for entry in content["contexts"]}
    clusters = {entry["name"]: entry["cluster"] for entry in content["clusters"]}
    return ExternalCluster(kubeconfig.resolve(), clusters[contexts[current]["cluster"]]["server"])


def _create_directory(directory: Path) -> None:
    end(directory)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    (directory / MARKER_FILE).touch()


def _start_kind(directory: Path) -> ExternalCluster:
    _require_docker()
    kind = _kind_program()
    _create_directory(directory)
    (directory / "kind").write_text(_kind_name(directory))
    kubeconfig = directory / "admin.kubeconfig"
    command = [kind, "create", "cluster", "--name", _kind_name(directory), "--config", str(KIND_CONFIG)]
    subprocess.run([*command, "--kubeconfig", str(kubeconfig), "--wait", "180s"], check=True)
    return _external(kubeconfig)


def _end_kind(directory: Path) -> list[str]:
    name = (directory / "kind").read_text()
    kubeconfig = directory / "admin.kubeconfig"
    subprocess.run(
        [_kind_program(), "delete", "cluster", "--name", name, "--kubeconfig", str(kubeconfig)], check=True
    )
    return [f"kind cluster {name}"]


def _kind_name(directory: Path) -> str:
    """A name derived from the directory, so that two checkouts can run side by side."""
    return "eclectus-" + hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:8]


def _require_docker() -> None:
    advice = "E2E=kind needs a running Docker. Without E2E a control plane is built here instead."
    docker = shutil.which("docker")
    if not docker:
        raise MachineError(f"no `docker` on the PATH. {advice}")
    info = subprocess.run([docker, "info"], capture_output=True, text=True, check=False)
    if info.returncode:
        raise MachineError(f"`docker info` failed: {info.stderr.strip()}\n{advice}")


def _kind_program() -> str:
    """The machine's kind, otherwise one built from its Go module into the user's cache."""
    on_path = shutil.which("kind")
    if on_path:
        return on_path
    folder = cache_directory() / "kind" / KIND.rpartition("@")[2]
    if not (folder / "kind").exists():
        environment = {**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        subprocess.run([str(go_program()), "install", KIND], check=True, env=environment, cwd=CHECKOUT.anchor)
    return str(folder / "kind")
