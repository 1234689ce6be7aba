"""Quincy's running arcs: which pods a round ends for others, for whom, and what is left alone."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Preempt, SettingsError, Wait
from eclectus.maths.min_cost_flow import min_cost_flow, problem_of, routes_of
from eclectus.model.events import BudgetSeen, EvictRefused, NodeGone, NodeSeen, Solved, TaskGone, TaskSeen
from eclectus.model.objects import Budget, GangKey, Input, Requirement, Task
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.quincy import running
from eclectus.policies.quincy.graph import Group, Job, NodeSlots, Reach, Running, network
from eclectus.policies.quincy.place import Quincy
from flow_answers import answer
from worlds import World, numbered

# -- the network ---------------------------------------------------------------------------------------


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def decided(
    groups: list[Group], jobs: list[Job], slots: list[int], ends: list[Running]
) -> tuple[dict[tuple[int, int], int], list[int]]:
    """(group, node) -> pods, and of the pods that run how many of each group stay. All nodes are places."""
    reach = Reach(
        np.arange(len(slots)), ints(*slots), np.zeros(len(slots), dtype=np.int64), ints(*[0] * len(slots))
    )
    of_nodes = NodeSlots(ints(*slots), np.zeros(len(slots), dtype=np.int64), 0, len(slots))
    built = network(groups, jobs, [reach], of_nodes, ends)
    assert problem_of(built.problem) == ""
    flows = min_cost_flow(built.problem)
    assert flows is not None
    placed, stay = dict[tuple[int, int], int](), [0] * len(ends)
    for source, node, pods in built.placed(routes_of(built.problem, flows)):
        if source < len(groups):
            placed[source, node] = placed.get((source, node), 0) + pods
        else:
            stay[source - len(groups)] += pods
    return placed, stay


@pytest.mark.parametrize(("nu", "ends"), [(40, False), (43, False), (45, True), (48, True)])
def test_q3_a_pod_is_ended_where_pods_then_lose_less(nu: int, ends: bool) -> None:
    """One machine; the pod there has run for 20 s and costs 2 if it ends; the new one is local. omega .5."""
    wait = nu * 5  # tenths of seconds
    placed, stay = decided([Group(0, 0, 1, wait)], [Job(), Job()], [1], [Running(1, 0, 1, -200, 20)])
    assert (placed, stay) == (({(0, 0): 1}, [0]) if ends else ({}, [1]))


def test_nobody_is_ended_for_nobody() -> None:
    """Whoever stays where it costs more than to end has an arc that is not used unless its bound says so."""
    no_pods = Group(0, 0, 1, 1)  # it waits rather than to go anywhere
    assert decided([no_pods], [Job(0, 0), Job()], [2], [Running(1, 0, 2, -50, 0)]) == ({}, [2])


def test_bounds_of_jobs_end_pods() -> None:
    """Four places, all of A; B waits. With half of them for each, A ends two and B gets two."""
    groups, ends = [Group(1, 0, 4, 10)], [Running(0, at, 1, -1000, 10) for at in range(4)]
    assert decided(groups, [Job(), Job()], [1] * 4, ends)[1] == [1, 1, 1, 1]
    placed, stay = decided(groups, [Job(2, 2), Job(2, 2)], [1] * 4, ends)
    assert (sum(placed.values()), sum(stay)) == (2, 2)


def test_the_flow_costs_no_more_than_any_other_decision() -> None:
    """Random small cases, against all decisions that there are."""
    rng = Random(5)
    for _ in range(150):
        places = rng.randint(1, 3)
        waits = [
            Group(rng.randrange(2), 0, 1, 10 * rng.randint(0, 9), 10 * rng.randint(0, 5)) for _ in range(3)
        ]
        ends = [
            Running(rng.randrange(2), at, 1, 10 * rng.randint(-6, 3), 10 * rng.randint(0, 9))
            for at in range(places)
        ]
        bounds = [Job(0, rng.randint(1, 4)) for _ in range(2)]
        placed, stay = decided(waits, bounds, [1] * places, ends)
        started = [any(source == at for source, _ in placed) for at in range(len(waits))]
        assert cost_of(waits, ends, started, [bool(each) for each in stay]) == least_cost(waits, ends, bounds)


def cost_of(waits: list[Group], ends: list[Running], started: Any, stay: Any) -> int:
    return sum(
        group.elsewhere if is_started and group.elsewhere is not None else group.waits_at
        for group, is_started in zip(waits, started, strict=True)
    ) + sum(each.stays_at if stays else each.ends_at for each, stays in zip(ends, stay, strict=True))


def least_cost(waits: list[Group], ends: list[Running], bounds: list[Job]) -> int:
    """By trying all; with a unit for each pod that is ended, as the flow ends none for nobody."""
    found = []
    for choice in product((False, True), repeat=len(waits) + len(ends)):
        started, stay = choice[: len(waits)], choice[len(waits) :]
        by_job = [0, 0]
        for each, runs in zip((*waits, *ends), choice, strict=True):
            by_job[each.job] += runs
        if sum(choice) <= len(ends) and all(n <= job.most for n, job in zip(by_job, bounds, strict=True)):  # type: ignore[operator]
            found.append(cost_of(waits, ends, started, stay))
    return min(found)


# -- rounds --------------------------------------------------------------------------------------------


def world(count: int = 1, **settings: Any) -> World:
    given = {"costs": "quincy", "running": "preempt", "min_runtime": 0.0, "min_gain": 0.0, **settings}
    return World(make_engine(Quincy(**given)), *(make_node(f"n{at}", cpu=1) for at in range(count)))


def runs(name: str, node: str = "n0", **fields: Any) -> Task:
    """A pod that runs since 0 and whose work may begin anew."""
    given = {"restartable": True, "started": 0.0, "phase": "Running", "job": "old", **fields}
    return make_task(name, node=node, **given)


def waits(made: World, name: str = "w", **fields: Any) -> World:
    """A pod comes that has waited for a minute: that it waits on costs 30 s."""
    made.add(make_task(name, **{"created": made.now - 60.0, "job": "new", **fields}))
    made.sleep(0.5)
    return made


@pytest.mark.parametrize(("ran", "ended"), [(20.0, ["r"]), (40.0, [])])
def test_a_pod_that_loses_more_gets_the_place(ran: float, ended: list[str]) -> None:
    """It costs the time that the other has run."""
    made = world()
    made.add(runs("r"))
    made.step(after=ran)
    assert waits(made).victims() == ended
    assert made.node_of("w") == ("n0" if ended else "")
    assert made.faults == []
    for evict in made.evictions:
        assert (evict.claim, evict.pool, evict.preemptor_name, evict.node) == ("costs", "", "w", "n0")


def test_the_one_that_waits_is_nominated_until_the_other_has_gone() -> None:
    made = world()
    made.terminates_at_once = False
    made.add(runs("r"), runs("other", restartable=False, node="n1"))
    waits(made)
    assert (made.victims(), made.tasks["w"].nominated, made.placed().keys()) == (["r"], "n0", {"r", "other"})
    waits(made, "second", created=made.now - 50.0)
    made.sleep(5.0)
    assert made.victims() == ["r"]  # its room is held for the first
    made.delete("r")
    assert made.node_of("w") == "n0"


def test_by_default_all_stay() -> None:
    made = world(running="pinned")
    made.add(runs("r"))
    waits(made).sleep(100.0)
    assert (made.victims(), len(made.solves)) == ([], 0)
    assert made.messages("w")[-1][0] == "Unschedulable"


@pytest.mark.parametrize(("name", "ended"), [("pins", []), ("ends", ["r"])])
def test_a_profile_that_ends_none_leaves_alone_what_another_one_may_end(name: str, ended: list[str]) -> None:
    settings: dict[str, Any] = {"min_runtime": 0.0, "min_gain": 0.0}
    profiles = [
        make_profile(Quincy("quincy", **settings), "pins"),
        make_profile(Quincy("quincy", running="preempt", **settings), "ends"),
    ]
    made = World(Engine(profiles, Unlearned(), 0), make_node("n0", cpu=1))
    made.add(runs("r", profile=name))
    assert waits(made, profile=name).victims() == ended


PINNED = {
    "it says nothing": runs("r", restartable=False),
    "its priority is higher": runs("r", priority=1),
    "it is a copy": runs("r", copy_of="uid-other"),
    "it is of a gang": runs("r", gang=GangKey("", "default", "g")),
    "it is of another profile": runs("r", profile="other"),
    "it goes already": runs("r", deleting=True),
}
EVICTORS = {
    "it is a copy": {"copy_of": "uid-other"},
    "it never preempts": {"preempts": False},
}


@pytest.mark.parametrize("name", PINNED)
def test_pods_that_are_never_ended(name: str) -> None:
    made = world()
    made.add(PINNED[name])
    waits(made, created=-10_000.0).sleep(30.0)
    assert (made.victims(), made.faults) == ([], [])
    assert made.messages("w")[-1][0] == "Unschedulable"


@pytest.mark.parametrize("name", EVICTORS)
def test_pods_for_which_nobody_is_ended(name: str) -> None:
    made = world()
    made.add(runs("r"))
    waits(made, created=-10_000.0, **EVICTORS[name]).sleep(30.0)
    assert (made.victims(), made.faults) == ([], [])


def test_a_pod_of_higher_priority_comes_first_whatever_the_other_has_done() -> None:
    made = world()
    made.add(runs("r"))
    made.step(after=10_000.0)
    waits(made, created=made.now, priority=5)
    assert made.victims() == ["r"]


def test_no_bound_of_jobs_ends_a_pod_of_higher_priority_for_one_of_lower() -> None:
    """The fair part of each job is one place, and the old one has both."""
    made = world(2, fair_share=True)
    made.add(runs("a", priority=3), runs("b", "n1", priority=3))
    waits(made, created=-10_000.0, priority=0).sleep(10.0)
    assert (made.victims(), made.faults) == ([], [])
    waits(made, "w2", priority=3, job="new2").sleep(10.0)
    assert len(made.victims()) == 1
    assert made.node_of("w2") in {"n0", "n1"}


def test_a_budget_that_is_used_up_protects() -> None:
    made = world(2)
    made.step(BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("x",)),), 1)))
    made.add(runs("a", labels=(("app", "x"),)), runs("b", "n1", labels=(("app", "x"),)))
    waits(made)
    waits(made, "w2").sleep(10.0)
    assert len(made.victims()) == 1
    assert made.faults == []


def test_pods_run_for_a_time_before_they_may_be_ended() -> None:
    made = world(min_runtime=20.0)
    made.add(runs("r"))
    waits(made, created=-600.0)
    made.sleep(19.0)
    assert made.victims() == []
    assert made.messages("w")[-1][0] == "Unschedulable"  # an autoscaler may add a node
    made.sleep(1.5)  # with no other event
    assert made.victims() == ["r"]


def test_what_is_saved_must_be_worth_it() -> None:
    """30 s less what it has run."""
    for gain, ended in ((15.0, ["r"]), (25.0, [])):
        made = world(min_gain=gain)
        made.add(runs("r"))
        made.step(after=10.0)
        assert waits(made).victims() == ended


def test_room_that_comes_anyway_ends_nobody() -> None:
    """Another pod there is on its way out, and who waits fits once it has gone."""
    made = World(
        make_engine(Quincy("quincy", running="preempt", min_runtime=0.0, min_gain=0.0)),
        make_node("n0", cpu=2),
    )
    made.add(runs("r"), runs("goes", deleting=True))
    waits(made).sleep(5.0)
    assert made.victims() == []
    made.delete("goes")
    made.sleep(2.0)
    assert made.node_of("w") == "n0"


def test_only_as_many_are_ended_as_are_in_the_way() -> None:
    """A pod of two cores: one of one core more must go; what is free counts."""
    made = World(
        make_engine(Quincy("quincy", running="preempt", min_runtime=0.0, min_gain=0.0)),
        make_node("n0", cpu=4),
    )
    made.add(*(runs(f"r{at}", created=float(-at)) for at in range(3)))
    waits(made, cpu=2, created=-600.0)
    assert len(made.victims()) == 1
    assert made.node_of("w") == "n0"


@pytest.mark.parametrize("order", [("r0", "r1"), ("r1", "r0")])
def test_whoever_goes_first_each_place_is_for_one_that_waits(order: tuple[str, str]) -> None:
    made = World(make_engine(Quincy("quincy", running="preempt", min_runtime=0.0)), make_node("n0", cpu=2))
    made.terminates_at_once = False
    made.add(runs("r0"), runs("r1"))
    made.add(*(make_task(f"w{at}", created=made.now - 100.0 + at, job="new") for at in range(2)))
    made.sleep(0.5)
    assert made.victims() == ["r0", "r1"]
    for name in order:
        made.delete(name)
        made.sleep(1.0)
    assert [made.node_of(name) for name in ("w0", "w1")] == ["n0", "n0"]
    assert (len(made.evictions), made.faults) == (2, [])
    assert not [each for each in made.nominations if not each.node]


@pytest.mark.parametrize("fair_share", [False, True])
def test_siblings_do_not_take_each_others_places(fair_share: bool) -> None:
    """However long some wait, and however little others have done: as many of the job wait then."""
    made = world(2, fair_share=fair_share)
    made.add(*(runs(f"r{at}", f"n{at}") for at in range(2)))
    for name in ("w0", "w1"):
        waits(made, name, job="old", created=-1000.0)
    assert (made.victims(), made.faults) == ([], [])


def test_a_sibling_gets_a_place_where_more_is_saved_than_was_done() -> None:
    """The one that runs reads 10 GB of another node, which takes 20 s; the other one has its data here."""
    made = world(1)
    made.step(NodeSeen(make_node("n1", cpu=0.1)))
    made.add(runs("r", inputs=(Input("far", 10 * 10**9, ("n1",)),)))
    made.step(after=10.0)
    waits(made, job="old", inputs=(Input("near", 10 * 10**9, ("n0",)),))
    assert (made.victims(), made.node_of("w"), made.faults) == (["r"], "n0", [])


def test_a_fair_part_for_each_job() -> None:
    """The old job has all six places: three go, the newest, and the new job gets them."""
    made = world(6, fair_share=True)
    made.add(*(runs(f"r{at}", f"n{at}", started=float(at)) for at in range(6)))
    made.step(after=100.0)
    made.add(*numbered(6, "w", job="new"))
    made.sleep(5.0)
    assert sorted(made.victims()) == ["r3", "r4", "r5"]
    assert sum(name.startswith("w") for name in made.placed()) == 3
    made.sleep(100.0)
    assert len(made.evictions) == 3


@pytest.mark.parametrize("terminates_at_once", [False, True])
def test_a_job_whose_pods_come_one_by_one_gets_no_more_than_its_part(terminates_at_once: bool) -> None:
    """Whatever is on its way out or has been promised meanwhile."""
    made = world(6, fair_share=True)
    made.terminates_at_once = terminates_at_once
    made.add(*(runs(f"r{at}", f"n{at}", started=float(at)) for at in range(6)))
    made.step(after=100.0)
    for at in range(6):
        made.add(make_task(f"w{at}", job="new", created=made.now))
        made.sleep(1.0)
    assert len(made.victims()) == 3
    for name in [] if terminates_at_once else made.victims():
        made.delete(name)
    made.sleep(100.0)
    assert len(made.evictions) == 3
    assert sum(name.startswith("w") for name in made.placed()) == 3


def test_a_round_ends_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "EVICTIONS_MOST", 2)
    made = world(6, fair_share=True)
    made.add(*(runs(f"r{at}", f"n{at}") for at in range(6)))
    made.step(after=100.0)
    made.add(*numbered(6, "w", job="new"))
    assert len(made.evictions) == 2
    made.sleep(30.0)
    assert len(made.evictions) == 3


def test_free_room_is_taken_before_a_pod_is_ended() -> None:
    made = world(2)
    made.add(runs("r"))
    assert waits(made).victims() == []
    assert made.node_of("w") == "n1"


def test_a_refused_eviction_spares_the_pod_and_frees_the_one_that_waits() -> None:
    made = world()
    made.terminates_at_once = False
    made.add(runs("r"))
    waits(made)
    made.step(EvictRefused("uid-r", "no"))
    made.settle()
    made.tasks["r"] = replace(made.tasks["r"], deleting=False)
    made.step(TaskSeen(made.tasks["r"]), after=0.1)
    assert made.tasks["w"].nominated == ""
    assert made.faults == []


# -- answers that come late --------------------------------------------------------------------------


def asked() -> tuple[World, Solved]:
    """Two pods run, two wait, and the answer, which ends both, is not given yet."""
    made = world(2)
    made.answers_solves = False
    made.add(runs("a"), runs("b", "n1"))
    made.add(*(make_task(f"w{at}", created=-60.0, job="new") for at in range(2)))
    found = answer(made.engine, made.solves[-1])
    assert found is not None
    return made, found


def test_an_answer_ends_pods_when_it_comes() -> None:
    made, solved = asked()
    made.step(solved, after=2.0)
    made.settle()
    assert sorted(made.victims()) == ["a", "b"]
    assert {made.node_of("w0"), made.node_of("w1")} == {"n0", "n1"}


def test_a_place_whose_pod_has_gone_is_taken_without_ending_another() -> None:
    made, solved = asked()
    made.tasks.pop("a")
    made.step(TaskGone("uid-a"), solved, after=2.0)
    made.settle()
    assert made.victims() == ["b"]
    assert {made.node_of("w0"), made.node_of("w1")} == {"n0", "n1"}


def test_nobody_is_ended_on_a_node_that_has_gone_nor_for_a_pod_that_has() -> None:
    made, solved = asked()
    made.tasks.pop("w0")
    made.step(NodeGone("n0"), TaskGone("uid-w0"), solved, after=2.0)
    made.settle()
    assert set(made.victims()) <= {"b"}
    assert made.faults == []


def test_a_pod_that_is_another_one_by_now_is_left_alone() -> None:
    """Its priority was raised since, or it does not say any more that it may be ended."""
    made, solved = asked()
    for name, changes in (("a", {"restartable": False}), ("b", {"priority": 9})):
        made.tasks[name] = replace(made.tasks[name], **changes)
    made.step(*(TaskSeen(made.tasks[name]) for name in ("a", "b")), solved, after=2.0)
    made.settle()
    assert (made.victims(), made.faults) == ([], [])


def test_without_a_solver_nobody_is_ended() -> None:
    made, _ = asked()
    made.sleep(20.0)
    assert (made.victims(), made.faults) == ([], [])
    made.answers_solves = True
    made.sleep(20.0)
    assert sorted(made.victims()) == ["a", "b"]


# -- what the engine refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("victims", "problem"),
    [
        ((), "no pod, or one twice"),
        ((runs("r"), runs("r")), "no pod, or one twice"),
        ((runs("r", "n1"),), "not bound"),
        ((runs("r", restartable=False),), "may begin anew"),
        ((runs("r", priority=7),), "higher priority"),
        ((runs("r", pool="else"),), "another pool"),
        ((runs("r", copy_of="uid-x"),), "a copy"),
    ],
)
def test_an_engine_refuses_what_must_not_be_ended(victims: tuple[Task, ...], problem: str) -> None:
    class Wrong(Quincy):
        def place(self, view: Any, pending: Any) -> Any:
            for task in pending:
                yield Preempt(task, 0, victims, Wait(until=view.now + 1.0))

    made = World(make_engine(Wrong(running="preempt")), make_node("n0", cpu=1), make_node("n1", cpu=1))
    made.add(*victims[:1])
    made.add(make_task("w"))
    assert problem in made.faults[0].message
    assert made.victims() == []


def test_costs_that_are_no_times_know_no_time_that_a_pod_has_run() -> None:
    for costs in ("load-spreading", "network"):
        with pytest.raises(SettingsError, match="times"):
            Quincy(costs, running="preempt")


def test_by_run_times_the_pod_that_has_waited_for_longer_gets_the_place() -> None:
    engine = make_engine(
        Quincy(running="preempt", min_runtime=0.0, min_gain=0.0), learn=ExactSpeeds({"n0": 0.1})
    )
    made = World(engine, make_node("n0", cpu=1))
    made.add(runs("r"))
    made.step(after=20.0)
    waits(made, created=made.now - 10.0)
    assert made.victims() == []
    made.delete("w")
    assert waits(made, "w2", created=made.now - 60.0).victims() == ["r"]
