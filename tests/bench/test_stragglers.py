"""`make stragglers`: profiles are explained, figures are ratios to those without copies, of the same seed."""

from __future__ import annotations

from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from eclectus.model.learned import NodeState
from eclectus.sim.base.results import CopiesResult, LearnedSpeed, RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import Runs, measure
from eclectus_bench.stragglers import (
    BROKEN,
    LOADS,
    MEANS,
    NONE,
    SCENARIO,
    SETTINGS,
    Facts,
    Measured,
    page,
    parts_of,
)
from short_scenarios import scenario


def test_every_profile_of_the_scenario_is_explained_and_none_is_the_first() -> None:
    names = [each.name for each in load(shipped_scenarios()[SCENARIO]).profiles]
    assert names == list(MEANS)
    assert names[0] == NONE


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_assumption_is_a_scenario_of_its_own(name: str) -> None:
    path = shipped_scenarios()[SCENARIO]
    assert load(path, BROKEN[name][1]) != load(path)


def of(any_run: RunResult, p99: float, busy: float, lost: float = 0.0) -> RunResult:
    copies = CopiesResult(9, 4, 4, 3, 1, lost, 10.0, busy)
    return replace(any_run, jobs=replace(any_run.jobs, p99=p99, mean=2.0), copies=copies)


def test_the_page_compares_each_run_with_that_of_the_same_seed() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    runs = {
        "none": [of(any_run, 100.0, 200.0), of(any_run, 50.0, 200.0)],
        "late": [of(any_run, 50.0, 190.0, lost=1.9), of(any_run, 25.0, 190.0, lost=3.8)],
    }
    text = page(Facts("1.0", 2, 20), of_all(runs))
    lines = text.splitlines()
    assert "| 0.8 | `late` | 0.50 ±0.00 | 1.00 ±0.00 | 0.950 ±0.000 | 1.5 ±6.4 | 5.3 ±0.0 | 75 ±0 |" in lines
    assert f"| `late` | {' | '.join(['0.50 ±0.00'] * len(BROKEN))} |" in lines
    assert not any(line.startswith("| 0.8 | `none`") for line in lines)


def of_all(runs: Runs) -> Measured:
    bound = {"none": [of(run, run.jobs.p99 / 4, 200.0) for run in runs["none"]]}
    by_load = dict.fromkeys(LOADS, runs)
    bounds, settings, broken = (
        dict.fromkeys(LOADS, bound),
        dict.fromkeys(SETTINGS, runs),
        dict.fromkeys(BROKEN, runs),
    )
    return Measured(by_load, by_load, bounds, settings, broken)


def learning(any_run: RunResult, p99: float, rate: float, state: NodeState = "live") -> RunResult:
    speeds = [LearnedSpeed(f"n{at}", "node", "work", 9, 2.0, 2.0) for at in range(3)]
    speeds.append(LearnedSpeed("s", "slow", "work", 9, 2.0 * rate, 0.5, state))
    return replace(of(any_run, p99, 190.0, lost=3.8), learned=speeds)


def test_aims_are_met_missed_or_met_in_the_mean_and_have_a_bound() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    none = [of(any_run, 100.0, 200.0)] * 3
    late = [learning(any_run, 55.0, 0.24), learning(any_run, 55.0, 0.25), learning(any_run, 69.0, 0.26)]
    lines = page(Facts("1.0", 3, 20), of_all({"none": none, "late": late})).splitlines()
    for line in (
        "| p99 at most 0.60 | 0.5 | 0.60 ±0.20 | in the mean | 0.25 ±0.00 |",
        "| p99 at most 0.80 | 0.8 | 0.60 ±0.20 | met | 0.25 ±0.00 |",
        "| p99 at most 1.00 | 0.9 | 0.60 ±0.20 | met | 0.25 ±0.00 |",
        "| copies lost, % at most 3 | 0.5 | 2.0 ±0.0 | met |  |",
        "| all at most 1.00 | 0.5 | 0.950 ±0.000 | met |  |",
        "| slow node within a third | 0.5 | 0.250 ±0.025 | met | |",
        "| slow node live | 0.5 | 3 of 3 | met | |",
    ):
        assert line in lines


def test_a_slow_node_that_counts_as_fast_or_as_dead_is_missed() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    late = [learning(any_run, 70.0, 1.0), learning(any_run, 70.0, 1.0, "dead")]
    lines = page(Facts("1.0", 2, 20), of_all({"none": [of(any_run, 100.0, 180.0)] * 2, "late": late}))
    for line in (
        "| p99 at most 0.60 | 0.5 | 0.70 ±0.00 | missed | 0.25 ±0.00 |",
        "| all at most 1.00 | 0.5 | 1.056 ±0.000 | missed |  |",
        "| slow node within a third | 0.5 | 1.000 ±0.000 | missed | |",
        "| slow node live | 0.5 | 1 of 2 | missed | |",
    ):
        assert line in lines.splitlines()


def test_what_bounds_a_rule_has_the_same_jobs_and_stragglers_only_where_a_copy_would_be_one() -> None:
    path, parts = shipped_scenarios()[SCENARIO], parts_of(seeds=1, tasks=200)
    judged, bound = (load(path, parts[at * len(LOADS)].changes) for at in (1, 2))
    assert bound.plan.tasks_a_second == pytest.approx(judged.plan.tasks_a_second)
    assert bound.stragglers.share == pytest.approx(judged.stragglers.share**2)


def test_other_settings_are_runs_of_what_is_judged_beside_its_defaults_with_the_same_seeds() -> None:
    path, parts = shipped_scenarios()[SCENARIO], parts_of(seeds=2, tasks=200)
    usual, *others = (
        load(path, each.changes) for each in (parts[len(LOADS) + 1], *parts[3 * len(LOADS) : -len(BROKEN)])
    )
    assert len(others) == len(SETTINGS)
    for each in others:
        assert (each.load, each.tasks, each.stragglers) == (usual.load, usual.tasks, usual.stragglers)
        assert [old.name for old, new in zip(usual.profiles, each.profiles, strict=True) if old != new] == [
            "late"
        ]


def test_other_settings_are_compared_with_the_defaults_run_by_run() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    late = [of(any_run, 80.0, 190.0), of(any_run, 50.0, 190.0), of(any_run, 1.0, 1.0)]
    faster = {"late": [of(any_run, 40.0, 171.0), of(any_run, 25.0, 171.0)]}
    found = replaced(of_all({"none": late, "late": late}), settings=dict.fromkeys(SETTINGS, faster))
    lines = page(Facts("1.0", 2, 20), found).splitlines()
    row = next(each for each in lines if each.startswith("| `poolShare: 0.2, jobShare: 1` |"))
    assert row.endswith("| 0.50 ±0.00 | 1.00 ±0.00 | 0.900 ±0.000 | 0.0 ±0.0 | 5.8 ±0.0 | 75 ±0 |")


def test_stragglers_are_measured() -> None:
    parts = parts_of(seeds=1, tasks=200)
    assert len(parts) == 3 * len(LOADS) + len(SETTINGS) + len(BROKEN)
    runs, judged, bound = measure(SCENARIO, parts[: 3 * len(LOADS) : len(LOADS)], jobs=1, say=str)
    assert (list(judged), list(bound)) == ([NONE, "late"], [NONE])
    plain, late = (runs[name][0].copies for name in (NONE, "late"))
    assert plain is not None
    assert late is not None
    assert plain.marked == 0 < late.won
