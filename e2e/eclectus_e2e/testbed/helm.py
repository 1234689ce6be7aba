"""helm for the shell that uses `make up`'s cluster, on machines that have none: compiled on its first use."""

import os
import shutil
import sys
from pathlib import Path

from eclectus_e2e.paths import HELM_MODULE
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries

HELM = GoPrograms(
    title="helm",
    build_time="2 minutes on two idle cores",
    folder="helm",
    packages=1200,
    module=HELM_MODULE,
    programs={"helm": "helm.sh/helm/v4/cmd/helm"},
)


def helm(arguments: list[str]) -> int:
    """Replace this process by helm."""
    program = str(binaries(HELM) / "helm")
    os.execv(program, [program, *arguments])  # noqa: S606 - the purpose of this command


def folders(directory: Path) -> list[Path]:
    """What to put on the PATH: a folder in `directory` with a script `helm`, unless the machine has helm."""
    if shutil.which("helm"):
        return []
    folder = directory / "bin"
    folder.mkdir()
    script = folder / "helm"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eclectus_e2e helm "$@"\n')
    script.chmod(0o755)
    return [folder]
