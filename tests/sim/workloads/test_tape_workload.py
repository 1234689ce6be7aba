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
from eclectus.sim.run import run
from eclectus.sim.scenario.reading import parse
from eclectus.sim.scenario.scenario import Scenario
from eclectus.sim.workloads.live_tape import LEAST_SECONDS
from eclectus.tape import Header, TapeWriter
from simulated import document, place, poisson

CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles: [{schedulerName: eclectus, place: {policy: uniform}}]
"""
START = 1000.0
Told = list[tuple[float, list[Event]]]
Say = Callable[..., Scenario]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """A function that writes a tape with these timed events and returns a scenario with it."""

    def made(words: Told, **settings: Any) -> Scenario:
        with TapeWriter(tmp_path / "t.tape", Header("0", CONFIGURATION, 1)) as recorder:
            recorder.step(START, [NodeSeen(make_node("old")), NodeSeen(make_node("new")), Resumed()], [])
            for at, events in words:
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


def told(*lives: Iterator[Any]) -> Told:
    return sorted((word for each in lives for word in each), key=lambda word: word[0])


def jobs(scenario: Scenario) -> list[Arrival]:
    return list(scenario.plan.arrivals(1))


def test_a_pod_arrives_at_its_time_and_its_size_is_its_running_time_at_speed_1(say: Say) -> None:
    task = replace(make_task("a", workload="web"), priority=3, estimate=7.0)
    (job,) = jobs(say(told(life(task, 2.5, 4.0, 10.0))))
    assert (job.at, job.sizes, job.estimate) == (2.5, (6.0,), 7.0)
    assert (job.work_class.name, job.work_class.spec, job.work_class.priority) == ("web", task.spec, 3)


def test_sizes_are_running_times_times_the_speed_of_the_recorded_node(say: Say) -> None:
    words = told(life(make_task("a"), 0, 1, 3, "old"), life(make_task("b"), 0, 1, 3, "new"))
    assert [job.sizes for job in jobs(say(words, speeds={"n?w": 4, "*": 0.5}))] == [(1.0,), (8.0,)]


def test_times_can_be_stretched_and_sizes_stay(say: Say) -> None:
    (job,) = jobs(say(told(life(make_task("a"), 2, 4, 10)), stretch=0.5))
    assert (job.at, job.sizes) == (1.0, (6.0,))


def test_a_service_never_ends(say: Say) -> None:
    service = make_task("s", spec=Spec(long_running=True))
    assert [job.sizes for job in jobs(say(told(life(service, 0, 1, 5))))] == [(inf,)]


def test_a_pod_that_still_runs_at_the_end_has_the_observed_size(say: Say) -> None:
    words = told(life(make_task("a"), 0, 1), life(make_task("b"), 0, 2, 9))
    assert [job.sizes for job in jobs(say(words))] == [(8.0,), (7.0,)]


def test_a_pod_that_never_started_has_the_mean_size_of_its_class_and_its_patience(say: Say) -> None:
    waiting, deleted, strange = (make_task(uid, workload=kind) for uid, kind in ("wx", "dx", "sy"))
    words = told(
        life(make_task("a", workload="x"), 0, 1, 3),
        life(make_task("b", workload="x"), 0, 1, 7),
        life(waiting, 1),
        life(deleted, 2),
        iter([(6.0, [TaskGone("uid-d")])]),
        life(strange, 3),
    )
    found = [(job.at, job.sizes, job.patience) for job in jobs(say(words))]
    assert found[2:] == [(1.0, (4.0,), inf), (2.0, (4.0,), 4.0)]


def test_what_was_deleted_while_it_ran_ended_then(say: Say) -> None:
    words = told(life(make_task("a"), 0, 1), iter([(4.0, [TaskGone("uid-a")]), (9.0, [])]))
    assert [job.sizes for job in jobs(say(words))] == [(3.0,)]


def test_what_ran_before_the_tape_comes_with_what_was_left_and_what_was_over_does_not(say: Say) -> None:
    words = told(life(make_task("a"), 0, -50, 20), life(make_task("b"), 0, -50, -10))
    assert [(job.at, job.sizes) for job in jobs(say(words))] == [(0.0, (20.0,))]


def test_what_ended_without_having_run_is_left_out(say: Say) -> None:
    refused = replace(make_task("r"), phase="Failed", node="old")
    words = told(
        life(make_task("a"), 0, 1, 2), iter([(1.0, [TaskSeen(make_task("r"))]), (2.0, [TaskSeen(refused)])])
    )
    assert len(jobs(say(words))) == 1


def test_a_gated_pod_comes_when_its_last_gate_is_lifted(say: Say) -> None:
    gated = replace(make_task("a"), gates=("g",))
    words = [(0.0, [TaskSeen(gated)]), *life(make_task("a"), 5, 6, 8)]
    assert [job.at for job in jobs(say(words))] == [5.0]


def test_pods_of_other_schedulers_are_left_out(say: Say) -> None:
    foreign = replace(make_task("f"), profile="default-scheduler")
    assert len(jobs(say(told(life(foreign, 0, 1, 2), life(make_task("a"), 0, 1, 2))))) == 1


def test_a_run_too_short_for_the_clocks_counts_a_little(say: Say) -> None:
    assert [job.sizes for job in jobs(say(told(life(make_task("a"), 0, 1, 1))))] == [(LEAST_SECONDS,)]


def test_what_a_simulation_has_recorded_happens_again(tmp_path: Path) -> None:
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
        ({}, "workload.tape.file: t.tape tells of no pod that ran"),
        ({"speeds": {"odl": 2}}, "workload.tape.speeds.odl: no node on the tape .* did you mean 'old'"),
        ({"speeds": {"old": 0}}, "workload.tape.speeds.old: 0 is too small"),
    ],
)
def test_what_cannot_be_is_refused(say: Say, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        say([], **settings)


def test_a_tape_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"workload.tape.file: t.tape cannot be read: .*No such file"):
        asked(tmp_path, file="t.tape")


def test_what_is_no_tape_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.tape").write_text("apiVersion: v1\n")
    with pytest.raises(SettingsError, match=r"t\.tape is no tape of format 1"):
        asked(tmp_path, file="t.tape")


def test_a_tape_of_settings_that_are_no_more_is_named(tmp_path: Path) -> None:
    old = CONFIGURATION.replace("uniform", "bygone")
    with TapeWriter(tmp_path / "t.tape", Header("0", old, 1)):
        pass
    with pytest.raises(
        SettingsError, match=r"configuration that t\.tape begins with: profiles\[0\].*'bygone'"
    ):
        asked(tmp_path, file="t.tape")
