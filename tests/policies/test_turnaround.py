"""The turnaround: in effective rates and the capacity, and in what policies and estimates make of it."""

from __future__ import annotations

import numpy as np
import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from dag_world import DagWorld, job, stage
from eclectus.explain.pod import explain_pod
from eclectus.framework import Completion, Learn
from eclectus.maths.backlog_wait import ServiceTime
from eclectus.maths.turnaround import with_turnaround
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit
from eclectus.policies.rosella import RosellaLearn
from eclectus.policies.shared import expected_seconds
from learner_harness import School
from worlds import World, numbered


def taught(turnaround: float | None, workload: str = "w", **settings: str) -> School:
    """Two nodes whose tasks take 1 s and 8 s, 40 of each."""
    school = School(rows=2, **settings)  # type: ignore[arg-type]
    for _ in range(40):
        for row, seconds in enumerate((1.0, 8.0)):
            school.now += 1.0
            school.learn.observe(Completion(row, workload, seconds, school.now, turnaround=turnaround))
    school.wait(2.0)
    return school


def test_effective_rates_have_it() -> None:
    plain, held = taught(None).rate(), taught(3.0).rate()
    assert held == pytest.approx(plain / (1.0 + 3.0 * plain), rel=1e-12)
    assert held == pytest.approx([1 / 4, 1 / 11], rel=0.05)


def test_at_0_rates_are_the_same_to_the_last_bit() -> None:
    assert (taught(0.0).rate() == taught(None).rate()).all()


def test_learned_cells_do_not_have_it() -> None:
    """People are shown how fast tasks run."""
    plain, held = (taught(each).learn.learned_cells() for each in (None, 3.0))
    assert list(plain) == list(held)


@pytest.mark.parametrize("others", ["", "team-b/w"], ids=["alone", "with a prior of others"])
def test_single_rates_that_are_updated_between_fits_have_it(others: str) -> None:
    school = taught(3.0, "team-a/w")
    for row, seconds in enumerate((1.0, 8.0)) if others else ():
        for _ in range(8):
            school.end(row, seconds, others, after=1.0)
    school.wait(2.0)
    school.end(0, 1.5, "team-a/w")
    school.end(1, 1.5, "team-a/w")
    between = school.rate("team-a/w").copy()
    school.now += 1e-9
    school.learn._refresh(school.now)
    assert between == pytest.approx(school.rate("team-a/w"), rel=0.2)
    assert between.max() < 1 / 3


def test_a_workload_of_unknown_size_has_none() -> None:
    """Its rates are relative speeds, and not tasks a second."""
    assert (taught(3.0).rate("new") == taught(None).rate("new")).all()


def test_the_papers_learner_has_none() -> None:
    assert (taught(3.0, mode="paper").rate() == taught(None, mode="paper").rate()).all()


def test_it_is_answered_by_workload() -> None:
    learn = taught(3.0, "team-a/w").learn
    assert (learn.turnaround("team-a/w"), learn.turnaround("team-a/x"), learn.turnaround("b/w")) == (3, 3, 0)


def test_capacity_is_that_of_slots_that_are_held_for_longer_than_tasks_run() -> None:
    """As in test_learned_values: ten nodes of four slots, tasks of 2 s; with 3 s more 8 tasks/s, not 20."""
    school = School()
    for _ in range(60):
        uids = [(row, school.begin(row)) for row in range(10) for _ in range(4)]
        school.now += 2.0
        for row, uid in uids:
            school.learn.observe(Completion(row, "w", 2.0, school.now, uid=uid, turnaround=3.0))
            school.learn.left(uid, school.now)
    assert school.learn.load.capacity == pytest.approx(8.0, rel=0.1)


def test_the_faster_a_node_the_more_it_loses() -> None:
    rates = np.array([8.0, 4.0, 1.0, 0.0])
    assert (with_turnaround(rates, 1.0) / np.maximum(rates, 1e-9)).tolist() == [1 / 9, 1 / 5, 1 / 2, 0.0]


# -- what policies and estimates make of it --------------------------------------------------------


class Held(ExactSpeeds):
    """Every slot is held for 5 s beside a run."""

    def turnaround(self, workload: str) -> float:
        del workload
        return 5.0


@pytest.mark.parametrize(("turnaround", "waits"), [(0.0, True), (20.0, False)])
def test_a_pod_waits_for_a_fast_node_only_if_its_slot_soon_serves_again(
    turnaround: float, waits: bool
) -> None:
    """Runs of 1 and 8 s; with 20 s more for each, 2 x 21 s are longer than 28 s."""
    learn = RosellaLearn()
    world = World(make_engine(learn=learn), *(make_node(name, cpu=1) for name in ("fast", "slow")))
    for at in range(40):
        for row, seconds in enumerate((1.0, 8.0)):
            learn.observe(Completion(row, "", seconds, 10.0 * at, turnaround=turnaround))
    world.now = 500.0
    world.add(make_task("a"), make_task("b"))
    assert (world.node_of("a"), world.node_of("b")) == ("fast", "" if waits else "slow")


def test_a_task_holds_its_place_in_a_node_queue_for_its_estimate_and_the_turnaround() -> None:
    world = World(make_engine(learn=Held({"n": 0.1})), make_node("n"))
    view = world.engine._state.view
    assert expected_seconds(view, make_task(estimate=60.0), 0) == 65.0


def test_a_plan_has_it() -> None:
    world = DagWorld(make_engine(BestFit(), Held({"n": 1.0}), order=Carbyne()), [make_node("n", cpu=4)])
    world.submit(job("j", stage("s", 1, 1000, 20.0)))
    assert world.plans["j"][0].finish_seconds == pytest.approx(25.0)


def test_expected_waits_have_it() -> None:
    """One slot, runs of 60 s without variation: half of 65 s, and 65 s for each pod ahead."""
    world = World(make_engine(learn=Held({"n": 1.0})), make_node("n", cpu=1))
    for at in range(5):
        world.add(make_task(f"taught{at}"))
        world.end(f"taught{at}", 60.0)
    world.add(*numbered(3))
    world.sleep(1)
    found = world.engine._state.expected_waits.open
    assert [each.seconds for each in found.values()] == pytest.approx([32.5, 97.5])


def test_a_longer_time_held_varies_less() -> None:
    assert ServiceTime(10.0, 4.0).held(10.0) == ServiceTime(20.0, 1.0)
    assert ServiceTime(10.0, 4.0).held(0.0) == ServiceTime(10.0, 4.0)


@pytest.mark.parametrize(("learn", "shown"), [(Held({"n": 1.0}), 5.0), (ExactSpeeds({"n": 1.0}), None)])
def test_an_explanation_has_it_where_it_is_learned(learn: Learn, shown: float | None) -> None:
    world = World(make_engine(learn=learn), make_node("n", cpu=1))
    world.add(*numbered(2))
    assert explain_pod(world.engine, "default", "t1", world.now).turnaround == shown
