"""`make rivals`: what is compared is what it is called, and the page says where a rival is better."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import Scenario, load, parse, shipped_scenarios
from eclectus_bench.held_out import SEEDS
from eclectus_bench.rivals import BASELINE, CASES, LABEL, OURS, RIVALS, Case, measure, page, scenario_text
from short_scenarios import poisson, runs, scenario

SHORT = ("measure.horizon=5s",)


def read(case: Case, **profile: Any) -> Scenario:
    """The scenario of the case, short; `profile`: one more, with these roles."""
    document = yaml.safe_load(scenario_text(case))
    if profile:
        document["profiles"].append({"schedulerName": "more", **profile})
    return parse(yaml.safe_dump(document), None, SHORT)


def run_of(read: Scenario, name: str) -> RunResult:
    return run(read, next(each for each in read.profiles if each.name == name), SEEDS.start)


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.what)
def test_a_case_is_the_demo_at_its_load_with_speeds_as_labels(case: Case) -> None:
    found = read(case)
    assert [each.name for each in found.profiles] == list(RIVALS)
    assert bool(found.perturbations) == case.changes
    shipped = load(shipped_scenarios()["short-demo"])
    assert found.plan.tasks_a_second / shipped.plan.tasks_a_second == pytest.approx(case.load / 0.9, rel=0.01)
    for machine in found.cluster.machines().values():
        assert dict(machine.node.labels)[LABEL] == f"{machine.nominal_speed(''):g}"


def test_eclectus_reads_no_label_of_speed() -> None:
    shipped = load(shipped_scenarios()["short-demo"], SHORT)
    (with_labels, without) = (run_of(each, OURS) for each in (read(CASES[-1]), shipped))
    assert with_labels.response == without.response
    assert with_labels.met == without.met


def test_packing_is_the_same_as_most_allocated() -> None:
    both = read(CASES[-1], place={"policy": "most-allocated", "ties": "random"})
    packing, more = (run_of(both, name) for name in ("packing", "more"))
    assert packing.response == more.response
    assert packing.response != run_of(both, BASELINE).response


def test_pods_go_to_nodes_that_their_profile_prefers() -> None:
    found = measure(CASES[0], [SEEDS.start], 1, SHORT)
    fast, plain = (found[name][0].response.mean for name in ("kube-fast", "kube"))
    assert fast < plain


@pytest.fixture(scope="module")
def any_run() -> RunResult:
    return runs(scenario(workload=poisson(0.5), measure={"tasks": 40}), [1])[0]


def of(any_run: RunResult, means: list[float], met: float) -> list[RunResult]:
    return [
        replace(any_run, met=met, response=replace(any_run.response, mean=mean, p50=1.0, p99=1.0))
        for mean in means
    ]


def test_the_page_says_who_is_worse_than_the_baseline_and_who_better_than_eclectus(
    any_run: RunResult,
) -> None:
    table = {
        BASELINE: of(any_run, [10.0, 20.0], 0.5),
        OURS: of(any_run, [8.0, 16.0], 0.4),
        "kube": of(any_run, [6.0, 12.0], 0.4),
        "packing": of(any_run, [12.0, 24.0], 0.5),
    }
    lines = page(2, {Case(changes=False, load=0.6): table}).splitlines()
    same = "1.00 ±0.00 | 1.00 ±0.00"
    assert f"| stay, 0.6 | `{OURS}` | 0.80 ±0.00 | {same} | **0.80 ±0.00** |" in lines
    assert f"| stay, 0.6 | `packing` | **1.20 ±0.00** | {same} | 1.00 ±0.00 |" in lines
    losses = lines[lines.index("## Where a rival is better than Eclectus") :]
    assert "| stay, 0.6 | mean response | `kube` 0.75 ±0.00 |" in losses
    met = f"`{BASELINE}` 1.25 ±0.00, `packing` 1.25 ±0.00"
    assert f"| stay, 0.6 | preferences met | {met} |" in losses
    assert len([line for line in losses if line.startswith("| stay")]) == 2
