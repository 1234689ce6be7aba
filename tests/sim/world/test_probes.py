"""Simulated probes: they provide samples, delay no task, and are counted in the record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from checked_worlds import build_checked, run_checked
from eclectus.model.commands import Bind, Command
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, TaskSeen
from eclectus.model.objects import Task
from eclectus.sim.base.results import RunResult
from eclectus.sim.report.compare import summarise
from eclectus.sim.runs import build_world, run
from eclectus.sim.scenario import Scenario
from eclectus.sim.world.world import World
from short_scenarios import place, poisson, scenario

OFTEN = {"perHour": 7200, "leastPerHour": 7200, "running": 6, "nodeIntervalSeconds": 0}
HALVES = {
    "groups": [
        {"name": "slow", "count": 4, "slots": 2},
        {"name": "fast", "count": 4, "slots": 2, "speed": 4},
    ]
}


def world_of(asked: Scenario, seed: int = 1) -> World:
    return build_checked(asked, asked.profiles[0], seed)


def probed(world: World) -> list[Task]:
    """Every probe as the engine saw it, after the run."""
    seen: list[Task] = []

    def on_step(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        tasks = (event.task for event in events if isinstance(event, TaskSeen))
        seen.extend(task for task in tasks if task.profile == "probes")

    world.on_step = on_step
    world.run()
    return seen


# -- no delay --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        {"policy": "rosella", "theta": 4},
        {"policy": "rosella", "view": "sample", "compare": "wait"},
        {"policy": "least-allocated"},
        {"policy": "pot", "queue": "lines"},
    ],
    ids=lambda policy: " ".join(map(str, policy.values())),
)
def test_probes_delay_no_task(policy: dict[str, Any]) -> None:
    """T12: with an oracle, response times and waits are identical with and without probes."""
    without, with_probes = without_and_with(policy)
    assert with_probes.probes > 5
    assert with_probes.probes_killed > 5
    assert with_probes.response == without.response
    assert with_probes.wait == without.wait


def test_with_theta_by_load_probes_change_only_the_times_at_which_the_load_is_read() -> None:
    """Single response times differ; their mean and their tail do not."""
    without, with_probes = without_and_with({"policy": "rosella"})
    assert with_probes.probes > 5
    assert with_probes.response.mean == pytest.approx(without.response.mean, rel=0.02)
    assert with_probes.response.p99 == pytest.approx(without.response.p99, rel=0.05)


def without_and_with(policy: dict[str, Any]) -> list[RunResult]:
    """The same arrivals without probes, and with as many as possible."""
    results: list[RunResult] = []
    for probes in (None, OFTEN):
        profile = {"schedulerName": "it", "place": policy, "learn": {"policy": "truth"}, "probes": probes}
        asked = scenario(
            cluster=HALVES, workload=poisson(0.8, {"mean": 2}), profiles=[profile], measure={"tasks": 800}
        )
        results.append(run_checked(asked, asked.profiles[0], 1))
    return results


def test_a_probe_runs_only_where_a_task_of_its_class_could(tmp_path: Any) -> None:
    """One node runs a task until 1000 s, the other is tainted."""
    (tmp_path / "one.trace").write_text("0 1 1000 1000\n3000 1 10 10\n")
    groups = [{"name": "only"}, {"name": "off", "taints": [{"key": "off"}]}]
    asked = scenario(
        cluster={"groups": groups},
        workload={"jobtrace": {"file": str(tmp_path / "one.trace")}},
        probes=OFTEN,
        measure={"warmUp": 0},
    )
    begun = [task for task in probed(world_of(asked)) if task.phase == "Running"]
    assert {task.node for task in begun} == {"only-0"}
    assert min(task.created for task in begun) >= 1000


def test_a_probe_is_killed_at_the_moment_its_slot_is_needed(tmp_path: Any) -> None:
    (tmp_path / "one.trace").write_text("100 1 100 100\n1000 1 100 100\n")
    asked = scenario(
        workload={"jobtrace": {"file": str(tmp_path / "one.trace")}}, probes=OFTEN, measure={"warmUp": 0}
    )
    world = world_of(asked)
    phases = [task.phase for task in probed(world) if task.created < 100]
    assert phases == ["Running"]  # its end was never shown
    assert world.probes is not None
    assert world.probes.killed >= 1
    (tally,) = world.record.tallies.values()
    assert tally.wait.largest == 0


# -- how many, and where ---------------------------------------------------------------------------


def test_the_stream_keeps_to_its_rate_and_probes_all_nodes_alike() -> None:
    """The rate is a quarter of the highest: 900 per hour for one hour, on ten nodes."""
    asked = scenario(
        cluster={"groups": [{"count": 10}]},
        workload=poisson(rate=0.01),
        profiles=place("uniform", learn="truth"),
        probes={"perHour": 3600, "leastPerHour": 900, "running": 10, "nodeIntervalSeconds": 0},
        measure={"horizon": "1h"},
    )
    begun = [task for task in probed(world_of(asked)) if task.phase == "Running"]
    assert len(begun) == pytest.approx(900, rel=0.1)
    by_node = [sum(task.node == f"g0-{at}" for task in begun) for at in range(10)]
    assert min(by_node) > 60
    assert max(by_node) < 125


def test_limits_are_those_of_a_node_probe() -> None:
    asked = scenario(
        cluster={"groups": [{"count": 4}]},
        workload=poisson(rate=0.01, size={"law": "deterministic", "mean": 30}),
        profiles=place("uniform", learn="truth"),
        probes={"perHour": 3600, "leastPerHour": 3600, "running": 2, "nodeIntervalSeconds": 100},
        measure={"horizon": "1h"},
    )
    seen = probed(world_of(asked))
    begun = [task for task in seen if task.phase == "Running"]
    for at in range(4):
        times = [task.created for task in begun if task.node == f"g0-{at}"]
        assert min(b - a for a, b in pairwise(times)) >= 100
    assert max(sum(a.created <= b.created < a.created + 30 for a in begun) for b in begun) <= 2
    ended = [task for task in seen if task.phase == "Succeeded"]
    assert {round(task.finished - task.created, 6) for task in ended if task.finished} == {30.0}


# -- learning --------------------------------------------------------------------------------------


def placed_on(probes: dict[str, Any] | None) -> list[float]:
    """Times of binds to a node that was frozen from 100 s to 300 s and then recovered."""
    asked = scenario(
        cluster={"groups": [{"name": "ill", "slots": 2}, {"name": "well", "count": 5, "slots": 2}]},
        events=[
            {"at": 100, "action": "freeze", "group": "ill"},
            {"at": 300, "action": "recover", "group": "ill"},
        ],
        workload=poisson(0.5, {"mean": 2}),
        profiles=[{"schedulerName": "it"}],
        learn={"policy": "rosella", "halfLife": 1e6, "capacity": 6},
        probes=probes,
        measure={"horizon": 450},
    )
    world, found = build_world(asked, asked.profiles[0], 1), list[float]()

    def on_step(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        found.extend(now for each in commands if isinstance(each, Bind) and each.node == "ill-0")

    world.on_step = on_step
    world.run()
    return found


def test_a_node_that_counts_as_dead_comes_back_by_probes_alone() -> None:
    """T2: without probes the node recovers but is never used again."""
    without, with_probes = placed_on(None), placed_on(OFTEN)
    assert any(at < 100 for at in without)
    assert max(without) < 300
    assert sum(at > 350 for at in with_probes) > 10


def perturbed(seed: int) -> tuple[list[tuple[float, int]], list[tuple[float, str]]]:
    """Tasks in the system, and binds, by time; at 150 s fast and slow machines trade speeds."""
    asked = scenario(
        cluster=HALVES,
        events=[{"at": 150, "action": "swap", "group": "slow", "partner": "fast"}],
        workload=poisson(0.6, {"mean": 2}),
        profiles=place("rosella", learn="rosella", view="sample", compare="sq"),
        probes=OFTEN,
        measure={"horizon": 260},
    )
    world = build_world(asked, asked.profiles[0], seed)
    numbers, binds = list[tuple[float, int]](), list[tuple[float, str]]()

    def on_step(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        numbers.append((now, world.record.in_system))
        binds.extend((now, each.node) for each in commands if isinstance(each, Bind))

    world.on_step = on_step
    world.run()
    return numbers, binds


@pytest.mark.long
def test_after_a_perturbation_queues_recover_once_it_is_learned_and_the_backlog_is_gone() -> None:
    """T4: 16 samples find a fourfold change nine times in ten (maths/service_rates.py), which the nodes that
    have become slow take 16 s to end in their two slots; then 8 tasks/s of spare capacity work off the
    backlog."""
    stories = [perturbed(seed) for seed in (1, 2, 3)]

    def mean(since: float, until: float) -> float:
        return fmean(number for numbers, _ in stories for at, number in numbers if since <= at < until)

    learning, spare = 16.0 / (2 * 0.5), 0.4 * 20.0
    usual = mean(60, 150)
    most = fmean(max(number for at, number in numbers if 150 <= at < 180) for numbers, _ in stories)
    recovered = 150 + 1.5 * (learning + (most - usual) / spare)
    assert mean(150, 150 + learning) > 1.5 * usual
    assert mean(recovered, recovered + 40) < 1.25 * usual
    late = [node for _, binds in stories for at, node in binds if at > recovered]
    assert sum(node.startswith("slow") for node in late) > 0.7 * len(late)  # four fifths of what can be done


# -- results and errors ----------------------------------------------------------------------------


def test_their_share_of_the_slots_is_reported() -> None:
    """Four single slots, a probe of 30 s at a time: somewhat less than a quarter of them."""
    fields: dict[str, Any] = {
        "cluster": {"groups": [{"count": 4}]},
        "workload": poisson(rate=0.001, size={"law": "deterministic", "mean": 30}),
        "profiles": [*place("uniform", learn="truth"), {"schedulerName": "bare", "probes": None}],
        "probes": {"perHour": 3600, "leastPerHour": 3600, "running": 1, "nodeIntervalSeconds": 0},
        "measure": {"horizon": "2h", "warmUp": 0},
    }
    asked = scenario(**fields)
    done = [run(asked, each, 1) for each in asked.profiles]
    assert 0.23 < done[0].probe_share < 0.25
    used = done[0].probe_share * 4 * done[0].measured_until / 30
    assert done[0].probes <= used <= done[0].probes + done[0].probes_killed + 1
    assert (done[1].probes, done[1].probe_share) == (0, 0.0)
    summaries = summarise(done)
    assert summaries[1].probe_share is None
    assert summaries[0].probe_share is not None
    assert summaries[0].probe_share.mean == done[0].probe_share


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"probes": {"perHour": 5}}, "probes.leastPerHour: 6 is more than perHour, 5"),
        ({"probes": {"perhour": 5}}, "probes.perhour: unknown field; did you mean 'perHour'?"),
        (
            {"profiles": [{"schedulerName": "it", "probes": {"running": 0}}]},
            "profiles[0].probes.running: 0 is too small",
        ),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        scenario(**fields)
    assert words in str(refused.value)
