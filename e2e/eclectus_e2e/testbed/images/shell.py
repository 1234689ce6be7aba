"""Run a program of the machine for a build step; its last words go into the error."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import SYSTEM_PATH

_WORDS_MAX = 2000  # characters of a failed program's output that are shown


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """What the program printed; raises BuildError when it fails."""
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "PATH": SYSTEM_PATH, **(environment or {})},
    )
    if ended.returncode:
        words = ended.stdout.strip()[-_WORDS_MAX:]
        raise BuildError(f"`{' '.join(map(str, command))}` ended with code {ended.returncode}:\n{words}")
    return ended.stdout


def run_inside(root: Path, *command: str) -> str:
    """The same, in an unpacked image."""
    return run("chroot", root, *command, environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
