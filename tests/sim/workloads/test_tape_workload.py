"""Workload tape: the recorded pods arrive again, from live or simulated tapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import Spec, Task
from eclectus.sim.base.work import Arrival
from eclectus.sim.runs import run
from eclectus.sim.scenario import Scenario, parse
from eclectus.sim.workloads.live_tape import LEAST_SECONDS
from eclectus.tape import Header, TapeWriter
from short_scenarios import document, place, poisson

CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles: [{schedulerName: eclectus, place: {policy: uniform}}]
"""
START = 1000.0
TimedEvents = list[tuple[float, list[Event]]]
MakeScenario = Callable[..., Scenario]


@pytest.fixture
def scenario_of_tape(tmp_path: Path) -> MakeScenario:
    """A function that writes a tape with these timed events and returns a scenario with it."""

    def made(events_by_time: TimedEvents, **settings: Any) -> Scenario:
        with TapeWriter(tmp_path / "t.tape", Header("0", CONFIGURATION, 1)) as recorder:
            recorder.step(START, [NodeSeen(make_node("old")), NodeSeen(make_node("new")), Resumed()], [])
            for at, events in events_by_time:
                recorder.step(START + at, events, [])
        return asked(tmp_path, file="t.tape", **settings)

    return made


def asked(folder: Path, **settings: Any) -> Scenario:
    groups = [{"count": 4, "resources": {"cpu": 4, "memory": "8Gi"}}]
    fields = document(
        cluster={"groups": groups},
        workload={"tape": settings},
        measure={"warmUp": 0},
        profiles=place("uniform"),
    )
    return parse(yaml.safe_dump(fields | {"allowUnstable": True}, sort_keys=False), folder)


def life(
    task: Task, came: float, started: float = inf, ended: float = inf, node: str = "old"
) -> Iterator[Any]:
    """The events of a pod that a watch delivers."""
    yield came, [TaskSeen(task)]
    if started < inf:
        runs = replace(task, node=node, phase="Running", started=START + started)
        yield max(came, started), [TaskSeen(runs)]
        if ended < inf:
            yield max(came, ended), [TaskSeen(replace(runs, phase="Succeeded", finished=START + ended))]


def timed(*lives: Iterator[Any]) -> TimedEvents:
    return sorted((event for each in lives for event in each), key=lambda event: event[0])


def jobs(scenario: Scenario) -> list[Arrival]:
    return list(scenario.plan.arrivals(1))


def test_a_pod_arrives_at_its_time_and_its_size_is_its_running_time_at_speed_1(
    scenario_of_tape: MakeScenario,
) -> None:
    task = replace(make_task("a", workload="web"), priority=3, estimate=7.0)
    (job,) = jobs(scenario_of_tape(timed(life(task, 2.5, 4.0, 10.0))))
    assert (job.at, job.sizes, job.estimate) == (2.5, (6.0,), 7.0)
    assert (job.work_class.name, job.work_class.spec, job.work_class.priority) == ("web", task.spec, 3)


def test_sizes_are_running_times_times_the_speed_of_the_recorded_node(scenario_of_tape: MakeScenario) -> None:
    events_by_time = timed(life(make_task("a"), 0, 1, 3, "old"), life(make_task("b"), 0, 1, 3, "new"))
    assert [job.sizes for job in jobs(scenario_of_tape(events_by_time, speeds={"n?w": 4, "*": 0.5}))] == [
        (1.0,),
        (8.0,),
    ]


def test_times_can_be_stretched_and_sizes_stay(scenario_of_tape: MakeScenario) -> None:
    (job,) = jobs(scenario_of_tape(timed(life(make_task("a"), 2, 4, 10)), stretch=0.5))
    assert (job.at, job.sizes) == (1.0, (6.0,))


def test_a_long_running_pod_never_ends(scenario_of_tape: MakeScenario) -> None:
    service = make_task("s", spec=Spec(long_running=True))
    assert [job.sizes for job in jobs(scenario_of_tape(timed(life(service, 0, 1, 5))))] == [(inf,)]


def test_a_pod_that_still_runs_at_the_end_has_the_observed_size(scenario_of_tape: MakeScenario) -> None:
    events_by_time = timed(life(make_task("a"), 0, 1), life(make_task("b"), 0, 2, 9))
    assert [job.sizes for job in jobs(scenario_of_tape(events_by_time))] == [(8.0,), (7.0,)]


def test_a_pod_that_never_started_has_the_mean_size_of_its_class_and_its_patience(
    scenario_of_tape: MakeScenario,
) -> None:
    waiting, deleted, strange = (make_task(uid, workload=kind) for uid, kind in ("wx", "dx", "sy"))
    events_by_time = timed(
        life(make_task("a", workload="x"), 0, 1, 3),
        life(make_task("b", workload="x"), 0, 1, 7),
        life(waiting, 1),
        life(deleted, 2),
        iter([(6.0, [TaskGone("uid-d")])]),
        life(strange, 3),
    )
    found = [(job.at, job.sizes, job.patience) for job in jobs(scenario_of_tape(events_by_time))]
    assert found[2:] == [(1.0, (4.0,), inf), (2.0, (4.0,), 4.0)]


