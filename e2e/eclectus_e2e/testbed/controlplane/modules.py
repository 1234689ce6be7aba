"""Sources of the Go modules that a go.mod pins, for what they have beside programs: charts and manifests."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.errors import BuildError
from eclectus_e2e.testbed.controlplane.toolchain import go_program


@dataclass(frozen=True)
class Sources:
    """Where Go keeps the sources of a module, and their version."""

    folder: Path
    version: str


def downloaded(pinned_in: Path, module: str) -> Sources:
    """The sources of a module, fetched if they are not there; `pinned_in` is the folder with the go.mod.

    Raises BuildError when they cannot be fetched.
    """
    command = [str(go_program()), "mod", "download", "-json", module]
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    found = subprocess.run(
        command, cwd=pinned_in, capture_output=True, text=True, check=False, env=environment
    )
    if found.returncode:
        raise BuildError(f"`go mod download {module}` failed: {found.stderr.strip()}")
    content = json.loads(found.stdout)
    return Sources(Path(content["Dir"]), content["Version"])
