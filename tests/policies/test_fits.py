"""Rosella's learner fits all rates at once: when, and how much of its work one step gets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from eclectus.model.learned import LearnedNode, LearnedWork
from eclectus.policies.rosella.rates import NODES_CHECKED
from learner_harness import School


def known(row: int, rate: float, at: float = 900.0, workload: str = "w") -> LearnedNode:
    return LearnedNode(f"n{row}", 5, at, "live", rate, 0.9, (LearnedWork(workload, rate, 50, 0.9),))


def epoch(school: School) -> int:
    return school.learn.speeds("w").epoch


def test_first_samples_of_many_workloads_cause_one_fit() -> None:
    school = School()
    before = epoch(school)
    for number in range(20):
        school.end(number % 10, 1.0 + number, f"workload-{number}")
    assert epoch(school) <= before + 2  # one was due, and one was called for by samples after it
    assert school.learn.speeds("workload-19").rate[9] == pytest.approx(1 / 20, rel=0.2)


def test_recalled_nodes_cause_one_fit() -> None:
    school = School()
    before = epoch(school)
    for row in range(10):
        school.learn.recall(known(row, 1.0 + row, at=900.0 + row))
    assert epoch(school) == before + 1


def test_estimates_do_not_depend_on_when_rates_are_read() -> None:
    often, seldom = School(), School()
    for school in (often, seldom):
        for turn in range(400):
            school.end(turn % 10, (1 + turn % 3) / (1 + turn % 10), f"workload-{turn % 3}", after=0.02)
            if school is often:
                school.rate()
    for workload in range(3):
        assert seldom.rate(f"workload-{workload}") == pytest.approx(
            often.rate(f"workload-{workload}"), rel=0.01
        )


def test_events_between_a_recall_and_the_next_fit_do_no_harm() -> None:
    school = School()
    for row in range(10):
        school.learn.recall(known(row, 4.0 if row < 5 else 1.0, workload="recalled"))
    school.end(0, 0.25, "recalled")
    school.learn.remove_node(9)
    school.learn.add_node(9, "another", 10)
    rate = school.rate("recalled")
    assert np.allclose(rate[:5] / rate[8], 4.0, rtol=0.1)


def test_the_first_event_may_be_a_recall_at_any_time() -> None:
    school = School()
    school.learn.recall(known(0, 4.0, at=1.8e9))
    assert school.rate()[0] == pytest.approx(4.0, rel=0.01)


def test_the_order_in_which_nodes_are_recalled_does_not_matter() -> None:
    schools = School(half_life=200.0), School(half_life=200.0)
    values = [known(row, 1.0 + row, at=300.0 + 70.0 * row) for row in range(10)]
    for school, order in zip(schools, (values, values[::-1]), strict=True):
        for each in order:
            school.learn.recall(each)
        school.learn.recall(known(9, 10.0, at=930.0))
    one, other = (school.rate() for school in schools)
    assert one == pytest.approx(other, rel=1e-3)
    assert one[9] == pytest.approx(10.0, rel=0.05)


def test_old_samples_are_dropped_in_turn() -> None:
    school = School(rows=3 * NODES_CHECKED, half_life=10.0)
    school.teach(2)
    school.wait(60.0)
    cells = [len(list(school.learn.learned_cells()))]
    while cells[-1] and len(cells) < 10:
        school.wait(1.5)
        cells.append(len(list(school.learn.learned_cells())))
    assert cells[-1] == 0
    assert all(0 < before - after <= NODES_CHECKED for before, after in pairwise(cells))
