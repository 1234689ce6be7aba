"""The page /speeds: every learned rate as JSON, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from eclectus.framework import LearnedCell

CELLS_PER_PART = 1_000  # 2 ms; 5,000 nodes and 64 classes of work are 320,000 cells


def speeds_page(cells: Iterable[LearnedCell]) -> Iterator[bytes]:
    """A JSON array of the cells. They are read as the parts are."""
    remaining, separator = iter(cells), b"["
    while part := list(islice(remaining, CELLS_PER_PART)):
        yield separator + msgspec.json.encode(part)[1:-1]
        separator = b","
    yield b"[]" if separator == b"[" else b"]"
