"""Published data sets that tests compare with; they are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[4] / "shared" / "data"


def published(name: str) -> Path:
    """A folder or a file of the data sets; skips the test if it is not available."""
    path = Path(os.environ.get("ECLECTUS_DATA") or _BESIDE) / name
    if not path.exists():
        pytest.skip(f"no published data {name!r}: set ECLECTUS_DATA to the folder that holds it")
    return path
