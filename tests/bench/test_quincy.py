"""`make quincy`: profiles are explained, figures are ratios of the same seed; it says where Quincy loses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import measure
from eclectus_bench.quincy import CASES, LOADS, MEANS, NONE, SCENARIO, Facts, is_more, page, parts_of
from short_scenarios import scenario


def test_every_profile_of_the_scenario_is_explained_and_none_is_the_first() -> None:
    names = [each.name for each in load(shipped_scenarios()[SCENARIO]).profiles]
    assert names == list(MEANS)
    assert names[0] == NONE


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_a_scenario_of_its_own(name: str) -> None:
    path = shipped_scenarios()[SCENARIO]
    assert load(path, CASES[name][1]) != load(path)


def of(any_run: RunResult, across: float, mean: float) -> RunResult:
    jobs = replace(any_run.jobs, mean=mean, p99=90.0)
    return replace(any_run, jobs=jobs, across_gigabytes=across * any_run.tasks, locality=0.5)


def test_the_page_compares_runs_of_the_same_seed_and_says_where_it_loses() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    runs = {
        "none": [of(any_run, 4.0, 60.0), of(any_run, 2.0, 30.0)],
        "delay": [of(any_run, 2.0, 30.0), of(any_run, 1.0, 15.0)],
        "quincy": [of(any_run, 1.0, 33.0), of(any_run, 0.5, 18.0)],
    }
    text = page(Facts("1.0", 2, 20), {0.5: runs}, {"hot": runs})
    lines = text.splitlines()
    row = (
        "| load 0.5 | `quincy` | 0.75 ±3.18 | 0.250 ±0.000 | 25.5 ±95.3 | 0.575 ±0.318 | 90 ±0 | 50.0 ±0.0 |"
    )
    assert row in lines
    assert "| `hot` | `quincy` | -0.750 ±3.177 | 3.00 ±0.00 |" in lines
    assert "- load 0.5, `quincy`: turnaround, s 3.00 ±0.00" in lines
    assert not any(line.startswith("- load 0.5, `quincy`: across") for line in lines)


def test_only_an_interval_above_0_is_a_loss() -> None:
    assert is_more([0.1, 0.11, 0.12])
    assert not is_more([-0.2, 0.1, 0.4])
    assert not is_more([])


def test_quincy_moves_less_across_racks_than_neither() -> None:
    part = parts_of(seeds=1, tasks=200)[LOADS.index(0.5)]
    (runs,) = measure(SCENARIO, [part], jobs=1, say=str)
    none, delayed, quincy = (runs[name][0].across_gigabytes for name in (NONE, "delay", "quincy"))
    assert none is not None
    assert delayed is not None
    assert quincy is not None
    assert quincy < 0.5 * none
    assert runs["quincy"][0].faults == 0
