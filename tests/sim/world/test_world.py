"""The simulated world, by the results of runs and by tampering with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from checked_worlds import build_checked
from eclectus.framework import Action, Bind, Place, View
from eclectus.model.events import Event, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies import table
from eclectus.sim.base.machine import InvariantError, StuckError
from eclectus.sim.runs import build_world
from eclectus.sim.world.judge import forbidden
from eclectus.sim.world.world import World
from policy_choices import profile_with
from short_scenarios import place, poisson, runs, scenario

MIXED = {
    "groups": [
        {"name": "slow", "count": 3, "slots": 2},
        {"name": "fast", "count": 2, "slots": 2, "speed": 4, "labels": {"disk": "ssd"}},
        {"name": "big", "count": 1, "resources": {"cpu": 8, "memory": "16Gi"}, "taints": [{"key": "big"}]},
    ]
}
CLASSES = [
    {"name": "any", "share": 6},
    {"name": "ssd", "share": 2, "nodeSelector": {"disk": "ssd"}, "tasksPerJob": 3},
    {"name": "wide", "requests": {"cpu": 2, "memory": "1Gi"}, "tolerations": [{"key": "big"}]},
]
PERTURBATIONS = [
    {"at": "5s", "action": "swap", "group": "slow", "partner": "fast"},
    {"at": "9s", "action": "fail", "group": "fast", "count": 1},
    {"at": "12s", "action": "freeze", "group": "slow", "count": 2},
    {"at": "15s", "action": "scale", "group": "big", "factor": 0.5},
    {"at": "20s", "action": "recover", "group": "slow"},
    {"at": "21s", "action": "recover", "group": "fast"},
]


def world_of(**fields: Any) -> World:
    asked = scenario(**fields)
    return build_checked(asked, asked.profiles[0], seed=1)


@pytest.mark.parametrize("policy", list(table.PLACE))
@pytest.mark.parametrize("delay", [0, "20ms"])
def test_with_perturbations_every_task_of_every_policy_ends_and_all_totals_agree(
    policy: str, delay: object
) -> None:
    perturbed = scenario(
        cluster=MIXED | {"networkDelay": delay},
        workload={"poisson": {"rate": 12, "classes": CLASSES}},
        events=PERTURBATIONS,
        profiles=[{"schedulerName": "it", **profile_with("place", policy), "learn": {"policy": "rosella"}}],
    )
    (run,) = runs(perturbed, [3], checked=True)
    assert (run.complete, run.tasks >= 400, run.faults) == (True, True, 0)
    assert set(run.groups["class"]) == {"any", "ssd", "wide"}


@pytest.mark.parametrize("delay", [0, "20ms"])
def test_with_perturbations_and_probes_every_task_ends(delay: object) -> None:
    perturbed = scenario(
        cluster=MIXED | {"networkDelay": delay},
        workload={"poisson": {"rate": 8, "classes": CLASSES}},
        events=PERTURBATIONS,
        profiles=place("rosella", learn="rosella"),
        probes={
            "perHour": 36_000,
            "leastPerHour": 18_000,
            "running": 6,
            "nodeIntervalSeconds": 0,
            "law": "exponential",
        },
    )
    (run,) = runs(perturbed, [3], checked=True)
    assert (run.complete, run.faults) == (True, 0)
    assert run.probes > 20
    assert run.probes_killed > 0


def test_the_engine_sees_neither_sizes_nor_speeds() -> None:
    seen: list[Event] = []
    world = world_of(workload=poisson(0.5, {"law": "deterministic", "mean": 0.123456789}))
    world.on_step = lambda now, events, commands: seen.extend(events)
    world.run()
    waiting = [event.task for event in seen if isinstance(event, TaskSeen) and event.task.phase == "Pending"]
    assert len(waiting) == 400
    assert all("123456" not in repr(task) for task in waiting)


def test_a_lone_task_takes_its_size_over_the_speed_of_its_node() -> None:
    sized = poisson(0.001, {"law": "deterministic", "mean": 6})
    (run,) = runs(
        scenario(cluster={"groups": [{"speed": 3}]}, workload=sized, measure={"tasks": 5, "warmUp": 0}), [1]
    )
    assert run.response.mean == pytest.approx(2.0)
    assert run.wait.mean == 0


def test_every_hop_of_the_network_costs_its_delay() -> None:
    sized = poisson(0.001, {"law": "deterministic", "mean": 6})
    delayed = {"groups": [{"count": 1}], "networkDelay": "1s"}
    (run,) = runs(scenario(cluster=delayed, workload=sized, measure={"tasks": 5, "warmUp": 0}), [1])
    assert run.wait.mean == pytest.approx(2.0)  # the pod is seen, the bind arrives
    assert run.response.mean == pytest.approx(8.0)


@pytest.mark.parametrize("learn", ["rosella", "truth"])
def test_the_turnaround_that_is_learned_is_that_of_two_hops(learn: str) -> None:
    delayed = {"groups": [{"count": 2, "slots": 2}], "networkDelay": "250ms"}
    asked = scenario(cluster=delayed, workload=poisson(0.5), profiles=place("rosella", learn=learn))
    world = build_world(asked, asked.profiles[0], seed=1)
    world.run()
    assert world.engine.learn.turnaround("any") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("events", "seconds"),
    [
        ([{"at": 4, "action": "scale", "factor": 2}], 7.0),
        ([{"at": 4, "action": "freeze"}, {"at": 9, "action": "recover"}], 15.0),
        ([{"at": 4, "action": "fail"}, {"at": 9, "action": "recover"}], 19.0),
    ],
    ids=["twice as fast after 4 of 10", "frozen for 5", "lost after 4, begun again 5 later"],
)
def test_perturbations_change_when_a_running_task_ends(
    events: list[dict[str, Any]], seconds: float, tmp_path: Any
) -> None:
    (tmp_path / "one.trace").write_text("0 1 10 10\n")
    trace = {"jobtrace": {"file": str(tmp_path / "one.trace")}}
    perturbed = scenario(
        workload=trace, events=[{**each, "group": "g0"} for each in events], measure={"warmUp": 0}
    )
    (run,) = runs(perturbed, [1], checked=True)
    assert run.response.mean == pytest.approx(seconds)


def test_swapped_groups_trade_speeds(tmp_path: Any) -> None:
    (tmp_path / "one.trace").write_text("0 1 10 10\n")
    swapped = scenario(
        cluster={
            "groups": [{"name": "a", "speed": 1}, {"name": "b", "speed": 5, "taints": [{"key": "off"}]}]
        },
        workload={"jobtrace": {"file": str(tmp_path / "one.trace")}},
        events=[{"at": 5, "action": "swap", "group": "a", "partner": "b"}],
        measure={"warmUp": 0},
    )
    (run,) = runs(swapped, [1], checked=True)
    assert run.response.mean == pytest.approx(6.0)


def test_a_world_without_further_events_raises_an_error() -> None:
    frozen = scenario(events=[{"at": 50, "action": "freeze", "group": "g0"}])
    with pytest.raises(StuckError, match=r"no event is left|frozen for ever"):
        runs(frozen, [1])


def test_stopping_keeps_what_is_known() -> None:
    world = world_of(measure={"tasks": 4000})
    assert not world.run(lambda ledger: ledger.ended < 2000)
    assert 2000 <= world.record.ended < 4000
    assert sum(tally.response.count for tally in world.record.tallies.values()) > 0


# -- each invariant can fail -------------------------------------------------------------------------


@dataclass(eq=False)
class Anywhere(Place):
    """Binds to the first row regardless of rules; the engine's own validation is disabled below."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            yield Bind(task, 0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"workload": poisson(0.9)}, "no room"),
        (
            {
                "cluster": {"groups": [{"name": "a", "slots": 50}, {"name": "b", "labels": {"x": "y"}}]},
                "workload": poisson(rate=0.1, classes=[{"nodeSelector": {"x": "y"}}]),
            },
            "its label x is None, not 'y'",
        ),
        (
            {
                "cluster": {
                    "groups": [{"name": "a", "slots": 50, "taints": [{"key": "gpu"}]}, {"name": "b"}]
                },
                "workload": poisson(rate=0.1),
            },
            "nothing tolerates its taint gpu",
        ),
    ],
    ids=["room", "label", "taint"],
)
def test_an_invalid_bind_is_found_by_the_world_itself(
    fields: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eclectus.engine.effects.Placing.validate_place", lambda *_: None)
    monkeypatch.setitem(table.PLACE, "anywhere", Anywhere)
    with pytest.raises(InvariantError, match=words):
        runs(scenario(profiles=place("anywhere"), **fields), [1])


@pytest.mark.parametrize(
    ("total", "words"),
    [
        ("response_seconds", "Little's law"),
        ("work_ended", "work of tasks and of machines"),
        ("busy_seconds", "busy time"),
        ("arrived", "tasks arrived"),
    ],
)
def test_totals_that_disagree_are_found(total: str, words: str) -> None:
    world = world_of()
    setattr(world.record, total, getattr(world.record, total) + 1)
    with pytest.raises(InvariantError, match=words):
        world.run()


def test_a_task_that_the_engine_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    notify = world._notify

    def deaf(event: Event) -> None:
        if not (isinstance(event, TaskSeen) and event.task.name == "job-20-0"):
            notify(event)

    monkeypatch.setattr(world, "_notify", deaf)
    with pytest.raises(InvariantError, match="waiting: engine"):
        world.run()


def check_work_conserving(world: World) -> None:
    """Raise InvariantError if a machine has room for a waiting task that may run there."""
    specs = {run.task.spec for run in world._waiting.values()}
    for machine in world.machines.values():
        for spec in specs if machine.is_up else ():
            if machine.has_room(spec.requests) and not forbidden(spec, machine.node):
                raise InvariantError(f"{machine.node.name} has room for a task that waits")


def test_central_queues_are_work_conserving_and_node_queues_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def conserving(queue: str) -> World:
        cluster, policy = {"groups": [{"count": 4}]}, place("uniform", queue=queue)
        world = world_of(cluster=cluster, workload=poisson(0.8), profiles=policy)
        step = world._step_engine

        def checked_step() -> None:
            step()
            check_work_conserving(world)

        monkeypatch.setattr(world, "_step_engine", checked_step)
        return world

    conserving("central").run()
    with pytest.raises(InvariantError, match="has room for a task that waits"):
        conserving("lines").run()


PRIORITIES = [
    {"name": "low", "share": 4, "size": {"mean": 5}},
    {"name": "high", "priority": 1, "size": {"mean": 1}},
]


@pytest.mark.parametrize("policy", ["least-allocated", "rosella", "clwl", "eagle"])
@pytest.mark.parametrize("delay", [0, "20ms"])
def test_evicted_tasks_run_again_and_all_totals_agree(policy: str, delay: object) -> None:
    profile = place(policy)[0] | {"relieve": {"policy": "preemption"}}
    if policy == "eagle":
        profile["line"] = {"policy": "srpt"}
    crowded = scenario(
        cluster=MIXED | {"networkDelay": delay, "terminationPeriod": "500ms"},
        workload={"poisson": {"rate": 4.5, "classes": PRIORITIES}},
        events=PERTURBATIONS,
        profiles=[profile],
    )
    (run,) = runs(crowded, [3], checked=True)
    assert (run.complete, run.tasks >= 400, run.faults) == (True, True, 0)
    assert run.evictions


def test_preemption_spares_urgent_tasks_the_wait_for_others() -> None:
    def waits(relieve: str) -> dict[str, float]:
        profile = place("least-allocated")[0] | {"relieve": {"policy": relieve}}
        crowded = scenario(
            cluster={"groups": [{"count": 4}], "terminationPeriod": "100ms"},
            workload={"poisson": {"rate": 0.85, "classes": PRIORITIES}},
            profiles=[profile],
        )
        (run,) = runs(crowded, [3], checked=True)
        return {name: result.wait.mean for name, result in run.groups["class"].items()}

    waiting, preempting = waits("none"), waits("preemption")
    assert preempting["high"] < 0.25 * waiting["high"]
    assert preempting["low"] > waiting["low"]
