"""A copy of the repository, for commands that keep their files in the checkout that contains them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.processes import recorded

COPIED = ("bench", "e2e")  # `make report` writes into bench
NOT_LINKED = (".git", ".venv", "build", *COPIED)


class Checkout:
    """`e2e` is copied, because its modules find the checkout by their own path; the rest is linked.

    So a developer's own cluster in build/cluster is not touched. Its `.venv` is the running Python's
    environment, which make takes as complete.
    """

    def __init__(self, directory: Path) -> None:
        self.root = directory / "checkout"
        self.root.mkdir()
        for path in CHECKOUT.iterdir():
            if path.name not in NOT_LINKED:
                (self.root / path.name).symlink_to(path)
        for name in COPIED:
            shutil.copytree(CHECKOUT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / ".venv").symlink_to(sys.prefix)
        self.cluster = self.root / "build" / "cluster"

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`python -m eclectus_e2e ARGUMENT...`."""
        return self._run([sys.executable, "-m", "eclectus_e2e", *arguments], environment)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as a page names it, in the checkout's folder, with `.venv/bin` on the PATH."""
        path = f"{self.root}/.venv/bin:{os.environ['PATH']}"
        return self._run(["bash", "-c", command], {"PATH": path, "E2E": ""})

    def pids(self) -> dict[str, int]:
        """Pids of its cluster by name."""
        return {process.name: process.pid for process in recorded(self.cluster)}

    def _run(self, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        variables = {
            **os.environ,
            "PYTHONPATH": ":".join(str(self.root / name) for name in COPIED),
            "MAKEFLAGS": "--old-file=.venv/.ready",
            **environment,
        }
        return subprocess.run(
            command,
            env=variables,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
