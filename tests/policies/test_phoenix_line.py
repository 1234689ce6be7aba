"""Phoenix's node queues: contended constraints first, within Eagle's limits, and else exactly Eagle's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_engine, make_node, make_spec, make_task
from eclectus.model.commands import Command
from eclectus.model.objects import ClassKey
from eclectus.policies.line.phoenix import ContendedClasses, ContendedFirst
from eclectus.policies.place.eagle import Eagle
from eclectus.sim.runs import build_world
from eclectus.sim.runs import run as simulate
from eclectus.sim.scenario import Scenario
from one_queue import LONG, CountingLine, Reserving, job, one_server, served
from short_scenarios import scenario
from worlds import World, numbered


class CountingPhoenix(CountingLine, ContendedFirst):
    """Contended constraints first, counting."""


def class_of(workload: str) -> ClassKey:
    return make_task(workload=workload).spec, workload


def fix_ratios(line: ContendedFirst, **ratios: float) -> None:
    """The line takes these ratios, by workload, as measured and never measures again; all nodes are busy."""
    classes = line._classes
    classes.ratios = {class_of(workload): ratio for workload, ratio in ratios.items()}
    classes.highest, classes.utilisation, classes.epoch = max(ratios.values()), 1.0, float("inf")


# -- the order of one queue ------------------------------------------------------------------------


def test_the_most_contended_goes_first_as_far_as_the_slack_of_those_before_it_allows() -> None:
    """A is overtaken by C and then has 10 s left, which B and D exceed: A is next, whatever the ratios."""
    line = ContendedFirst()
    fix_ratios(line, A=1.0, B=1.9, C=2.0, D=1.8)
    world = one_server(line)
    for name, seconds in (("A", 10), ("B", 60), ("C", 40), ("D", 40)):
        world.add(*job(name, seconds, workload=name))
    assert served(world) == ["C", "A", "B", "D"]


def test_of_equally_contended_jobs_the_one_with_the_least_remaining_work_goes_first() -> None:
    line = ContendedFirst()
    fix_ratios(line, x=3.0)
    world = one_server(line)
    for name, seconds in (("a", 30), ("b", 20), ("c", 20)):
        world.add(*job(name, seconds, workload="x"))
    assert served(world) == ["b", "c", "a"]


def test_a_long_task_at_the_head_goes_before_the_most_contended() -> None:
    line = ContendedFirst()
    fix_ratios(line, x=3.0)
    world = one_server(line)
    world.add(*job("l", LONG))
    world.add(*job("s", 1, workload="x"))
    assert served(world) == ["l", "s"]


SIZES = st.sampled_from([1.0, 2.0, 5.0, 11.0, 40.0, 90.0, LONG])
ARRIVALS = st.lists(
    st.tuples(SIZES, st.integers(1, 4), st.integers(0, 3), st.sampled_from("abcd")), min_size=2, max_size=14
)


@settings(deadline=None, max_examples=50)
@given(
    arrivals=ARRIVALS,
    ratios=st.tuples(*[st.floats(0.0, 9.0)] * 3),
    reservations=st.integers(1, 3),
    sticky=st.booleans(),
)
def test_nobody_is_overtaken_by_more_than_five_times_its_estimate(
    arrivals: list[tuple[float, int, int, str]],
    ratios: tuple[float, float, float],
    reservations: int,
    sticky: bool,
) -> None:
    """Jobs of four classes arrive, each followed by a few completions; then all tasks run."""
    line = CountingPhoenix()
    fix_ratios(line, **dict(zip("abc", ratios, strict=True)))
    world = one_server(line, Reserving(reservations, sticky))
    for number, (seconds, count, ends, workload) in enumerate(arrivals):
        world.add(*job(f"{number}-", seconds, count, workload))
        for running in list(world.placed())[:ends]:
            world.end(running)
    served(world)
    assert (world.tasks, world.faults) == ({}, [])
    assert line.worst <= 5


# -- what is measured ------------------------------------------------------------------------------

SSD: dict[str, Any] = {"node_selector": (("disk", "ssd"),)}
BOTH: dict[str, Any] = {"node_selector": (("arch", "arm"), ("disk", "ssd"))}


def contended_world() -> World:
    """Two plain nodes, two with an SSD, one of them of arm; all run a pod, and jobs wait at them."""
    labels: list[dict[str, str]] = [{}, {}, {"disk": "ssd"}, {"disk": "ssd", "arch": "arm"}]
    nodes = [make_node(f"n{at}", cpu=2, labels=each) for at, each in enumerate(labels)]
    world = World(make_engine(Eagle(), line=ContendedFirst(), wait_limit=None), *nodes)
    for at in range(4):
        world.put(make_task(f"busy{at}", cpu=2 if at else 1, node=f"n{at}"))
    world.add(*numbered(3, "s", job="s", estimate=5.0, spec=make_spec(cpu=1, **SSD)))
    world.add(*numbered(2, "b", job="b", estimate=5.0, spec=make_spec(cpu=1, **BOTH)))
    world.add(*numbered(4, "f", job="f", estimate=5.0, spec=make_spec(cpu=2)))
    return world


def measured(world: World, at: float = 0.0) -> ContendedClasses:
    classes = ContendedClasses(heartbeat_seconds=5.0)
    classes.refresh(view_at(world, at))
    return classes


def view_at(world: World, now: float) -> Any:
    world.engine._state.begin_step(now)
    return world.engine._state.view


def test_demand_counts_every_unstarted_task_once_and_those_of_narrower_sets_too() -> None:
    """Neither set has a free slot; each job has a reservation at each of its nodes."""
    ratios = measured(contended_world()).ratios
    assert ratios == {(make_spec(cpu=1, **SSD), ""): 5.0, (make_spec(cpu=1, **BOTH), ""): 2.0}


def test_a_wait_is_the_work_that_only_these_nodes_may_do_over_their_slots() -> None:
    """There are five tasks for the two nodes with an SSD, of two slots each, two of them for one alone."""
    world, classes = contended_world(), ContendedClasses(heartbeat_seconds=5.0)
    ssd, both = (make_spec(cpu=1, **SSD), ""), (make_spec(cpu=1, **BOTH), "")
    classes.note(ssd, 12.0, 3)
    classes.note(both, 40.0, 2)
    classes.refresh(view_at(world, 0.0))
    assert classes.waits == {ssd: (3 * 4.0 + 2 * 20.0) / 4, both: 2 * 20.0 / 2}


def test_what_a_task_takes_is_remembered_as_long_as_some_are_queued_and_else_the_usual() -> None:
    world, classes = contended_world(), ContendedClasses(heartbeat_seconds=5.0)
    ssd, both = (make_spec(cpu=1, **SSD), ""), (make_spec(cpu=1, **BOTH), "")
    classes.note(ssd, 30.0, 3)
    for now in (0.0, 5.0):
        classes.refresh(view_at(world, now))
        assert classes.waits == {ssd: 5 * 10.0 / 4, both: 2 * 10.0 / 2}


def test_by_wait_the_set_that_waits_longest_goes_first_whatever_the_ratios() -> None:
    line = ContendedFirst(by="wait")
    fix_ratios(line, few=3.0, slow=2.0)
    line._classes.waits = {class_of("few"): 10.0, class_of("slow"): 30.0}
    world = one_server(line)
    for name, workload in (("a", "few"), ("b", "slow"), ("c", "slow")):
        world.add(*job(name, 20, workload=workload))
    assert served(world) == ["b", "c", "a"]


def test_constraints_that_every_node_satisfies_are_none() -> None:
    nodes = [make_node(f"n{at}", cpu=1, labels={"disk": "ssd"}) for at in range(2)]
    world = World(make_engine(Eagle(), line=ContendedFirst()), *nodes)
    world.add(*numbered(9, job="s", estimate=5.0, spec=make_spec(cpu=1, **SSD)))
    assert measured(world).ratios == {}


def test_what_was_measured_earlier_never_replaces_what_is_known() -> None:
    world = contended_world()
    classes = measured(world, at=100.0)
    known = dict(classes.ratios)
    world.delete("b0")
    for now in (50.0, 100.0, 104.9):
        classes.refresh(view_at(world, now))
        assert (classes.ratios, classes.epoch) == (known, 100.0)
    classes.refresh(view_at(world, 105.0))
    assert classes.epoch == 105.0
    assert classes.ratios[make_spec(cpu=1, **BOTH), ""] == 1.5  # half of the way from 2 to 1


def test_a_class_that_waits_no_more_has_no_ratio() -> None:
    world = contended_world()
    classes = measured(world)
    for at in range(2):
        world.delete(f"b{at}")
    classes.refresh(view_at(world, 5.0))
    assert (make_spec(cpu=1, **BOTH), "") not in classes.ratios


# -- against Eagle ---------------------------------------------------------------------------------


def streams(line: str, load: float, scarce: int, **of_line: Any) -> Scenario:
    """Short jobs, a third of them for nodes with an SSD, and long ones; `scarce` of 40 nodes have one."""
    classes = [
        {"name": "free", "share": 12, "size": {"mean": 5}, "estimate": 5, "tasksPerJob": 5},
        {"name": "ssd", "share": 6, "size": {"mean": 5}, "estimate": 5, "tasksPerJob": 5},
        {"name": "long", "share": 2, "size": {"mean": 60}, "estimate": 60, "tasksPerJob": 3},
    ]
    classes[1]["nodeSelector"] = {"disk": "ssd"}
    work_of_a_task = (12 * 25 + 6 * 25 + 2 * 180) / (12 * 5 + 6 * 5 + 2 * 3)
    groups = [{"name": "ssd", "count": scarce, "labels": {"disk": "ssd"}}]
    groups += [{"name": "plain", "count": 40 - scarce}] if scarce < 40 else []
    profile = {
        "schedulerName": "it",
        "place": {"policy": "eagle", "cutOff": 10},
        "line": {"policy": line, "cutOff": 10, **of_line},
        "learn": {"policy": "none"},
        "waitLimit": None,
    }
    return scenario(
        cluster={"groups": groups},
        workload={"poisson": {"rate": load * 40 / work_of_a_task, "classes": classes}},
        profiles=[profile],
        measure={"tasks": 1500},
    )


def logged(asked: Scenario) -> tuple[list[tuple[float, list[Command]]], float]:
    """Every step that has commands, with its time, and the highest utilisation at any step."""
    world = build_world(asked, asked.profiles[0], seed=4)
    steps: list[tuple[float, list[Command]]] = []
    highest = 0.0

    def observe(now: float, events: object, commands: list[Command]) -> None:
        nonlocal highest
        cluster = world.engine._state.cluster
        highest = max(highest, cluster.used[:, 1].sum() / cluster.allocatable[:, 1].sum())
        if commands:
            steps.append((now, list(commands)))

    world.on_step = observe
    world.run()
    assert world.fault_count == 0, world.first_fault
    return steps, highest


def test_with_constraints_that_all_nodes_satisfy_it_equals_eagle_event_by_event() -> None:
    assert logged(streams("phoenix", 0.9, scarce=40)) == logged(streams("srpt", 0.9, scarce=40))


def test_below_the_utilisation_gate_it_equals_eagle_event_by_event() -> None:
    phoenix, highest = logged(streams("phoenix", 0.1, scarce=14))
    assert highest <= 0.8
    assert phoenix == logged(streams("srpt", 0.1, scarce=14))[0]


@pytest.mark.parametrize("setting", [{"busy": 1.0}, {"contended": 1e9}])
def test_it_reorders_only_while_nodes_are_busy_and_a_constraint_is_contended(
    setting: dict[str, float],
) -> None:
    eagle, _ = logged(streams("srpt", 0.9, scarce=14))
    assert logged(streams("phoenix", 0.9, scarce=14, **setting))[0] == eagle
    assert logged(streams("phoenix", 0.9, scarce=14))[0] != eagle


def test_equal_seeds_give_equal_runs() -> None:
    asked = streams("phoenix", 0.9, scarce=14)
    once, again, other = (simulate(asked, asked.profiles[0], seed) for seed in (1, 1, 2))
    assert once == again != other
