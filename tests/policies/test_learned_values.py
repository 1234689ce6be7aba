"""Rosella's learner: load, values for users, and what another process restores."""

from __future__ import annotations

import pytest

from eclectus.model.learned import LearnedNode, LearnedWork
from learner_harness import School

# -- load ----------------------------------------------------------------------------------


def test_capacity_is_the_slots_in_use_times_the_speeds() -> None:
    """Ten nodes of four slots at half a task a second: 20 tasks/s, as a lower bound."""
    school = School()
    for _ in range(60):
        uids = [(row, school.begin(row)) for row in range(10) for _ in range(4)]
        school.now += 2.0
        for row, uid in uids:
            school.finish(uid, row, 2.0)
    assert school.learn.load.capacity == pytest.approx(20.0, rel=0.1)


def test_a_capacity_that_is_set_takes_precedence() -> None:
    school = School(capacity=40.0)
    for _ in range(1200):
        school.wait(1 / 10)
    assert school.learn.load.ratio(school.now) == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize(("window", "load"), [(1000, 0.15), (100, 0.05)])
def test_a_shorter_window_of_the_arrival_rate_follows_a_change_sooner(window: int, load: float) -> None:
    """200 tasks arrive at a hundredth of a second, then 100 at a tenth of the rate."""
    school = School(capacity=200.0, rate_window=window)
    for gap in [0.01] * 200 + [0.1] * 101:
        school.wait(gap)
    assert school.learn.load.ratio(school.now) == pytest.approx(load, rel=0.2)


def test_small_and_idle_clusters_need_shorter_windows() -> None:
    idle, busy = School(rows=2, capacity=1e9, window=256), School(rows=2, window=256)
    for school in (idle, busy):
        school.teach(300)
    assert max(cell.samples for cell in idle.learn.learned_cells()) < 80
    assert max(cell.samples for cell in busy.learn.learned_cells()) > 150


def test_the_learned_load_has_spare_capacity_and_recent_shares() -> None:
    school = School(capacity=100.0)
    school.teach(40, {"w": 1.0, "x": 2.0, "y": 1.0, "z": 1.0})
    school.teach(40)
    for _ in range(300):
        school.wait(0.25)
    load = school.learn.learned_load(school.now)
    shares = dict(load.shares)
    assert (load.arrivals, load.capacity) == (pytest.approx(4.0, rel=0.02), 100.0)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["w"] == pytest.approx(5 / 8, rel=0.05)


# -- values for users, and across restarts -----------------------------------------------------------------


def test_learned_cells_have_confidence_and_time_of_the_newest_sample() -> None:
    school = School()
    school.teach(3)
    few = {cell.node: cell for cell in school.learn.learned_cells()}["n0"]
    school.teach(61)
    many = {cell.node: cell for cell in school.learn.learned_cells()}["n0"]
    assert few.confidence < 0.6
    assert many.confidence > 0.97
    assert many.newest_at == pytest.approx(school.now - 0.9)
    assert (many.state, many.samples) == ("live", 64)


def taught(**settings_: float) -> School:
    school = School(**settings_)
    school.speed[:5] = 4.0
    school.teach(64, {"short": 1.0, "long": 60.0})
    return school


def test_learned_nodes_survive_a_restart() -> None:
    before, after = taught(), School()
    for known in before.learn.learned_nodes():
        after.learn.recall(known)
    for workload in ("short", "long", "never seen"):
        assert after.rate(workload) == pytest.approx(before.rate(workload), rel=0.05)
    assert [known.epoch for known in after.learn.learned_nodes()] == [
        known.epoch for known in before.learn.learned_nodes()
    ]


def test_nodes_removed_while_learned_nodes_are_read_are_left_out() -> None:
    school = taught()
    reading = school.learn.learned_nodes()
    first = next(reading)
    school.learn.remove_node(1)
    school.learn.remove_node(2)
    school.learn.add_node(2, "another", 10)
    assert [first.node, *(known.node for known in reading)] == ["n0", *(f"n{row}" for row in range(3, 10))]


def test_nodes_removed_while_learned_cells_are_read_are_left_out() -> None:
    school = taught()
    reading = school.learn.learned_cells()
    first = next(reading)
    school.learn.remove_node(1)
    school.end(5, 1.0, "new")
    assert {first.node, *(cell.node for cell in reading)} == {"n0", *(f"n{row}" for row in range(2, 10))}


def test_nothing_is_restored_for_a_node_that_does_not_exist() -> None:
    before, after = taught(), School(rows=0)
    for known in before.learn.learned_nodes():
        after.learn.recall(known)
    after.learn.add_node(0, "n0", 10)
    assert after.ratio(0, "short") == 1.0
    assert list(after.learn.learned_nodes()) == []


def test_restored_samples_are_replaced_by_new_ones() -> None:
    before, after = taught(), School()
    for known in before.learn.learned_nodes():
        after.learn.recall(known)
    after.teach(128, {"short": 1.0, "long": 60.0})
    assert after.rate("short").max() / after.rate("short").min() < 2.5


def test_restored_samples_lose_weight_with_age() -> None:
    before, after = taught(half_life=600.0), School(half_life=600.0)
    for known in before.learn.learned_nodes():
        after.learn.recall(known)
    after.wait(6000.0)
    assert after.rate("short").max() / after.rate("short").min() < 1.2


def value(epoch: int, rate: float, at: float = 500.0) -> LearnedNode:
    return LearnedNode("n0", epoch, at, "live", rate, 0.9, (LearnedWork("w", rate, 50, 0.9),))


def test_the_latest_epoch_wins() -> None:
    learn = School(rows=2).learn
    learn.recall(value(10, 4.0))
    learn.recall(value(7, 0.1))
    assert next(learn.learned_nodes()).work[0].rate == pytest.approx(4.0)
    learn.recall(value(11, 2.0))
    assert next(learn.learned_nodes()).work[0].rate == pytest.approx(2.0)
    assert next(learn.learned_nodes()).epoch == 11


def test_an_earlier_epoch_is_not_restored() -> None:
    school = School()
    school.teach(20)
    school.learn.recall(value(20, 100.0))
    assert school.ratio(0) < 5
    assert next(school.learn.learned_nodes()).epoch == 20


def test_the_state_is_not_restored() -> None:
    school = School(rows=2)
    school.learn.recall(LearnedNode("n0", 9, 500.0, "dead", 1.0, 0.9, (LearnedWork("w", 1.0, 50, 0.9),)))
    assert school.state(0) == "live"
    assert school.rate()[0] > 0
