"""Stale views of the queues: herding, and the effect of knowing one's own placements.

100 machines, half of speed 1 and half of speed 4, load .9, exact rates, one dispatcher; the view is renewed
every so many mean service times of a machine of speed 1. The expected figures are those of an independent
simulation. As there, ties are random in the full view and go to the first of two choices. Rosella's full
view gives ties to the first of the fastest nodes, so that with a stale view all tasks go to one node, which
is far worse.

Rows with a mean above 10 are reported but not judged: their queues still grow in runs of this length, so the
figure depends on the length of the run.
"""

from __future__ import annotations

from functools import cache
from math import inf
from statistics import fmean
from typing import Any

import pytest

from eclectus.sim.base.results import RunResult
from published_clusters import halves, means
from short_scenarios import agree, near, place, poisson, runs, scenario

SAMPLE: dict[str, Any] = {"learn": "truth", "view": "sample", "compare": "wait"}
RULES = {
    "JSQ": place("jsq", learn="truth"),
    "SED": place("sed", learn="truth"),
    "two choices, SQ": place("first-drawn", learn="truth"),
    "two choices, wait": place("rosella", **SAMPLE),
}
FOUND: dict[tuple[str, bool], dict[float, float]] = {  # by rule and local correction: age -> mean
    ("JSQ", False): {0: 0.46, 0.2: 1.39, 1: 3.80, 4: 14.3},
    ("JSQ", True): {0.2: 0.79, 1: 1.41, 4: 3.11},
    ("SED", False): {0: 0.81, 0.2: 4.69, 1: 19.2, 4: 65.3},
    ("SED", True): {0.2: 0.72, 1: 0.92, 4: 1.17},
    ("two choices, SQ", False): {0: 1.06, 0.2: 1.15, 1: 1.42, 4: 2.21},
    ("two choices, wait", False): {0: 0.99, 0.2: 1.05, 1: 1.25, 4: 1.96},
    ("two choices, wait", True): {0.2: 1.01, 1: 1.14, 4: 1.35},
}
CELLS = [(rule, corrects, age) for (rule, corrects), by_age in FOUND.items() for age in by_age]
TASKS, SEEDS = 14_000, 3


@cache
def seen_late(
    rule: str, corrects: bool, age: float, tasks: int = TASKS, seeds: int = SEEDS
) -> list[RunResult]:
    (profile,) = RULES[rule]
    dispatchers = {"age": float(age), "localCorrection": corrects}
    asked = scenario(
        cluster=halves(100),
        workload=poisson(0.9),
        profiles=[profile | {"dispatchers": dispatchers}],
        measure={"tasks": tasks},
    )
    return runs(asked, range(1, seeds + 1))


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "corrects", "age"), CELLS)
def test_every_age(rule: str, corrects: bool, age: float) -> None:
    found = FOUND[rule, corrects][age]
    what = f"{rule}, age {age}{', own placements known' if corrects else ''}: mean"
    steady = found < 10
    judge = agree if steady else near
    assert judge(what, means(seen_late(rule, corrects, age)), found, 0.05 if steady else inf, tasks=TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("age", [0.2, 1, 4])
def test_the_full_view_is_better_only_while_it_is_fresh(age: float) -> None:
    def mean(rule: str, corrects: bool, age: float) -> float:
        return fmean(means(seen_late(rule, corrects, age)))

    # 1. Fresh, it is better.
    assert mean("JSQ", False, 0) < 0.6 * mean("two choices, SQ", False, 0)
    # 2. Stale, it herds.
    assert mean("SED", False, age) > mean("JSQ", False, age) > mean("two choices, SQ", False, age)
    # 3. Local correction helps all but two choices by SQ: fast nodes, which get most tasks, then look
    #    full, since completions are not known. It helps the full view most.
    for rule in ("JSQ", "SED", "two choices, wait"):
        assert mean(rule, True, age) < mean(rule, False, age)
    assert mean("SED", True, age) < mean("two choices, wait", True, age)


@pytest.mark.slow
def test_the_order_of_the_rules_turns_round_with_age() -> None:
    """A short version: JSQ is worse than two choices from an age of .2 on."""

    def mean(rule: str, age: float) -> float:
        return fmean(means(seen_late(rule, False, age, tasks=4000, seeds=1)))

    assert mean("JSQ", 0) < 0.7 * mean("two choices, SQ", 0)
    assert mean("JSQ", 0.2) > mean("two choices, SQ", 0.2)
    assert mean("JSQ", 1) > 1.5 * mean("two choices, SQ", 1)
