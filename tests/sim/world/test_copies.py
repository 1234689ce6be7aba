"""Stragglers and copies in the simulator: who is slow, what the operator does, and that work counts once."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from checked_worlds import run_checked
from eclectus.model.errors import SettingsError
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.results import CopiesResult, RunResult
from eclectus.sim.scenario import Scenario
from eclectus.sim.world.copies import Copies, CopyRun, Straggling
from short_scenarios import scenario

LATE: dict[str, Any] = {"policy": "late"}


def world(speculate: dict[str, Any] | None = None, **fields: Any) -> Scenario:
    """Six nodes of two slots, one of them four times slower; jobs of four tasks of about 20 s."""
    profile: dict[str, Any] = {"schedulerName": "it", "place": {"policy": "best-fit"}}
    work = {"name": "w", "tasksPerJob": 4, "size": {"law": "gamma", "shape": 20, "mean": "20s"}}
    given: dict[str, Any] = {
        "cluster": {"groups": [{"name": "fast", "count": 5, "slots": 2}, {"slots": 2, "speed": 0.25}]},
        "workload": {"poisson": {"load": 0.4, "classes": [{**work, "speculative": True}]}},
        "profiles": [profile | ({"speculate": speculate} if speculate else {})],
        "stragglers": {"share": 0.05, "factor": 5},
        "measure": {"tasks": 400},
    }
    return scenario(**given | fields)


def ran(of: Scenario, seed: int = 1) -> tuple[RunResult, CopiesResult]:
    """The run, with every check of the world."""
    result = run_checked(of, of.profiles[0], seed)
    assert result.copies is not None
    assert result.faults == 0
    return result, result.copies


def test_without_a_policy_there_are_stragglers_and_no_copies() -> None:
    _, copies = ran(world())
    assert copies.marked == copies.started == 0
    assert 5 <= copies.stragglers <= 40


def test_jobs_end_sooner_with_copies_and_every_task_counts_once() -> None:
    without, _ = ran(world())
    result, copies = ran(world(LATE))
    assert result.jobs.mean < 0.9 * without.jobs.mean
    assert result.response.count == without.response.count
    assert copies.won + copies.lost <= copies.started <= copies.marked
    assert copies.won > copies.lost
    assert copies.lost_original_seconds > 0.0


def test_copies_keep_off_the_slow_machine_once_it_is_known_whatever_place_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By room alone the slow machine would get one copy in twelve."""
    speeds = list[float]()
    started = Copies.started

    def noted(self: Copies, run: TaskRun) -> None:
        if isinstance(run, CopyRun) and run.machine is not None:
            speeds.append(run.machine.nominal_speed(""))
        started(self, run)

    monkeypatch.setattr(Copies, "started", noted)
    place = {"policy": "least-allocated", "ties": "random"}
    ran(world(profiles=[{"schedulerName": "it", "place": place, "speculate": LATE}]))
    assert len(speeds) > 40
    assert 0.25 not in speeds[10:]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_node_that_becomes_four_times_slower_is_learned_within_a_third_and_is_live(seed: int) -> None:
    """After 500 s; then its tasks are overtaken for a thousand seconds."""
    groups = [{"name": "fast", "count": 5, "slots": 2}, {"name": "slowed", "slots": 2}]
    slower = {"at": "500s", "action": "scale", "group": "slowed", "factor": 0.25}
    result, copies = ran(world(LATE, cluster={"groups": groups}, events=[slower]), seed)
    assert result.measured_until > 1500.0
    assert copies.won > 20
    fast = median(each.learned for each in result.learned if each.group == "fast")
    (slowed,) = (each for each in result.learned if each.group == "slowed")
    assert slowed.learned / fast == pytest.approx(0.25, rel=1 / 3)
    assert slowed.state == "live"


def test_equal_seeds_give_equal_runs() -> None:
    assert ran(world(LATE))[0] == ran(world(LATE))[0]


def test_all_profiles_meet_the_same_stragglers_among_first_attempts() -> None:
    slow = {"share": 0.5, "factor": 3}
    one, other = (ran(world(policy, stragglers=slow))[1] for policy in (None, {"policy": "spark"}))
    assert other.started > 0
    assert one.stragglers <= other.stragglers <= one.stragglers + other.started


@pytest.mark.parametrize("delay", ["0s", "20s"])
def test_both_may_end_before_the_operator_sees_it_and_one_counts(delay: str) -> None:
    """With a delay as long as a task takes many losers run to their ends."""
    slow = {"share": 0.3, "factor": 2, "delay": delay}
    _, copies = ran(world({"policy": "spark", "quantile": 0.25, "multiplier": 1.1}, stragglers=slow))
    assert copies.won
    assert copies.lost


def test_a_machine_that_fails_takes_originals_and_copies_with_it() -> None:
    """A copy whose original is lost is the attempt, and a lost copy that was one is made again as a pod."""
    events = [
        {"at": f"{at}s", "action": action, "group": "fast", "count": count}
        for at in range(50, 1000, 40)
        for at, action, count in ((at, "fail", 3), (at + 10, "recover", 3))
    ]
    for seed in range(1, 4):
        slow = {"share": 0.3, "factor": 5}
        result, copies = ran(world(LATE, stragglers=slow, events=events), seed)
        assert copies.started
        assert result.response.count > 200


def test_tasks_on_one_machine_slow_each_other() -> None:
    alone, _ = ran(world(stragglers={"share": 0}))
    crowded, _ = ran(world(stragglers={"share": 0, "crowding": 0.5}))
    assert crowded.response.mean > 1.1 * alone.response.mean


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("linear", [0.05, 0.15, 0.6, 1.0]),
        ("early", [0.2236, 0.3873, 0.7746, 1.0]),
        ("phases", [1 / 6, 0.5, 5 / 6, 1.0]),
    ],
)
def test_pods_say_their_progress_well_or_badly(shape: Any, said: list[float]) -> None:
    settings = Straggling(shape=shape)
    assert [settings.said(done) for done in (0.05, 0.15, 0.6, 1.0)] == pytest.approx(said, abs=1e-4)


def test_phases_with_weights_as_their_work_say_what_is_done() -> None:
    settings = Straggling(shape="phases", weights=(1.0, 1.0, 8.0))
    assert [settings.said(done) for done in (0.05, 0.15, 0.6, 1.0)] == pytest.approx([0.05, 0.15, 0.6, 1.0])


@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0, 1.0)])
def test_weights_are_of_the_three_phases(weights: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError, match="weights: must be 3 numbers above 0"):
        Straggling(weights=weights)


def test_rules_that_need_progress_find_stragglers_if_pods_say_it() -> None:
    native = {"policy": "native", "judgedAfter": "10s"}
    slow = {"share": 0.1, "factor": 5}
    assert ran(world(native, stragglers=slow))[1].marked == 0
    assert ran(world(native, stragglers={**slow, "progress": "2s"}))[1].won > 0
