"""Rosella's learner after a shock: many nodes change speed at about the same time."""

from __future__ import annotations

import numpy as np
import pytest

from eclectus.policies.rosella.learn.shock import ROWS_AT_ONCE, SAMPLES_PER_NODE, Shocks
from school import School

NODES = 12
KNOWN = np.arange(NODES)


def school_with_an_idle_slow_node() -> School:
    school = School(rows=NODES)
    school.draw = lambda: float(school.chance.gamma(9.0, 1.0 / 9.0))
    school.speed[0] = 0.1
    school.teach(30)
    return school


# -- in the learner ----------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.25, 4.0], ids=["slower", "faster"])
def test_after_a_shock_a_node_without_new_samples_counts_as_typical(speed: float) -> None:
    school = school_with_an_idle_slow_node()
    assert school.ratio(0) < 0.15
    school.speed[1:7] *= speed
    school.teach(12, rows=list(range(1, NODES)))
    assert 0.5 < school.ratio(0) < 2.0


def test_where_fewer_nodes_change_the_others_are_still_known() -> None:
    school = school_with_an_idle_slow_node()
    school.speed[1:4] /= 4.0
    school.teach(12, rows=list(range(1, NODES)))
    assert school.learn.tally.alarms >= 3
    assert school.ratio(0) < 0.15


def test_after_a_shock_no_workload_counts_as_untried_on_a_node_that_has_run_it() -> None:
    school = school_with_an_idle_slow_node()
    school.teach(30, {"w": 1.0, "v": 1.0})
    school.speed[1:] /= 4.0
    school.teach(24, {"w": 1.0, "v": 1.0}, rows=list(range(1, NODES)))
    school.end(0, 4.0, "w")
    assert school.ratio(0, "v") > 0.6


def test_a_change_of_one_workload_on_all_nodes_is_no_shock() -> None:
    """Those nodes keep what they know of the other workload, and so does the node that runs nothing."""
    school = School(rows=NODES)
    school.draw = lambda: float(school.chance.gamma(9.0, 1.0 / 9.0))
    school.speed[0] = 0.1
    school.teach(60, {"a": 1.0, "b": 1.0})
    for _ in range(12):
        for row in range(1, 6):
            school.end(row, 8.0 * school.draw(), "a", after=0.1)
            for _ in range(4):
                school.end(row, school.draw(), "b", after=0.1)
    assert school.ratio(0, "b") < 0.15


# -- what makes a shock ------------------------------------------------------------------------------


def test_a_third_of_the_nodes_makes_a_shock_and_each_node_counts_once() -> None:
    shocks = Shocks()
    assert not any(shocks.alarm(row, 10.0 + row, KNOWN) for row in (0, 1, 2, 2, 1, 0))
    assert shocks.alarm(3, 13.0, KNOWN)


def test_the_samples_of_the_other_nodes_are_dropped_from_before_the_latest_change() -> None:
    shocks = Shocks()
    for row, since in enumerate((11.0, 14.0, 12.0, 13.0)):
        shocks.alarm(row, since, KNOWN)
    assert dict(shocks.take_outdated()) == dict.fromkeys(range(4, NODES), 14.0)
    assert not list(shocks.take_outdated())


def test_alarms_that_are_far_apart_make_no_shock() -> None:
    shocks = Shocks()
    for row in range(NODES):
        assert not shocks.alarm(row, float(row), KNOWN)
        shocks.samples += SAMPLES_PER_NODE * NODES // 3


def test_two_nodes_make_no_shock() -> None:
    shocks = Shocks()
    assert not shocks.alarm(0, 1.0, np.arange(2))
    assert not shocks.alarm(1, 1.0, np.arange(2))


def test_a_node_that_is_gone_has_no_outdated_samples_and_makes_no_shock() -> None:
    shocks = Shocks()
    for row in range(3):
        shocks.alarm(row, 1.0, KNOWN)
    shocks.forget(0)
    assert not shocks.alarm(3, 1.0, KNOWN)
    assert shocks.alarm(4, 1.0, KNOWN)
    shocks.forget(NODES - 1)
    assert NODES - 1 not in dict(shocks.take_outdated())


def test_on_a_large_cluster_few_nodes_are_looked_at_in_a_fit() -> None:
    shocks, known = Shocks(), np.arange(3 * ROWS_AT_ONCE)
    assert [shocks.alarm(row, 1.0, known) for row in range(ROWS_AT_ONCE)][-1]
    assert [len(list(shocks.take_outdated())) for _ in range(3)] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 0]
