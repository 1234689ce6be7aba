"""Hawk, Eagle and the least-wait policies: short tasks beside long ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_task
from checked_worlds import run_checked
from eclectus.framework import Action, Enqueue, Place, View
from eclectus.model.objects import Reservation, Task
from eclectus.policies import table
from eclectus.policies.place.clwl import CentralLeastWait, DistributedLeastWait
from eclectus.policies.shared import LEAST_WAIT
from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import build_world
from eclectus.sim.runs import run as simulate
from eclectus.sim.scenario import Scenario
from hybrid_runs import CLASSES, CUT_OFF, behind_long, is_long, mixed
from short_scenarios import scenario
from worlds import numbered, small_world

# -- Eagle -----------------------------------------------------------------------------------------


def shorts_behind_long(asked: Scenario) -> int:
    """How often a short reservation was behind a long task, over all node queues and steps."""
    world = build_world(asked, asked.profiles[0], seed=1)
    seen = 0

    def observe(now: float, events: object, commands: object) -> None:
        nonlocal seen
        engine = world.engine
        seen += sum(1 for row in engine._state.node_queues.by_row for _ in behind_long(engine, row))

    world.on_step = observe
    world.run()
    assert world.fault_count == 0, world.first_fault
    return seen


@pytest.mark.parametrize("line", ["srpt", "phoenix"])
@pytest.mark.parametrize("long", [16.0, 4.5], ids=["long", "so short that it could compete"])
def test_in_eagle_no_short_task_ever_waits_behind_a_long_one(line: str, long: float) -> None:
    assert shorts_behind_long(mixed("eagle", line, long=long)) == 0


@pytest.mark.parametrize(("place", "line"), [("sparrow", "fifo"), ("hawk", "stealing"), ("clwl", "fifo")])
def test_the_same_check_finds_such_tasks_with_other_policies(place: str, line: str) -> None:
    assert shorts_behind_long(mixed(place, line)) > 0


def test_a_reservation_of_eagle_stays_until_all_tasks_of_its_job_have_started() -> None:
    world = small_world(make_engine(table.PLACE["eagle"](), line=table.LINE["srpt"]()), nodes=1, cpu=1)
    world.add(*numbered(3, "a", job="a", estimate=5.0))
    world.add(*numbered(1, "b", job="b", estimate=50.0))
    order = []
    while placed := world.placed():
        order += placed
        world.end(*placed)
    assert order == ["a0", "a1", "a2", "b0"]


# -- Hawk ------------------------------------------------------------------------------------------


@dataclass
class Steal:
    """One stolen reservation."""

    reservation: Reservation
    is_short: bool
    was_behind_long: bool
    may_run: bool
    thief_was_idle: bool


def steals(asked: Scenario, monkeypatch: pytest.MonkeyPatch) -> list[Steal]:
    world = build_world(asked, asked.profiles[0], seed=2)
    state, found = world.engine._state, []
    move = state.node_queues.move

    def watched(reservation: Reservation, row: int, to: int) -> None:
        behind = reservation in list(behind_long(world.engine, row))
        may_run = state.view.classes.current(*reservation.class_key).may_wait(to)
        idle = not list(state.placed.on_row(to))
        found.append(Steal(reservation, not is_long(reservation.head), behind, may_run, idle))
        move(reservation, row, to)

    monkeypatch.setattr(state.node_queues, "move", watched)
    world.run()
    assert world.fault_count == 0, world.first_fault
    return found


def test_idle_nodes_of_hawk_steal_short_tasks_behind_long_ones_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = steals(mixed("hawk", "stealing"), monkeypatch)
    assert len(found) > 20
    assert all(each.is_short and each.was_behind_long for each in found)
    assert all(each.may_run and each.thief_was_idle for each in found)


def test_stealing_shortens_the_wait_of_short_tasks() -> None:
    def wait(attempts: int) -> float:
        asked = mixed("hawk", "stealing", attempts=attempts)
        return simulate(asked, asked.profiles[0], 3).groups["class"]["short"].wait.mean

    assert wait(10) < 0.8 * wait(0)


def test_a_node_that_runs_only_services_steals() -> None:
    hawk, line = table.PLACE["hawk"](cut_off=CUT_OFF, long_share=1.0), table.LINE["stealing"](cut_off=CUT_OFF)
    world = small_world(make_engine(hawk, line=line), nodes=2, cpu=2)
    for at in range(2):
        world.put(make_task(f"daemon{at}", node=f"n{at}", long_running=True))
    world.put(make_task("l0", node="n0", estimate=16.0))
    world.put(make_task("l1", node="n1", estimate=16.0))
    world.add(*numbered(2, "s", estimate=1.0))
    world.add(make_task("t", estimate=1.0, created=9.0))
    world.end("l1")
    while ended := [name for name, node in world.placed().items() if node == "n1" and name[0] in "st"]:
        world.end(*ended)
    assert not any(name[0] in "st" for name in world.tasks)


# -- least wait ------------------------------------------------------------------------------------


@dataclass(eq=False)
class PlainLeastWait(CentralLeastWait):
    """A plain computation of CLWL: reads every node before every task."""

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        for task in pending:
            rows = view.task_class(task).waitable_rows
            if self.is_long(task):
                rows = self.rows_for_long(view, rows)
            yield Enqueue(task, min(rows.tolist(), key=lambda row: (self._wait(view, task, row), row)))

    def _wait(self, view: View, task: Task, row: int) -> float:
        task_class = view.task_class(task)
        if task_class.fits_now[row]:
            return 0.0
        left = [max(since + seconds(one) - view.now, 0.0) for one, since in view.placed.on_row(row)]
        line = [seconds(one) for reservation in view.node_queues.get(row, ()) for one in reservation.tasks]
        return max((fsum(left) + fsum(line)) / float(task_class.service_slots[row]), LEAST_WAIT)


def seconds(task: Task) -> float:
    assert task.estimate is not None
    return task.estimate


def run_with(kind: type[Place], asked: Scenario, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    monkeypatch.setitem(table.PLACE, "clwl", kind)
    return run_checked(asked, asked.profiles[0], seed=1)


def test_clwl_equals_a_plain_computation_at_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = mixed("clwl", "fifo", tasks=600)
    fast, plain = (run_with(kind, asked, monkeypatch) for kind in (CentralLeastWait, PlainLeastWait))
    assert fast == plain


@pytest.mark.parametrize("kind", [CentralLeastWait, DistributedLeastWait])
def test_a_full_node_whose_tasks_run_longer_than_estimated_waits_longer_than_one_with_room(
    kind: type[CentralLeastWait],
) -> None:
    world = small_world(make_engine(kind(long_share=1.0)), nodes=2, cpu=1)
    world.add(make_task("overdue", estimate=1.0))
    world.sleep(100.0)
    world.add(make_task("next", estimate=1.0))
    assert world.placed() == {"overdue": "n0", "next": "n1"}


def test_dlwl_with_a_heartbeat_of_0_equals_clwl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On single slots: with several, what was placed since the heartbeat is divided evenly by all slots."""
    groups = {"groups": [{"count": 30}]}
    classes = [{"name": "short", **CLASSES["short"]}]
    classes.append({"name": "long", "size": {"mean": 16}, "estimate": 16, **CLASSES["long"]})
    central = _least_wait("clwl", groups, classes)
    assert run_with(CentralLeastWait, central, monkeypatch) == run_with(
        WithoutHeartbeat, central, monkeypatch
    )


