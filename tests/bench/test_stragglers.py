"""`make stragglers`: profiles are explained, figures are ratios to those without copies, of the same seed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eclectus.sim.base.results import CopiesResult, RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import measure
from eclectus_bench.stragglers import BROKEN, LOADS, MEANS, NONE, SCENARIO, Facts, page, parts_of
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
    text = page(Facts("1.0", 2, 20), dict.fromkeys(LOADS, runs), dict.fromkeys(BROKEN, runs))
    lines = text.splitlines()
    assert "| 0.8 | `late` | 0.50 ±0.00 | 1.00 ±0.00 | 0.950 ±0.000 | 1.5 ±6.4 | 5.3 ±0.0 | 75 ±0 |" in lines
    assert f"| `late` | {' | '.join(['0.50 ±0.00'] * len(BROKEN))} |" in lines
    assert not any(line.startswith("| 0.8 | `none`") for line in lines)


def test_stragglers_are_measured() -> None:
    runs, *others = measure(SCENARIO, parts_of(seeds=1, tasks=200, loads_alone=True)[:1], jobs=1, say=str)
    assert not others
    plain, late = (runs[name][0].copies for name in (NONE, "late"))
    assert plain is not None
    assert late is not None
    assert plain.marked == 0 < late.won
