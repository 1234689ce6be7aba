"""Rosella's learner: effective rates of nodes on which no task ends, and how they become live again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner_harness import School


def frozen(slots: int = 4, **settings_: float) -> School:
    """Ten nodes with samples; then n0 is busy in all slots, and no task ends there."""
    school = School(**settings_)
    school.teach(64)
    for _ in range(slots):
        school.begin(0)
    return school


def until_dead(school: School, row: int = 0, most: float = 1e5) -> float:
    """Time passes while other nodes work, until the row is dead; returns the seconds that took."""
    began = school.now
    while school.state(row) != "dead":
        for other in range(1, len(school.speed)):
            school.run(other, 1.0)
        school.wait(10.0)
        assert school.now - began < most, "it never dies"
    return school.now - began


def test_a_worker_with_rate_zero_revives_by_probes_only() -> None:
    """After the first probe it is on trial; eight that started since it died make it live again."""
    school = frozen()
    until_dead(school)
    assert school.rate()[0] == 0.0
    assert (school.rate()[1:] > 0).all()
    for _ in range(20):
        school.teach(1, rows=list(range(1, 10)))
    assert (school.state(0), school.rate()[0]) == ("dead", 0.0)
    for probe in range(8):
        assert school.state(0) == ("suspect" if probe else "dead"), probe
        assert school.ratio(0) < 0.5
        school.run(0, 0.25)
    assert school.state(0) == "live"
    assert school.ratio(0) == pytest.approx(4.0, rel=0.3)


def test_tasks_that_hung_with_a_dead_node_are_no_samples() -> None:
    school = frozen(slots=0)
    stuck = [school.begin(0) for _ in range(12)]
    dead_after = until_dead(school)
    for uid in stuck:
        school.finish(uid, 0, dead_after + 640.0)
        assert school.state(0) == "suspect"
        assert school.ratio(0) == pytest.approx(0.125, rel=0.35)
    for _ in range(8):
        school.run(0, 1.0)
    assert school.ratio(0) == pytest.approx(1.0, rel=0.35)


def test_a_revived_node_that_hangs_again_dies_again() -> None:
    school = frozen(slots=0)
    stuck = [school.begin(0) for _ in range(4)]
    school.finish(stuck[0], 0, until_dead(school))
    assert school.state(0) == "suspect"
    until_dead(school)
    assert school.rate()[0] == 0.0


def test_the_rate_of_a_silent_node_falls_until_it_is_dead() -> None:
    school = frozen()
    known, seen = school.rate()[0], []
    for _ in range(12):
        school.wait(4.0)
        seen.append((school.state(0), school.rate()[0]))
    assert seen[0] == ("live", pytest.approx(known, rel=0.1))
    reduced = [rate for state, rate in seen if state == "suspect"]
    assert reduced == sorted(reduced, reverse=True)
    assert reduced[-1] < 0.25 * known


def test_one_ended_task_clears_a_suspect_node() -> None:
    school = frozen()
    [uid] = [school.begin(0)]
    school.wait(40.0)
    assert school.state(0) == "suspect"
    reduced = school.rate()[0]
    school.finish(uid, 0, 1.0)
    assert school.rate()[0] > 2 * reduced
    assert school.state(0) == "live"


def test_an_idle_node_never_dies() -> None:
    """By the paper's cut-off it would be dead, since no benchmark ends. Here no task was running."""
    school = School()
    school.teach(64)
    for _ in range(300):
        school.teach(1, rows=list(range(1, 10)))
        school.wait(300.0)
    assert school.state(0) != "dead"
    assert school.rate()[0] > 0


def test_one_hung_task_does_not_make_a_working_node_dead() -> None:
    school = frozen(slots=1)
    for _ in range(1000):
        school.run(0, 1.0)
    assert school.state(0) == "live"
    assert school.ratio(0) == pytest.approx(1.0, rel=0.4)


def test_one_hung_task_alone_does_not_soon_make_a_node_suspect() -> None:
    school = frozen(slots=1)
    school.wait(300.0)
    assert school.state(0) == "live"