def test_a_pod_deleted_while_it_ran_ended_then(scenario_of_tape: MakeScenario) -> None:
    events_by_time = timed(life(make_task("a"), 0, 1), iter([(4.0, [TaskGone("uid-a")]), (9.0, [])]))
    assert [job.sizes for job in jobs(scenario_of_tape(events_by_time))] == [(3.0,)]


def test_a_pod_that_ran_before_the_tape_has_the_rest_of_its_size(scenario_of_tape: MakeScenario) -> None:
    events_by_time = timed(life(make_task("a"), 0, -50, 20), life(make_task("b"), 0, -50, -10))
    assert [(job.at, job.sizes) for job in jobs(scenario_of_tape(events_by_time))] == [(0.0, (20.0,))]


def test_a_pod_that_ended_without_having_run_is_left_out(scenario_of_tape: MakeScenario) -> None:
    refused = replace(make_task("r"), phase="Failed", node="old")
    events_by_time = timed(
        life(make_task("a"), 0, 1, 2), iter([(1.0, [TaskSeen(make_task("r"))]), (2.0, [TaskSeen(refused)])])
    )
    assert len(jobs(scenario_of_tape(events_by_time))) == 1


def test_a_gated_pod_arrives_when_its_last_gate_is_removed(scenario_of_tape: MakeScenario) -> None:
    gated = replace(make_task("a"), gates=("g",))
    events_by_time = [(0.0, [TaskSeen(gated)]), *life(make_task("a"), 5, 6, 8)]
    assert [job.at for job in jobs(scenario_of_tape(events_by_time))] == [5.0]


def test_pods_of_other_schedulers_are_left_out(scenario_of_tape: MakeScenario) -> None:
    foreign = replace(make_task("f"), profile="default-scheduler")
    assert len(jobs(scenario_of_tape(timed(life(foreign, 0, 1, 2), life(make_task("a"), 0, 1, 2))))) == 1


def test_a_pod_too_short_for_the_clocks_has_the_least_size(scenario_of_tape: MakeScenario) -> None:
    assert [job.sizes for job in jobs(scenario_of_tape(timed(life(make_task("a"), 0, 1, 1))))] == [
        (LEAST_SECONDS,)
    ]


def test_a_tape_of_a_simulation_gives_the_same_run(tmp_path: Path) -> None:
    groups = [{"name": "slow", "count": 3}, {"name": "fast", "count": 3, "speed": 4}]
    profiles = place("least-allocated")
    fields = {"cluster": {"groups": groups}, "profiles": profiles, "measure": {"tasks": 500, "warmUp": 0}}
    first = parse(yaml.safe_dump(document(workload=poisson(0.8, {"mean": 100}), **fields)))
    once = run(first, first.profiles[0], 1, tape=tmp_path / "t.tape.gz")
    recorded = {"tape": {"file": "t.tape.gz", "speeds": {"fast-*": 4}}}
    second = parse(yaml.safe_dump(document(workload=recorded, **fields)), tmp_path)
    again = run(second, second.profiles[0], 1)
    assert again.response.count == once.response.count == 500
    assert again.response.mean == pytest.approx(once.response.mean, rel=1e-9)
    assert again.wait.mean == pytest.approx(once.wait.mean, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "workload.tape.file: t.tape contains no pod that ran"),
        ({"speeds": {"odl": 2}}, "workload.tape.speeds.odl: matches no node on the tape; did you mean 'old'"),
        ({"speeds": {"old": 0}}, "workload.tape.speeds.old: 0 is too small"),
    ],
)
def test_invalid_settings_are_refused(
    scenario_of_tape: MakeScenario, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        scenario_of_tape([], **settings)


def test_a_missing_tape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"workload.tape.file: t.tape cannot be read: .*No such file"):
        asked(tmp_path, file="t.tape")


def test_a_file_that_is_not_a_tape_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tape").write_text("apiVersion: v1\n")
    with pytest.raises(SettingsError, match=r"t\.tape is not a tape of format 2 or 3"):
        asked(tmp_path, file="t.tape")


def test_a_tape_with_unknown_settings_is_refused(tmp_path: Path) -> None:
    old = CONFIGURATION.replace("uniform", "bygone")
    with TapeWriter(tmp_path / "t.tape", Header("0", old, 1)):
        pass
    with pytest.raises(SettingsError, match=r"configuration in t\.tape: profiles\[0\].*'bygone'"):
        asked(tmp_path, file="t.tape")
