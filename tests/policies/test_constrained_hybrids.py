"""Sparrow, Hawk, Eagle and least waits with constraints: a job keeps to the nodes that may run it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from checked_worlds import build_checked
from eclectus.framework import Line
from eclectus.policies import table
from eclectus.policies.line.srpt import ShortestRemaining
from eclectus.policies.place.eagle import Eagle
from eclectus.policies.place.hawk import Hawk
from hybrid_runs import behind_long, mixed
from worlds import World, numbered

CUT_OFF = 4.0
LONG = 100.0  # seconds
SSD: dict[str, Any] = {"node_selector": (("disk", "ssd"),)}


def nodes_with_ssd(place: Any, ssd: set[int], nodes: int = 10, line: Line | None = None) -> World:
    """Nodes n0, n1, … of one slot; those named have an SSD."""
    made = [make_node(f"n{at}", cpu=1, labels={"disk": "ssd"} if at in ssd else {}) for at in range(nodes)]
    engine = make_engine(place, line=line or ShortestRemaining(cut_off=CUT_OFF), wait_limit=None)
    return World(engine, *made)


def fill(world: World, nodes: set[int], seconds: float = 1.0) -> None:
    """One running pod of this estimate on each of the nodes."""
    for at in sorted(nodes):
        world.put(make_task(f"on{at}", node=f"n{at}", estimate=seconds))


def reservations(world: World) -> Counter[int]:
    """How many reservations wait at each row."""
    return Counter({row: len(queue) for row, queue in world.engine._state.node_queues.by_row.items()})


# -- probes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["sparrow", "hawk", "eagle"])
def test_where_constraints_leave_no_more_nodes_than_probes_each_of_them_is_probed(policy: str) -> None:
    """A job of 14 tasks has 28 reservations; 12 of the 20 nodes may run it."""
    may_run = set(range(8, 20))
    world = nodes_with_ssd(table.PLACE[policy](), may_run, nodes=20)
    fill(world, may_run)
    world.add(*numbered(14, job="j", estimate=1.0, **SSD))
    found = reservations(world)
    assert set(found) == may_run
    assert set(found.values()) <= ({1} if policy == "eagle" else {2, 3})


def test_a_probe_that_is_rejected_goes_nowhere_where_all_other_nodes_have_one() -> None:
    world = nodes_with_ssd(Eagle(cut_off=CUT_OFF), {6, 7, 8, 9})
    fill(world, {6, 7}, LONG)
    fill(world, {8, 9})
    world.add(*numbered(3, job="j", estimate=1.0, **SSD))
    assert reservations(world) == {8: 1, 9: 1}


def test_what_is_rejected_everywhere_goes_to_the_nodes_for_short_tasks_that_may_run_it() -> None:
    """n0 and n1 get no long tasks from Eagle, and only n1 has an SSD; it has one of another scheduler."""
    world = nodes_with_ssd(Eagle(cut_off=CUT_OFF, long_share=0.8), {1, 8, 9})
    fill(world, {1, 8, 9}, LONG)
    world.add(*numbered(3, job="j", estimate=1.0, **SSD))
    assert reservations(world) == {1: 1}


def test_with_no_such_node_a_short_job_waits_behind_long_tasks_and_runs_when_they_end() -> None:
    world = nodes_with_ssd(Eagle(cut_off=CUT_OFF, long_share=0.8), {8, 9})
    fill(world, {8, 9}, LONG)
    world.add(*numbered(2, job="j", estimate=1.0, **SSD))
    assert [len(list(behind_long(world.engine, row))) for row in (8, 9)] == [1, 1]
    world.end("on9")
    assert (world.node_of("t0"), world.node_of("t1")) == ("n9", "")


@pytest.mark.parametrize("policy", ["hawk", "eagle", "clwl", "dlwl"])
def test_long_tasks_are_placed_on_the_nodes_that_may_run_them(policy: str) -> None:
    line = "stealing" if policy == "hawk" else "srpt"
    place, chosen = table.PLACE[policy](cut_off=CUT_OFF), table.LINE[line](cut_off=CUT_OFF)  # type: ignore[call-arg]
    world = nodes_with_ssd(place, {4, 7}, line=chosen)
    world.add(*numbered(6, estimate=LONG, **SSD))
    assert sorted(world.placed().values()) == ["n4", "n7"]
    assert reservations(world) == {4: 2, 7: 2}


# -- stealing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("thief", "taken"), [(3, ["t0", "s0"]), (5, ["s0"])], ids=["ssd", "plain"])
def test_a_thief_takes_from_behind_a_long_task_only_what_it_may_run(thief: int, taken: list[str]) -> None:
    """t needs an SSD, s does not, and both wait at n4 behind a long task; one other node becomes idle."""
    line = table.LINE["stealing"](cut_off=CUT_OFF, long_share=1.0, attempts=1000)  # type: ignore[call-arg]
    world = nodes_with_ssd(Hawk(cut_off=CUT_OFF, long_share=1.0), {3, 4}, nodes=6, line=line)
    fill(world, {0, 1, 2, 3, 5})
    fill(world, {4}, LONG)
    state = world.engine._state
    for name, fields in (("t0", SSD), ("s0", {})):
        task = make_task(name, estimate=1.0, **fields)
        world.add(task)
        reservation = state.places.reservation(task.uid)
        assert reservation is not None
        while set(reservation.rows) != {4}:  # all of its reservations are at the node with the long task
            state.node_queues.move(reservation, next(row for row in reservation.rows if row != 4), 4)
    world.end(f"on{thief}")
    while any(world.tasks[name].node == f"n{thief}" for name in world.tasks):
        world.end(next(name for name in world.tasks if world.tasks[name].node == f"n{thief}"))
    assert [bind.name for bind in world.binds] == taken


# -- loss of nodes ---------------------------------------------------------------------------------

LINES = [
    ("sparrow", "fifo"),
    ("hawk", "stealing"),
    ("eagle", "srpt"),
    ("eagle", "phoenix"),
    ("clwl", "fifo"),
    ("dlwl", "srpt"),
]


@pytest.mark.parametrize(("place", "line"), LINES)
def test_every_job_ends_although_a_fifth_of_the_nodes_fails(place: str, line: str) -> None:
    """The world raises at the end of a run if a task has not ended; what runs on lost nodes begins again."""
    lost = [("ssd", 3), ("plain", 5), ("wide", 1)]
    fails = [{"at": "20s", "action": "fail", "group": group, "count": count} for group, count in lost]
    asked = mixed(place, line, tasks=800, events=fails)
    world = build_checked(asked, asked.profiles[0], seed=3)
    assert world.run()
    assert world.fault_count == 0, world.first_fault
    assert world.record.settled == world.record.arrived >= 800
    assert sum(not machine.is_up for machine in world.machines.values()) == 9
