"""`make rosella`: profiles are explained, exponents are fitted, and the page has a row for each."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.processes import in_processes
from eclectus_bench.rosella import report
from eclectus_bench.rosella.learning import (
    LEARNERS,
    Learned,
    exponent_of_load,
    exponent_of_nodes,
)
from eclectus_bench.rosella.queues import CONTESTANTS, LAWS, ONE, QueueCase, exponent, growth
from eclectus_bench.rosella.report import MEANS, SCENARIO, Facts, page
from eclectus_bench.rosella.sizes import SETTINGS, Size
from short_scenarios import scenario


def test_every_profile_of_the_scenario_is_explained() -> None:
    assert [each.name for each in load(shipped_scenarios()[SCENARIO]).profiles] == list(MEANS)


def test_exponents_are_those_of_what_is_fitted() -> None:
    nodes = 25, 100, 400
    assert exponent([3.0, 3.0, 3.0], nodes) == pytest.approx(0.0)
    assert exponent([3.0 * ONE.scale(n) for n in nodes], nodes) == pytest.approx(1.0)
    for law in LAWS:
        straight = [2.0 + 1.5 * law.scale(n) for n in nodes]
        assert growth(law, straight, nodes) == pytest.approx(1.5)
    loads = 0.3, 0.5, 0.8
    assert exponent_of_load([7.0 / (a * (1 - a) ** 2) for a in loads], loads) == pytest.approx(2.0)
    assert exponent_of_load([7.0 / a for a in loads], loads) == pytest.approx(0.0)
    assert exponent_of_nodes([7.0, 7.0, 7.0], nodes) == pytest.approx(0.0)


def test_the_page_has_ratios_laws_and_exponents() -> None:
    plain = scenario()
    any_run = run(plain, plain.profiles[0], 1)
    runs = {
        name: [replace(any_run, jobs=replace(any_run.jobs, mean=mean * seed)) for seed in (1, 2)]
        for name, mean in zip(MEANS, (10.0, 8.0, 6.0, 4.0, 2.0), strict=True)
    }
    longest = {
        QueueCase(policy, nodes, seed): float(nodes)
        for policy, nodes, seed in product(CONTESTANTS, (25, 100), (1, 2))
    }
    size = Size(2, loads=(0.3, 0.5), learning_nodes=(10, 40))
    times = {case: Learned(case.window / case.load, 0.123) for case in size.learning_cases()}
    lines = page(Facts("1.0", 2, 600), dict.fromkeys(SETTINGS, runs), longest, times).splitlines()
    assert lines.count(f"| `paper` | {' | '.join(['0.40 ±0.00'] * 6)} |") == len(SETTINGS) / 6 == 2
    assert any(line.startswith("| `sparrow` | 15.00 ±") for line in lines)
    said = (
        "0.40 ±0.00 of `sparrow`'s time for single tasks, **not** the paper's 0.35, and 0.40 ±0.00 for jobs."
    )
    assert f"With speeds 1 : 3, at load 0.9, `paper` takes {said}" in lines
    assert any(line.startswith("| `pot` | 25.00 ±0.00 | 100.00 ±0.00 |") for line in lines)
    assert any(line.startswith("| law of one choice | 6.97 | 9.6") for line in lines)
    assert "| `paper` | 10 | 0.5 | 410 | 820 | 820 ±0 | 12.3 ±0.0 | 15 |" in lines
    assert "| `eclectus` | 40 | 0.3 | 64 | 213 | 213 ±0 | 12.3 ±0.0 | 21 |" in lines
    assert "| b of time x a = c (1 - a)^-b | 2 | 2.00 ±0.00 | 0.00 ±0.00 |" in lines
    assert "| b of time = c (ln n)^b | 1 | 1.00 ±0.00 | 0.00 ±0.00 |" in lines


def test_a_case_of_both_series_is_run_once() -> None:
    cases = Size(3).learning_cases()
    assert len(cases) == len(set(cases))
    assert {case.learner for case in cases} == set(LEARNERS)
    assert cases == sorted(cases, key=lambda case: case.tasks)


def test_cases_are_worked_on_in_processes_and_keep_their_order() -> None:
    said: list[str] = []
    assert in_processes(abs, [-1, 2, -3], 2, said.append) == [1, 2, 3]
    assert said[-1] == "3 of 3"
    with pytest.raises(TypeError):
        in_processes(abs, [1, "a"], 2, said.append)


@pytest.mark.slow
def test_the_short_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| `{name}` |" in printed for name in MEANS)
    assert "written" not in printed
