"""Where benches write during a test."""

from pathlib import Path

import pytest

from eclectus_bench import __main__ as bench
from eclectus_bench import match, startup
from eclectus_bench.soak import __main__ as soak


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a bench leaves its report, its logs and its control plane."""
    for module in (bench, match, startup, soak):
        monkeypatch.setattr(module, "OUTPUT", tmp_path)
    return tmp_path
