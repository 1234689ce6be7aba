"""Runs programs of the machine for build steps."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import SYSTEM_PATH

_MAX_OUTPUT_CHARACTERS = 2000  # of a failed program's output in the error


def run(
    *command: str | Path, environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> str:
    """Run a program, in a directory or in the caller's; returns its output.

    Raises BuildError with the end of the output when it fails.
    """
    ended = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "PATH": SYSTEM_PATH, **(environment or {})},
    )
    if ended.returncode:
        output = ended.stdout.strip()[-_MAX_OUTPUT_CHARACTERS:]
        raise BuildError(f"`{' '.join(map(str, command))}` ended with code {ended.returncode}:\n{output}")
    return ended.stdout


def run_inside(root: Path, *command: str) -> str:
    """The same with chroot, in an unpacked image."""
    return run("chroot", root, *command, environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
