"""`make together`: each feature has a profile alone, and what it brings is compared seed by seed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import Part, measure
from eclectus_bench.together import BESIDE, FEATURES, NONE, SCENARIO, Facts, page
from short_scenarios import scenario


def test_every_profile_that_is_compared_is_in_the_scenario() -> None:
    names = {each.name for each in load(shipped_scenarios()[SCENARIO]).profiles}
    assert {NONE, *BESIDE, *(feature.alone for feature in FEATURES)} <= names


def of(any_run: RunResult, wait: float, p99: float, locality: float) -> RunResult:
    group = next(iter(any_run.groups["class"].values()))
    shop = replace(group, wait=replace(group.wait, mean=wait))
    batch = replace(group, jobs=replace(group.jobs, p99=p99))
    jobs = replace(any_run.jobs, mean=p99 / 100.0)
    lab = replace(group, jobs=replace(group.jobs, mean=p99))
    lab = replace(lab, response=replace(group.response, mean=p99), wait=replace(group.wait, mean=0.0))
    bound = replace(group, response=replace(group.response, mean=p99 / 10.0))
    groups = {"class": {"shop": shop, "batch": batch, "lab": lab}, "constrained": {"constrained": bound}}
    return replace(any_run, groups=groups, jobs=jobs, locality=locality)


def test_what_a_feature_brings_beside_others_is_over_what_it_brings_alone_with_the_same_seed() -> None:
    plain = scenario(measure={"tasks": 60, "groups": ["class"]})
    any_run = run(plain, plain.profiles[0], 1)
    none = [of(any_run, 10.0, 600.0, 0.1), of(any_run, 20.0, 600.0, 0.1)]
    good = [of(any_run, 0.0, 300.0, 0.7), of(any_run, 10.0, 300.0, 0.7)]
    less = [of(any_run, 1.0, 330.0, 0.7), of(any_run, 11.0, 330.0, 0.7)]
    runs = {"none": none, "full": less, "all": less}
    runs |= dict.fromkeys(("pools", "late", "delay", "rosella"), good)
    lines = page(Facts("1.0", 2, 20), runs).splitlines()
    last = [
        line.split(" | ")[-4:] for line in lines if line.startswith(tuple(f"| {f.name} |" for f in FEATURES))
    ]
    brings, over, same = "0.90 ±0.00", "1.10 ±0.00", "1.00 ±0.00"
    assert last == [
        ["1.20 ±2.54", "1.20 ±2.54", brings, f"{brings} |"],
        [over, over, brings, f"{brings} |"],
        [same, same, same, f"{same} |"],
        [over, "", brings, " |"],
        [over, "", brings, " |"],
    ]
    took = "600.0 ±0.0 | 330.0 ±0.0 | 330.0 ±0.0"
    assert f"| gangs | response of gangs, mean, s | {took} | 0.55 ±0.00 | 0.55 ±0.00 |" in lines
    assert any(line.startswith("| constraints |") and line.endswith("| 0.55 ±0.00 |") for line in lines)


def test_what_is_worse_beside_others_brings_less_than_nothing() -> None:
    plain = scenario(measure={"tasks": 60, "groups": ["class"]})
    any_run = run(plain, plain.profiles[0], 1)
    none, alone, worse = (
        of(any_run, *each) for each in ((9.0, 600.0, 0.4), (4.0, 300.0, 0.7), (19.0, 900.0, 0.1))
    )
    for feature in FEATURES:
        assert feature.brings(alone, none) > 0 > feature.brings(worse, none)


@pytest.mark.long
def test_everything_at_once_is_measured() -> None:
    (runs,) = measure(SCENARIO, [Part(("measure.tasks=60",), 1)], jobs=1, say=str)
    assert all(len(mine) == 1 for mine in runs.values())
    assert f"| {FEATURES[0].name} |" in page(Facts("1.0", 1, 60), runs)
