"""One queue with one or more servers, against the formulas of queueing theory.

Runs use the engine's central queue without learning. Waits are in mean service times.
"""

from __future__ import annotations

from itertools import islice
from math import factorial
from typing import Any

import numpy as np
import pytest

from eclectus.sim.base.results import RunResult
from eclectus.sim.scenario import Scenario
from eclectus.sim.world.run_record import ZERO_BUCKET
from short_scenarios import agree, place, poisson, runs, scenario

DET: dict[str, Any] = {"law": "deterministic"}
EXP: dict[str, Any] = {"law": "exponential"}
H10: dict[str, Any] = {"law": "hyperexponential", "scv": 10}
H25: dict[str, Any] = {"law": "hyperexponential", "scv": 25}
slow = pytest.mark.slow


def served(load: float, size: dict[str, Any], seeds: int, tasks: int, servers: int = 1) -> list[RunResult]:
    asked = scenario(
        cluster={"groups": [{"slots": servers}]},
        workload=poisson(load, size),
        profiles=place("uniform"),
        measure={"tasks": tasks},
    )
    return runs(asked, range(1, seeds + 1))


def waits(load: float, size: dict[str, Any], seeds: int, tasks: int) -> list[float]:
    return [run.wait.mean for run in served(load, size, seeds, tasks)]


def lindley(asked: Scenario, seed: int, jobs: int) -> np.ndarray[Any, Any]:
    """Waits for the same arrivals as the world's, by Lindley's recursion W' = max(0, W + S - gap)."""
    tasks = [(job.at, size) for job in islice(asked.plan.arrivals(seed), jobs) for size in job.sizes]
    arrived, sizes = np.array(tasks).T
    drift = np.concatenate(([0.0], np.cumsum(sizes[:-1] - np.diff(arrived))))
    return drift - np.minimum.accumulate(drift)


def pollaczek_khinchine(load: float, scv: float) -> float:
    return load / (1 - load) * (1 + scv) / 2


def batch_wait(load: float, size: int) -> float:
    """Batches of exponential tasks at one server: a task waits for what its batch finds, and for its own."""
    return load / (1 - load) + (size - 1) / (2 * (1 - load))


def erlang_c(servers: int, load: float) -> tuple[float, float]:
    """M/M/c: the probability of waiting, and the mean wait in mean service times."""
    offered = servers * load
    full = offered**servers / factorial(servers) / (1 - load)
    delayed = full / (sum(offered**k / factorial(k) for k in range(servers)) + full)
    return delayed, delayed / (servers * (1 - load))


def test_the_formulas_are_those_of_the_tables() -> None:
    assert [pollaczek_khinchine(0.8, scv) for scv in (0, 1, 10)] == pytest.approx([2, 4, 22])
    assert [pollaczek_khinchine(0.9, scv) for scv in (0, 1, 25)] == pytest.approx([4.5, 9, 117])
    assert [batch_wait(0.8, size) for size in (1, 10)] == pytest.approx([4, 26.5])
    assert erlang_c(10, 0.8) == pytest.approx((0.40918, 0.20459), rel=1e-4)
    assert erlang_c(10, 0.9) == pytest.approx((0.66873, 0.66873), rel=1e-4)
    assert erlang_c(100, 0.9) == pytest.approx((0.21694, 0.021694), rel=1e-4)
    assert erlang_c(2, 0.9) == pytest.approx((0.85263, 4.26316), rel=1e-5)


@pytest.mark.parametrize("size", [EXP, DET, H10], ids=lambda size: size["law"])
def test_one_server_waits_exactly_as_lindleys_recursion_says(size: dict[str, Any]) -> None:
    asked = scenario(
        workload=poisson(0.8, size), profiles=place("uniform"), measure={"tasks": 1000, "warmUp": 0}
    )
    (run,) = runs(asked, [1])
    assert run.wait.mean == pytest.approx(float(lindley(asked, 1, 1000).mean()), rel=1e-9)


