"""The page /speeds: a JSON array of any length, read part by part."""

import msgspec
import pytest

from eclectus.framework import LearnedCell
from eclectus.live.learned.speeds_page import CELLS_PER_PART, speeds_page


@pytest.mark.parametrize("count", [0, 1, CELLS_PER_PART, 2 * CELLS_PER_PART + 1])
def test_it_is_an_array_of_all_cells(count):
    cells = [LearnedCell(f"n{at}", "w", 1.0 + at, at) for at in range(count)]
    assert msgspec.json.decode(b"".join(speeds_page(cells)), type=list[LearnedCell]) == cells


def test_cells_are_read_as_the_parts_are():
    read = []

    def cells():
        for at in range(3 * CELLS_PER_PART):
            read.append(at)
            yield LearnedCell(f"n{at}", "w", 1.0, 1)

    page = speeds_page(cells())
    for part in range(1, 4):
        next(page)
        assert len(read) == part * CELLS_PER_PART