@dataclass(eq=False)
class WithoutHeartbeat(DistributedLeastWait):
    """Updates the waits for every job."""

    heartbeat: float = 0.0


def _least_wait(policy: str, cluster: dict[str, Any], classes: list[dict[str, Any]]) -> Scenario:
    profile = {
        "schedulerName": "it",
        "place": {"policy": policy, "cutOff": CUT_OFF},
        "learn": {"policy": "none"},
    }
    workload = {"poisson": {"load": 0.8, "classes": classes}}
    return scenario(cluster=cluster, workload=workload, profiles=[profile], measure={"tasks": 600})


def test_between_heartbeats_dlwl_counts_what_it_placed_and_not_what_ended() -> None:
    policy = DistributedLeastWait(heartbeat=1000.0, long_share=1.0)
    world = small_world(make_engine(policy, wait_limit=None), nodes=2, cpu=1)
    world.add(make_task("long", estimate=100.0, workload="long"))
    world.add(make_task("a", estimate=1.0, workload="short"))
    assert world.placed() == {"long": "n0", "a": "n1"}
    world.end("long")
    world.add(make_task("b", estimate=1.0, workload="short"))
    assert world.node_of("b") == ""
    world.sleep(2000.0)
    world.add(make_task("c", estimate=1.0, workload="short"))
    assert world.node_of("c") == "n0"


def test_tasks_without_an_estimate_avoid_a_node_of_speed_0() -> None:
    world = small_world(make_engine(CentralLeastWait(), ExactSpeeds({"n0": 0.0})), nodes=2, cpu=1)
    world.add(*numbered(5))
    assert (len(world.engine._state.node_queues.by_row[1]), world.faults) == (3, [])
