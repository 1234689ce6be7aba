"""Rosella's learner: effective rates for workloads that a node has never run."""

from __future__ import annotations

from statistics import fmean

import pytest

from eclectus.maths.service_rates import RatioMatrix
from eclectus.policies.rosella.namespaces import WORKLOADS_WEIGHED
from eclectus.sim.scenario import load, shipped_scenarios
from learner_harness import School
from short_scenarios import runs


def taught(**settings: float) -> School:
    """Ten equal nodes: all have run `a`, only the first five `b`; and one new node."""
    school = School(rows=11, **{"shrink": False, **settings})
    school.draw = lambda: 1.0
    school.teach(40, {"a": 2.0}, list(range(10)))
    school.teach(40, {"b": 6.0}, list(range(5)))
    school.wait(2.0)
    return school


def test_a_node_counts_with_half_its_speed_for_an_untried_workload() -> None:
    """And a node without samples counts as typical for all workloads."""
    rate = taught().rate("b")
    assert rate[:5] == pytest.approx(1 / 6, rel=0.01)
    assert rate[5:10] == pytest.approx(0.5 / 6, rel=0.01)
    assert rate[10] == pytest.approx(1 / 6, rel=0.01)
    assert taught().rate("a") == pytest.approx(0.5, rel=0.01)


def test_where_workloads_are_seen_to_rank_nodes_alike_an_untried_one_hardly_counts_less() -> None:
    assert 0.75 / 6 < taught(shrink=True).rate("b")[7] < 1 / 6


def test_of_many_workloads_some_are_weighed_with_each_fit_and_all_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    school, names = School(rows=11), [f"b{at}" for at in range(40)]
    school.draw = lambda: 1.0
    school.teach(40, {"a": 2.0}, list(range(10)))
    for name in names:
        school.teach(12, {name: 6.0}, list(range(5)))
    weighed, estimates = list[int](), RatioMatrix.pair_estimates
    monkeypatch.setattr(
        RatioMatrix, "pair_estimates", lambda *given: [weighed.append(given[1]), estimates(*given)][1]
    )
    for fits in range(1, 4):
        school.wait(2.0)
        school.end(0, 2.0, "a")
        assert len(weighed) == fits * WORKLOADS_WEIGHED
    assert set(weighed) == set(range(41))
    assert all(0.75 / 6 < school.rate(name)[7] < 1 / 6 for name in names)


def test_one_sample_replaces_the_reduced_rate() -> None:
    school = taught()
    school.end(7, 6.0, "b")
    assert school.rate("b")[7] == pytest.approx(1 / 6, rel=0.01)
    assert school.rate("b")[8] == pytest.approx(0.5 / 6, rel=0.01)


def test_silence_applies_as_well() -> None:
    """The share of a silent node multiplies the reduced rate."""
    school = taught()
    for _ in range(4):
        school.begin(7, "a")
    for _ in range(30):
        school.wait(2.0)
        school.run(0, 2.0, "a")
    share = school.rate("a")[7] / school.rate("a")[8]
    assert 0 < share < 0.9
    assert school.rate("b")[7] / school.rate("b")[8] == pytest.approx(share)


def test_a_workload_that_no_node_has_run_is_reduced_nowhere() -> None:
    assert taught().rate("c") == pytest.approx(1.0, rel=0.01)


def test_a_pair_whose_samples_were_dropped_counts_as_typical() -> None:
    """It was tried before, and its present speed must be found out."""
    school = taught(half_life=60.0)
    for _ in range(300):
        school.end(0, 6.0, "b", after=1.0)
        for row in range(10):
            school.end(row, 2.0, "a")
    rate = school.rate("b")
    assert rate[1:5] == pytest.approx(1 / 6, rel=0.05)
    assert rate[5:10] == pytest.approx(0.5 / 6, rel=0.05)


def test_a_new_node_on_the_same_row_has_tried_nothing() -> None:
    school = taught()
    school.learn.remove_node(1)
    school.learn.add_node(1, "another", 11)
    school.end(1, 2.0, "a")
    school.wait(2.0)
    assert school.rate("b")[1] == pytest.approx(0.5 / 6, rel=0.01)


def test_a_share_of_1_disables_it() -> None:
    assert taught(untried_share=1.0).rate("b") == pytest.approx(1 / 6, rel=0.01)


@pytest.mark.long
def test_where_workloads_rank_nodes_differently_fewer_tasks_run_long() -> None:
    """Starting without samples, on the nodes of the demo's comparison."""

    def p99(share: float) -> float:
        asked = load(shipped_scenarios()["mixed"], changes=(f"profiles=[{_profile(share)}]",))
        return fmean(one.response.p99 for one in runs(asked, (1, 2, 3)))

    assert p99(0.5) < 0.8 * p99(1.0)


def _profile(share: float) -> str:
    return f"{{schedulerName: it, learn: {{policy: rosella, untriedShare: {share}}}}}"