@pytest.mark.parametrize(
    ("load", "size", "scv", "seeds", "tasks"),
    [
        (0.5, EXP, 1, 12, 2500),
        pytest.param(0.7, DET, 0, 12, 2500, marks=slow),
        pytest.param(0.8, DET, 0, 16, 9000, marks=slow),
        pytest.param(0.8, EXP, 1, 16, 9000, marks=slow),
        pytest.param(0.8, H10, 10, 16, 12_000, marks=slow),
    ],
)
def test_one_server_waits_as_pollaczek_and_khinchine_say(
    load: float, size: dict[str, Any], scv: float, seeds: int, tasks: int
) -> None:
    what = f"M/G/1 wait, load {load}, C² = {scv}"
    assert agree(what, waits(load, size, seeds, tasks), pollaczek_khinchine(load, scv))


@slow
@pytest.mark.parametrize(
    ("load", "size", "scv", "seeds"),
    [(0.9, DET, 0, 20), (0.9, EXP, 1, 20), (0.8, H10, 10, 90), (0.9, H25, 25, 80)],
)
def test_at_high_load_the_streams_themselves_obey_the_formula(
    load: float, size: dict[str, Any], scv: float, seeds: int
) -> None:
    """By the recursion, with which the engine agrees to nine digits; the engine itself would take an hour."""
    asked, tasks = scenario(workload=poisson(load, size)), 100_000
    means = [float(lindley(asked, seed, tasks)[tasks * 3 // 10 :].mean()) for seed in range(1, seeds + 1)]
    what = f"M/G/1 wait by recursion, load {load}, C² = {scv}"
    assert agree(what, means, pollaczek_khinchine(load, scv))


@pytest.mark.parametrize(
    ("servers", "load", "seeds", "tasks"),
    [
        (10, 0.7, 6, 6000),
        pytest.param(2, 0.9, 20, 9000, marks=slow),
        pytest.param(10, 0.8, 16, 9000, marks=slow),
        pytest.param(10, 0.9, 20, 12_000, marks=slow),
        pytest.param(100, 0.9, 12, 18_000, marks=slow),
    ],
)
def test_several_servers_wait_as_erlang_says(servers: int, load: float, seeds: int, tasks: int) -> None:
    delayed, wait = erlang_c(servers, load)
    done = served(load, EXP, seeds, tasks, servers)
    of_all = [1 - run.wait.buckets.get(ZERO_BUCKET, 0) / run.wait.count for run in done]
    assert agree(f"M/M/{servers} wait, load {load}", [run.wait.mean for run in done], wait)
    assert agree(f"M/M/{servers} probability of waiting, load {load}", of_all, delayed)


def batches(load: float) -> Scenario:
    """Jobs of ten exponential tasks at one server."""
    return scenario(
        workload={"poisson": {"load": load, "classes": [{"size": EXP, "tasksPerJob": 10}]}},
        profiles=place("uniform"),
        measure={"tasks": 1000, "warmUp": 0},
    )


def test_tasks_of_batches_wait_exactly_as_the_recursion_says() -> None:
    asked = batches(0.8)
    (run,) = runs(asked, [1])
    assert run.wait.mean == pytest.approx(float(lindley(asked, 1, 100).mean()), rel=1e-9)


@pytest.mark.parametrize(("load", "seeds"), [(0.5, 16), pytest.param(0.8, 24, marks=slow)])
def test_tasks_of_batches_wait_for_each_other(load: float, seeds: int) -> None:
    """By the recursion. In a job of ten tasks the last one waits for nine, whatever the load."""
    asked = batches(load)
    means = [float(lindley(asked, seed, 10_000)[30_000:].mean()) for seed in range(1, seeds + 1)]
    assert agree(f"batches of 10, M/M/1 wait by recursion, load {load}", means, batch_wait(load, 10))


@slow
def test_the_response_of_one_server_is_exponential() -> None:
    asked = scenario(workload=poisson(0.5), measure={"tasks": 5000})
    done = runs(asked, range(1, 9))
    assert agree("M/M/1 mean response, load 0.5", [run.response.mean for run in done], 2.0)
    assert agree("M/M/1 median response, load 0.5", [run.response.p50 for run in done], 2 * 0.693147)
    # The p99 of a few thousand correlated samples is biased low, hence the wider margin.
    assert agree("M/M/1 p99 response, load 0.5", [run.response.p99 for run in done], 2 * 4.60517, within=0.08)


def test_a_formula_that_is_wrong_is_refused() -> None:
    assert not agree("M/D/1 wait against M/M/1's, on purpose", waits(0.7, DET, 4, 4000), 7 / 3)
