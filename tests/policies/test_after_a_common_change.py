"""Rosella's learner after a common change: many nodes change speed at about the same time."""

from __future__ import annotations

import pytest

from learner_harness import School

NODES = 12


def school_with_an_idle_slow_node() -> School:
    school = School(rows=NODES)
    school.draw = lambda: float(school.chance.gamma(9.0, 1.0 / 9.0))
    school.speed[0] = 0.1
    school.teach(30)
    return school


@pytest.mark.parametrize("speed", [0.25, 4.0], ids=["slower", "faster"])
def test_after_a_common_change_a_node_without_new_samples_counts_as_typical(speed: float) -> None:
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


def test_after_a_common_change_no_workload_counts_as_untried_on_a_node_that_has_run_it() -> None:
    school = school_with_an_idle_slow_node()
    school.teach(30, {"w": 1.0, "v": 1.0})
    school.speed[1:] /= 4.0
    school.teach(24, {"w": 1.0, "v": 1.0}, rows=list(range(1, NODES)))
    school.end(0, 4.0, "w")
    assert school.ratio(0, "v") > 0.6


def test_a_change_of_one_workload_on_many_nodes_is_no_common_change() -> None:
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
