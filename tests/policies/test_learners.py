"""What every learner of the table must keep: honest bounds, honest epochs, names of nodes that are there."""

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
    for news in _school(learn, np.random.default_rng(5)):
        for asked in (news.split("@")[0], "a", "never seen"):
            speeds = learn.speeds(asked)
            assert np.all(speeds.rate >= 0)
            assert np.all(np.isfinite(speeds.rate))
            assert 0 < speeds.rate.max() <= speeds.most


@LEARNERS
def test_rates_change_only_with_an_event_of_their_node_or_a_new_epoch(name: str) -> None:
    learn = table.LEARN[name]()
    before: dict[str, Any] = {}
    for news in _school(learn, np.random.default_rng(6)):
        for asked in ("a", "b", "never seen"):
            speeds = learn.speeds(asked)
            if asked in before and before[asked][0] == speeds.epoch:
                _, rate = before[asked]
                changed = np.flatnonzero(rate != speeds.rate[: len(rate)])
                assert set(changed) <= {news_row(news)}, asked
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
def test_learned_nodes_can_be_restored_in_another_learner(name: str) -> None:
    learn, heir = table.LEARN[name](), table.LEARN[name]()
    for _ in _school(learn, np.random.default_rng(8)):
        pass
    known = list(learn.learned_nodes())
    for row, each in enumerate(known):
        heir.add_node(row, each.node, 16)
        heir.recall(each)
    assert [each.node for each in heir.learned_nodes()] == [each.node for each in known]


def news_row(news: str) -> int:
    """The row that a piece of news was about."""
    return int(news.split("@")[1])


def _school(learn: Learn, chance: np.random.Generator) -> Iterator[str]:
    """Nodes come and go, work of many sizes comes, runs and ends; yields after each piece of news
    `workload@row`. What is told of tasks that run concerns no rate by itself, so it comes with other news."""
    seated: set[int] = set()
    capacity, now = 8, 0.0
    for step in range(400):
        row = int(chance.integers(capacity))
        now += float(chance.exponential(0.4))
        workload = "abcdefgh"[int(chance.integers(8))]
        if row not in seated:
            learn.add_node(row, f"n{step}", capacity)
            seated.add(row)
        elif chance.random() < 0.1:
            learn.remove_node(row)
            seated.discard(row)
        else:
            for uid in (str(step), str(step - 5), str(int(chance.integers(step + 1)))):
                (learn.left if chance.random() < 0.6 else _starter(learn, row, workload))(uid, now)
            size = 10.0 ** (ord(workload) - ord("d"))
            learn.observe(Completion(row, workload, float(chance.exponential(size)) + 1e-6, now))
        if step == 200:
            capacity = 16
        yield f"{workload}@{row}"


def _starter(learn: Learn, row: int, workload: str) -> Callable[[str, float], None]:
    return lambda uid, now: learn.started(uid, row, workload, now)
