"""Programs compiled once from Go modules into the user's cache: the control plane's, real nodes' too.

The folder's name is a hash of everything that decides what comes out (go.mod, go.sum, flags,
machine), so a changed version is a new folder and an old one is never half replaced.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import GO_MODULE, cache_directory
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.toolchain import go_program
from eclectus_e2e.testbed.locks import file_lock

KUBERNETES_VERSION = "v1.36.3"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_VERSION = "k8s.io/component-base/version"
# Without the stamp clients see v0.0.0-master; -s -w leaves out 140 MB that only a debugger reads.
_STAMP = (
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1"
    f" -X {_VERSION}.gitMinor=36 -X {_VERSION}.gitTreeState=clean"
)
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-v", "-ldflags", _STAMP)


@dataclass(frozen=True)
class GoPrograms:
    """Programs (name to package) of one Go module, which is a folder with go.mod and go.sum.

    They lie in `folder` of the cache; `title` and `minutes` are told while they are built.
    """

    title: str
    build_time: str
    folder: str
    module: Path
    programs: Mapping[str, str]

    @property
    def batches(self) -> list[tuple[str, list[str]]]:
        """Targets and their packages, one `go build` each.

        Only programs that are called like their package's folder can be built together.
        """
        alike = {name: path for name, path in self.programs.items() if path.endswith(f"/{name}")}
        others = self.programs.items() - alike.items()
        return [("", [*alike.values()]), *((name, [path]) for name, path in sorted(others))]


CONTROL_PLANE = GoPrograms(
    title="the control plane",
    build_time="about 5 minutes",
    folder="controlplane",
    module=GO_MODULE,
    programs={
        **{name: f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS},
        "etcd": "go.etcd.io/etcd/server/v3",
    },
)


def binaries(product: GoPrograms = CONTROL_PLANE) -> Path:
    """The folder with a product's programs; the control plane's are PROGRAMS and etcd.

    Builds them on first use; a second caller meanwhile waits. Raises BuildError, or MachineError when
    there is no Go to be had.
    """
    home = cache_directory() / product.folder / build_key(product.module)
    ready = home / "bin"
    if ready.is_dir():
        return ready
    home.mkdir(parents=True, exist_ok=True)
    with file_lock(home / "lock", product.title):
        if not ready.is_dir():
            _build_into(home, product)
    return ready


def build_key(module: Path = GO_MODULE) -> str:
    """A short hash of go.mod, go.sum, the flags and the machine's kind."""
    digest = hashlib.sha256()
    for part in ((module / "go.mod").read_bytes(), (module / "go.sum").read_bytes()):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update("\0".join((*FLAGS, platform.system(), platform.machine())).encode())
    return digest.hexdigest()[:16]


def _build_into(home: Path, product: GoPrograms) -> None:
    """Compile beside the final place and rename, so that `bin` exists only when it is whole."""
    for leftover in home.glob("building-*"):  # a killed run's; we hold the lock
        shutil.rmtree(leftover)
    building = Path(tempfile.mkdtemp(prefix="building-", dir=home))
    go = str(go_program())
    title = f"building {product.title} from Go modules (once; {product.build_time})"
    with Progress(title) as progress:
        for target, packages in product.batches:
            command = [go, "build", *FLAGS, "-o", f"{building}/{target}", *packages]
            _go_build(command, product.module, home / "build.log", progress)
    building.rename(home / "bin")


def _go_build(command: list[str], module: Path, log: Path, progress: Progress) -> None:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": ""}
    with (
        log.open("a") as out,
        subprocess.Popen(
            command,
            cwd=module,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as compiler,
    ):
        try:
            _tell(compiler.stdout, out, progress)
        except BaseException:  # Ctrl-C included: no compiler may outlive us and keep the cores busy
            compiler.kill()
            raise
    if compiler.returncode:
        tail = "".join(log.read_text().splitlines(keepends=True)[-25:])
        raise BuildError(f"`go build` failed with exit code {compiler.returncode}; the end of {log}:\n{tail}")


def _tell(lines: IO[str] | None, log: IO[str], progress: Progress) -> None:
    """Copy the compiler's output to the log and count what it names (`-v`: one package a line)."""
    assert lines is not None  # noqa: S101 - Popen was given a pipe
    downloaded = compiled = 0
    for line in lines:
        log.write(line)
        downloaded += line.startswith("go: downloading")
        compiled += not line.startswith("go: ")
        progress.update(f"{downloaded} modules fetched, {compiled} packages compiled")
