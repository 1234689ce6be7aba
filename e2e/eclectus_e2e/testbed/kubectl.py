"""Calls kubectl on one cluster."""

import json
import subprocess
from pathlib import Path
from typing import Any

from eclectus_e2e.errors import UsageError


class Kubectl:
    """`kubectl("drain", "n1")` returns the output; `kubectl.get("nodes")` the items of a list."""

    def __init__(self, binaries: Path, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._command = [str(binaries / "kubectl"), "--kubeconfig", str(kubeconfig)]

    def __call__(self, *arguments: str, given: Any = None) -> str:
        """Run it, with an object as its standard input. Raises UsageError with its stderr when it fails."""
        text = None if given is None else json.dumps(given)
        done = subprocess.run(
            [*self._command, *arguments], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UsageError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def get(self, *what: str) -> Any:
        """An object, or the items of a list."""
        found = json.loads(self("get", *what, "--output=json"))
        return found["items"] if found["kind"] == "List" else found
