"""Where the published jobs lie: they are not part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT

BESIDE = CHECKOUT.parent / "shared" / "data"
VARIABLE = "ECLECTUS_DATA"


def folder() -> Path:
    """The folder of published data sets: what ECLECTUS_DATA names, else ../shared/data."""
    return Path(os.environ.get(VARIABLE) or BESIDE)


def missing(files: tuple[str, ...]) -> str:
    """Why jobs cannot be read: the first of their files that is not there; empty if all are."""
    for name in files:
        if not (folder() / name).is_file():
            return f"{folder() / name} is missing: set {VARIABLE} to the folder of the published data sets"
    return ""
