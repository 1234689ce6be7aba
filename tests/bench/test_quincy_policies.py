"""The four policies of the paper in `make quincy`: each is explained, slowdowns are of the same jobs."""

from __future__ import annotations

import pytest
import yaml
from msgspec.structs import replace

from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load, shipped_scenarios
from eclectus_bench.profiles import measure
from eclectus_bench.quincy_policies import (
    ALONE,
    CLASSES,
    MEANS,
    NONE,
    SCENARIO,
    parts_of,
    section,
    slowdown,
    unfairness,
)


def test_every_profile_of_the_scenario_is_explained() -> None:
    path = shipped_scenarios()[SCENARIO]
    assert [each.name for each in load(path).profiles] == list(MEANS)
    classes = yaml.safe_load(path.read_text("utf-8"))["workload"]["poisson"]["classes"]
    assert [each["name"] for each in classes] == list(CLASSES)


@pytest.fixture(scope="module")
def any_run() -> RunResult:
    changed = load(shipped_scenarios()[SCENARIO], ("measure.tasks=60",))
    return run(changed, changed.profiles[0], 1)


def of(any_run: RunResult, **means: float) -> RunResult:
    """A run in which jobs of these classes take so long on average, seconds."""
    group = next(iter(any_run.groups["class"].values()))
    classes = {
        name: replace(group, jobs=replace(group.jobs, mean=mean, count=3)) for name, mean in means.items()
    }
    return replace(any_run, groups={"class": classes})


def test_unfairness_is_how_much_the_slowdowns_of_classes_differ(any_run: RunResult) -> None:
    alone = of(any_run, short=10.0, middle=20.0, long=40.0)
    even, uneven = (
        of(any_run, short=20.0, middle=40.0, long=80.0),
        of(any_run, short=30.0, middle=40.0, long=40.0),
    )
    assert unfairness(even, alone) == 0.0
    assert slowdown("short")(uneven, alone) == 3.0
    assert unfairness(uneven, alone) == pytest.approx((2 / 3) ** 0.5 / 2)


def test_a_run_without_jobs_of_a_class_says_nothing_of_it(any_run: RunResult) -> None:
    alone = of(any_run, short=10.0, middle=20.0, long=40.0)
    few = of(any_run, short=20.0, middle=40.0)
    assert slowdown("long")(few, alone) is None
    assert unfairness(few, alone) is None
    *_, row = section({NONE: [few]}, {ALONE: [alone]}, 60)
    assert "| 2.00 | 2.00 |  |  |" in row
    assert row.endswith("| 1.000 | 1.000 |")


def test_only_profiles_that_preempt_end_tasks() -> None:
    together, alone = measure(SCENARIO, parts_of(seeds=1, tasks=300), jobs=1, say=str)
    ended = {name for name, (found,) in together.items() if found.evictions}
    assert {"fair-preempt"} <= ended <= {"preempt", "fair-preempt"}
    assert all(not found.faults for (found,) in together.values())
    assert alone[ALONE][0].groups["class"].keys() <= set(CLASSES)
