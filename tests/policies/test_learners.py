"""Requirements on every learner of the table: correct bounds, epochs and node names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from eclectus.framework import Completion, Learn
from eclectus.policies import table

LEARNERS = pytest.mark.parametrize("name", list(table.LEARN))


@LEARNERS
def test_rates_are_finite_within_their_bound_and_not_all_0(name: str) -> None:
    learn = table.LEARN[name]()
    for event in _school(learn, np.random.default_rng(5)):
        for asked in (event.split("@")[0], "a", "never seen"):
            speeds = learn.speeds(asked)
            assert np.all(speeds.rate >= 0)
            assert np.all(np.isfinite(speeds.rate))
            assert 0 < speeds.rate.max() <= speeds.most
            assert not speeds.rate.flags.writeable


@LEARNERS
def test_rates_change_only_with_an_event_of_their_node_or_a_new_epoch(name: str) -> None:
    learn = table.LEARN[name]()
    before: dict[str, Any] = {}
    for event in _school(learn, np.random.default_rng(6)):
        for asked in ("a", "b", "never seen"):
            speeds = learn.speeds(asked)
            if asked in before and before[asked][0] == speeds.epoch:
                _, rate = before[asked]
                changed = np.flatnonzero(rate != speeds.rate[: len(rate)])
                assert set(changed) <= {event_row(event)}, asked
            before[asked] = (speeds.epoch, speeds.rate.copy())


@LEARNERS
def test_learned_cells_are_of_present_nodes(name: str) -> None:
    learn = table.LEARN[name]()
    for _ in _school(learn, np.random.default_rng(7)):
        for cell in learn.learned_cells():
            assert cell.node.startswith("n")
            assert cell.samples > 0
            assert cell.rate > 0
            assert 0 <= cell.confidence <= 1


@LEARNERS
def test_learned_cells_can_be_read_from_a_node_on(name: str) -> None:
    learn = table.LEARN[name]()
    for _ in _school(learn, np.random.default_rng(7)):
        pass
    cells = list(learn.learned_cells())
    assert [cell.node for cell in cells] == sorted(cell.node for cell in cells)
    for after in {"n", *(cell.node for cell in cells)}:
        assert list(learn.learned_cells(after)) == [cell for cell in cells if cell.node > after]


@LEARNERS
def test_learned_nodes_can_be_restored_in_another_learner(name: str) -> None:
    learn, other = table.LEARN[name](), table.LEARN[name]()
    for _ in _school(learn, np.random.default_rng(8)):
        pass
    known = list(learn.learned_nodes())
    for row, each in enumerate(known):
        other.add_node(row, each.node, 16)
        other.recall(each)
    assert [each.node for each in other.learned_nodes()] == [each.node for each in known]


def event_row(event: str) -> int:
    """The row of an event."""
    return int(event.split("@")[1])


def _school(learn: Learn, rng: np.random.Generator) -> Iterator[str]:
    """Nodes come and go, tasks of many sizes arrive, run and end; yields `workload@row` after each event.

    A task that starts or leaves changes no rate by itself, so it comes together with another event.
    """
    present: set[int] = set()
    capacity, now = 8, 0.0
    for step in range(400):
        row = int(rng.integers(capacity))
        now += float(rng.exponential(0.4))
        workload = "abcdefgh"[int(rng.integers(8))]
        if row not in present:
            learn.add_node(row, f"n{step}", capacity)
            present.add(row)
        elif rng.random() < 0.1:
            learn.remove_node(row)
            present.discard(row)
        else:
            for uid in (str(step), str(step - 5), str(int(rng.integers(step + 1)))):
                (learn.left if rng.random() < 0.6 else _starter(learn, row, workload))(uid, now)
            size = 10.0 ** (ord(workload) - ord("d"))
            learn.observe(Completion(row, workload, float(rng.exponential(size)) + 1e-6, now))
        if step == 200:
            capacity = 16
        yield f"{workload}@{row}"


def _starter(learn: Learn, row: int, workload: str) -> Callable[[str, float], None]:
    return lambda uid, now: learn.started(uid, row, workload, now, ())
