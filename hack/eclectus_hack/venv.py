"""The command `venv`: creates the Python environment of this checkout from the locked versions.

It runs before any package is installed, so it imports the standard library and `eclectus_e2e.progress` only.
"""

import argparse
import os
import subprocess
import venv as standard
from collections.abc import Iterable, Iterator
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

LOCK = CHECKOUT / "requirements" / "dev.lock"
_TAIL_LINES = 25


def venv(arguments: list[str]) -> int:
    """Create the environment, or bring it up to date. Raises BuildError with the end of pip's output."""
    parser = argparse.ArgumentParser("eclectus_hack venv", description=venv.__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    packages = _packages(LOCK)
    title = f"creating {folder} with {packages} Python packages of locked versions"
    with Progress(title, expected="about a minute, longer on a busy machine") as progress:
        create(folder, LOCK, progress)
        _pip(folder, ["--no-deps", "--no-build-isolation", "--editable", str(CHECKOUT)], progress, packages)
    return 0


def create(folder: Path, lock: Path, progress: Progress) -> None:
    """Create an environment with the packages of a lock. Raises BuildError with the end of pip's output."""
    progress.update("an empty environment")
    standard.create(folder, with_pip=True, symlinks=True)
    _pip(folder, ["--require-hashes", "-r", str(lock)], progress, _packages(lock))


def details(lines: Iterable[str], packages: int) -> Iterator[str]:
    """What `pip install` is doing after each line of its output."""
    fetched, doing = 0, "asking the package index"
    for line in lines:
        if line.startswith("Collecting "):
            fetched += 1
            doing = f"{fetched} of {packages} packages fetched"
        elif line.startswith("Installing collected packages"):
            doing = "writing the packages"
        yield doing


def _pip(folder: Path, arguments: list[str], progress: Progress, packages: int) -> None:
    # Compiling all modules would take a third of the time; Python compiles those that are used.
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--progress-bar=off",
        "--no-compile",
        *arguments,
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pip:
        lines: list[str] = []
        for detail in details(_kept(pip.stdout or (), lines), packages):
            progress.update(detail)
    if pip.returncode:
        tail = "".join(lines[-_TAIL_LINES:])
        raise BuildError(f"`{' '.join(command)}` ended with code {pip.returncode}:\n{tail}")


def _packages(lock: Path) -> int:
    return lock.read_text().count("==")


def _kept(lines: Iterable[str], kept: list[str]) -> Iterator[str]:
    for line in lines:
        kept.append(line)
        yield line
