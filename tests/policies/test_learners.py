"""What every learner of the table must keep: honest bounds, honest epochs, names of nodes that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from eclectus.core.seam import Completion, Learn
from eclectus.policies import table

LEARNERS = pytest.mark.parametrize("name", list(table.LEARN))


@LEARNERS
def test_rates_are_positive_finite_and_bounded_by_what_is_said(name: str) -> None:
    learn = table.LEARN[name]()
    for workload in _school(learn, np.random.default_rng(5)):
        for asked in (workload, "a", "never seen"):
            speeds = learn.speeds(asked)
            assert np.all(speeds.rate > 0)
            assert np.all(np.isfinite(speeds.rate))
            assert speeds.rate.max() <= speeds.most


@LEARNERS
def test_rows_change_only_with_their_own_news_or_a_new_epoch(name: str) -> None:
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
def test_what_is_shown_to_people_is_of_nodes_that_are_there(name: str) -> None:
    learn = table.LEARN[name]()
    for _ in _school(learn, np.random.default_rng(7)):
        for cell in learn.learned():
            assert cell.node.startswith("n")
            assert cell.samples > 0
            assert cell.rate > 0


def news_row(news: str) -> int:
    """The row that a piece of news was about."""
    return int(news.split("@")[1])


def _school(learn: Learn, chance: np.random.Generator) -> Iterator[str]:
    """Nodes come and go, work of many sizes ends; yields after each piece of news `workload@row`."""
    seated: set[int] = set()
    capacity, now = 8, 0.0
    for step in range(400):
        row = int(chance.integers(capacity))
        now += float(chance.exponential(0.4))
        workload = "abcdefgh"[int(chance.integers(8))]
        if row not in seated:
            learn.seat(row, f"n{step}", capacity)
            seated.add(row)
        elif chance.random() < 0.1:
            learn.unseat(row)
            seated.discard(row)
        else:
            size = 10.0 ** (ord(workload) - ord("d"))
            learn.observe(Completion(row, workload, float(chance.exponential(size)) + 1e-6, now))
        if step == 200:
            capacity = 16
        yield f"{workload}@{row}"
