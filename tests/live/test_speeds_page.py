"""The page /speeds: a list of any length, page by page, each read part by part."""

import msgspec
import pytest

from eclectus.framework import LearnedCell
from eclectus.kubeclient.serving.pages import QueryError
from eclectus.live.pages import CELLS_PER_PART, MOST_CELLS, speeds_page


def learned(nodes, kinds=1):
    """Nodes n00000, n00001, … with so many kinds of work each: as Engine.learned_cells."""
    cells = [
        LearnedCell(f"n{node:05}", f"w{kind}", 1.0 + node, kind + 1)
        for node in range(nodes)
        for kind in range(kinds)
    ]
    return cells, lambda after: (cell for cell in cells if cell.node > after)


def read(learned_cells, **query):
    """(cells, continue) of a page."""
    page = msgspec.json.decode(b"".join(speeds_page(learned_cells, query)))
    return msgspec.convert(page["items"], list[LearnedCell]), page["metadata"].get("continue")


@pytest.mark.parametrize("count", [0, 1, CELLS_PER_PART, 2 * CELLS_PER_PART + 1, MOST_CELLS])
def test_a_short_list_is_one_page(count):
    cells, learned_cells = learned(count)
    assert read(learned_cells) == (cells, None)


@pytest.mark.parametrize("limit", [1, 3, 4, 7, 1000])
def test_pages_together_are_the_list_and_each_ends_with_a_node(limit):
    cells, learned_cells = learned(10, kinds=3)
    found, query = [], {"limit": str(limit)}
    while True:
        page, after = read(learned_cells, **query)
        assert len(page) % 3 == 0
        assert len(page) < limit + 3
        found += page
        if after is None:
            break
        query["continue"] = after
    assert found == cells


def test_without_a_limit_a_page_is_bounded_all_the_same():
    _, learned_cells = learned(MOST_CELLS + 1)
    for query in ({}, {"limit": "999999"}):
        page, after = read(learned_cells, **query)
        assert (len(page), after) == (MOST_CELLS, page[-1].node)


def test_a_node_that_is_gone_does_not_end_a_list():
    cells, _ = learned(5)
    _, after = read(lambda _: iter(cells), limit="2")
    left = [cell for cell in cells if cell.node != after]
    assert (
        read(lambda after: (cell for cell in left if cell.node > after), **{"continue": after})[0]
        == cells[2:]
    )


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "x", "", "9" * 5000, "²"])
def test_a_limit_that_is_no_number_is_refused_with_what_to_write(limit):
    with pytest.raises(QueryError, match="limit must be a whole number above 0"):
        list(speeds_page(lambda _: iter(()), {"limit": limit}))


def test_cells_are_read_as_the_parts_are():
    count = 0

    def cells(_):
        nonlocal count
        for at in range(3 * CELLS_PER_PART):
            count += 1
            yield LearnedCell(f"n{at}", "w", 1.0, 1)

    parts = speeds_page(cells, {})
    next(parts)
    for part in range(1, 4):
        next(parts)
        assert count == part * CELLS_PER_PART


def test_a_namespace_sees_its_own_and_shared_work():
    cells = [
        LearnedCell(f"n{node:05}", workload, 1.0, 1)
        for node in range(CELLS_PER_PART)
        for workload in ("a/train", "ab/train", "train")
    ]
    found, _ = read(lambda after: iter(cells), namespace="a")
    assert found == [cell for cell in cells if cell.workload in ("a/train", "train")]
    found, _ = read(lambda after: (cell for cell in cells if cell.workload == "a/train"), namespace="b")
    assert found == []
