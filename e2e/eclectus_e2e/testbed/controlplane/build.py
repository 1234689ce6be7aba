"""Compiles programs from Go modules into the user's cache: the control plane, and what real nodes run.

The name of the cache folder is a hash of all inputs (go.mod, go.sum, sources, flags, platform). A new version
gets a new folder, and an existing one is never modified.
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

KUBERNETES_VERSION = "v1.37.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_VERSION = "k8s.io/component-base/version"


def flags(version: str = KUBERNETES_VERSION) -> tuple[str, ...]:
    """Flags of `go build`; `version` is that of Kubernetes, such as v1.37.2."""
    major, minor, _ = version.removeprefix("v").split(".")
    # Without -X clients see version v0.0.0-master; -s -w omits 140 MB of debug information.
    linker = (
        f"-s -w -X {_VERSION}.gitVersion={version} -X {_VERSION}.gitMajor={major}"
        f" -X {_VERSION}.gitMinor={minor} -X {_VERSION}.gitTreeState=clean"
    )
    return ("-mod=readonly", "-trimpath", "-buildvcs=false", "-v", "-ldflags", linker)


@dataclass(frozen=True)
class GoPrograms:
    """Programs (name to package) of one Go module, a folder with go.mod and go.sum.

    `folder` is their folder in the cache; `title`, `build_time` and `packages`, about how many are compiled
    when nothing of them is in Go's cache, are shown meanwhile. `version`: of Kubernetes, if they are of it.
    """

    title: str
    build_time: str
    folder: str
    packages: int
    module: Path
    programs: Mapping[str, str]
    version: str = KUBERNETES_VERSION

    @property
    def batches(self) -> list[tuple[str, list[str]]]:
        """(target, packages) of each `go build` call.

        One call can build several programs only when they have the names of their packages' folders.
        """
        same_name = {name: path for name, path in self.programs.items() if path.endswith(f"/{name}")}
        others = self.programs.items() - same_name.items()
        return [("", [*same_name.values()]), *((name, [path]) for name, path in sorted(others))]


def control_plane(module: Path, version: str) -> GoPrograms:
    """The programs of a control plane: PROGRAMS and etcd."""
    return GoPrograms(
        title=f"the control plane {version}",
        build_time="5 minutes on two idle cores, 10 on a busy machine",
        folder="controlplane",
        packages=2700,
        module=module,
        programs={
            **{name: f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS},
            "etcd": "go.etcd.io/etcd/server/v3",
        },
        version=version,
    )


CONTROL_PLANE = control_plane(GO_MODULE, KUBERNETES_VERSION)


def binaries(wanted: GoPrograms = CONTROL_PLANE) -> Path:
    """The folder with the compiled programs; of the control plane: PROGRAMS and etcd.

    Compiles them on first use; a concurrent caller waits. Raises BuildError, or MachineError when no Go
    toolchain can be found or fetched.
    """
    folder = _folder(wanted)
    if (ready := built(wanted)) is not None:
        return ready
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / "lock", wanted.title):
        if built(wanted) is None:
            _build_into(folder, wanted)
    return folder / "bin"


def built(wanted: GoPrograms = CONTROL_PLANE) -> Path | None:
    """The folder that `binaries` returns, or None if it would have to compile them."""
    ready = _folder(wanted) / "bin"
    return ready if ready.is_dir() else None


def _folder(wanted: GoPrograms) -> Path:
    return cache_directory() / wanted.folder / build_key(wanted.module, wanted.version)


def build_key(module: Path = GO_MODULE, version: str = KUBERNETES_VERSION) -> str:
    """A short hash of go.mod, go.sum, the module's own sources, the flags and the platform."""
    digest = hashlib.sha256()
    sources = sorted(path.name for path in module.glob("*.go"))
    for part in ((module / name).read_bytes() for name in ("go.mod", "go.sum", *sources)):
        digest.update(len(part).to_bytes(8, "big") + part)
    digest.update("\0".join((*flags(version), platform.system(), platform.machine())).encode())
    return digest.hexdigest()[:16]


def _build_into(folder: Path, wanted: GoPrograms) -> None:
    """Compile into a temporary folder and rename it, so that an existing `bin` is complete."""
    for leftover in folder.glob("building-*"):  # of a killed run; this one holds the lock
        shutil.rmtree(leftover)
    building = Path(tempfile.mkdtemp(prefix="building-", dir=folder))
    go = str(go_program())
    title = f"compiling {wanted.title} from Go modules (once)"
    with Progress(title, expected=wanted.build_time) as progress:
        shown = _Counts(progress, wanted.packages)
        for target, packages in wanted.batches:
            command = [go, "build", *flags(wanted.version), "-o", f"{building}/{target}", *packages]
            _go_build(command, wanted.module, folder / "build.log", shown)
    building.rename(folder / "bin")


def _go_build(command: list[str], module: Path, log: Path, shown: "_Counts") -> None:
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
            _follow_output(compiler.stdout, out, shown)
        except BaseException:  # also Ctrl-C: the compiler must not outlive this process
            compiler.kill()
            raise
    if compiler.returncode:
        tail = "".join(log.read_text().splitlines(keepends=True)[-25:])
        raise BuildError(f"`go build` failed with exit code {compiler.returncode}; the end of {log}:\n{tail}")


def _follow_output(lines: IO[str] | None, log: IO[str], shown: "_Counts") -> None:
    """Copy the compiler's output to the log and show counts (`-v` prints one package per line)."""
    assert lines is not None  # noqa: S101 - Popen was called with a pipe
    for line in lines:
        log.write(line)
        shown.add(line.strip())


class _Counts:
    """Shows how many modules were downloaded and packages compiled, over all calls of `go build`."""

    def __init__(self, progress: Progress, packages: int) -> None:
        self._progress, self._packages = progress, packages
        self._downloaded = self._compiled = 0

    def add(self, line: str) -> None:
        """Count one line of the compiler's output."""
        if line.startswith("go: "):
            self._downloaded += line.startswith("go: downloading")
            self._progress.update(f"{self._downloaded} modules downloaded")
        else:
            self._compiled += 1
            self._progress.update(f"{self._compiled} of about {self._packages} packages compiled, {line}")