def test_a_node_that_is_slow_but_works_is_not_dead() -> None:
    """Ten times slower than it was, in all slots at once."""
    school = frozen(slots=0)
    for _ in range(40):
        uids = [school.begin(0) for _ in range(4)]
        for uid in uids:
            school.wait(2.5)
            school.finish(uid, 0, 10.0)
        assert school.state(0) != "dead"
    assert school.ratio(0) == pytest.approx(0.1, rel=0.35)


def slow(speed: float) -> School:
    """Ten nodes and tasks of equal size; n0 has this speed."""
    school = School(half_life=1e9, capacity=1e6)
    school.draw = lambda: 1.0
    school.speed[0] = speed
    return school


def is_ever_dead(school: School) -> bool:
    """Whether n0 is dead at any time while each node completes 200 tasks."""
    for _ in range(200):
        school.teach(1)
        if school.state(0) == "dead":
            return True
    return False


def test_a_node_slower_than_the_cut_off_over_its_window_is_dead() -> None:
    """mu*: at the minimal load c0 (1 - .05) of a mean node's speed; within the margin the node stays live."""
    found = {speed: is_ever_dead(slow(speed)) for speed in (0.2, 0.08, 0.02)}
    assert found == {0.2: False, 0.08: False, 0.02: True}


def test_a_node_that_died_of_slowness_is_live_after_eight_samples() -> None:
    """Until then it is on trial, and the samples of before are no evidence against it once more."""
    school, found = slow(0.02), list[str]()
    school.teach(100)
    while school.state(0) != "dead":
        school.teach(1)
    for _ in range(8):
        school.run(0, 1.0)
        school.wait(60.0)  # all nodes are checked
        found.append(school.state(0))
    assert found == ["suspect"] * 7 + ["live"]


def test_a_dead_node_on_which_nothing_runs_is_reset_after_a_half_life() -> None:
    school = frozen(slots=0, half_life=1800.0)
    stuck = [school.begin(0) for _ in range(4)]
    until_dead(school)
    for _ in range(3):
        school.wait(1800.0)
    assert school.state(0) == "dead"
    for uid in stuck:
        school.learn.left(uid, school.now)
    school.wait(1700.0)
    assert school.state(0) == "dead"
    school.wait(200.0)
    assert school.state(0) == "unknown"
    assert school.rate()[0] > 0


def test_if_all_nodes_are_dead_none_is_treated_so() -> None:
    school = School(rows=3)
    school.teach(64)
    for row in range(3):
        for _ in range(20):
            school.begin(row)
    for _ in range(100):
        school.wait(1000.0)
        assert school.rate().max() > 0


def test_the_first_tasks_of_a_long_workload_make_no_node_suspect() -> None:
    """The first tasks that end are the shortest, so all others seem overdue. Exponential, 40 slots."""
    school = School()
    running = [
        (float(school.chance.exponential(100.0)), row, school.begin(row)) for row in list(range(10)) * 4
    ]
    began = school.now
    for seconds, row, uid in sorted(running):
        school.now = began + seconds
        school.finish(uid, row, seconds)
        school.learn.arrived("w", school.now)
        assert [school.state(each) for each in range(10)].count("suspect") <= 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.floats(0.1, 1e4)), max_size=80))
@settings(deadline=None)
def test_running_tasks_are_counted_correctly_for_any_sequence_of_events(
    events: list[tuple[int, int, float]],
) -> None:
    """Tasks seen running twice, leaving twice, nodes that come and go: rates stay finite, not all 0."""
    school, running = School(rows=4), set()
    for row, event, passed in events:
        uid = f"{row}{event % 3}"
        school.now += passed
        if event < 3:
            school.learn.started(uid, row, "w", school.now)
            running.add((uid, row))
        elif event == 3:
            school.end(row, passed)
        elif event == 4:
            school.learn.left(uid, school.now)
            running = {each for each in running if each[0] != uid}
        else:
            school.learn.remove_node(row)
            school.learn.add_node(row, f"n{row}", 4)
            running = {each for each in running if each[1] != row}
        rate = school.rate()
        assert np.isfinite(rate).all()
        assert (rate >= 0).all()
        assert rate.max() > 0
        slots = school.learn.occupancy.running
        assert slots == [sum(at == each for _, at in running) for each in range(4)]
