"""Scenarios in a line or two, and the rule by which a measured mean agrees with a formula."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from eclectus.maths.student import half_width
from eclectus.sim.base.results import RunResult
from eclectus.sim.run import run
from eclectus.sim.scenario.reading import parse
from eclectus.sim.scenario.scenario import Scenario

PLAIN: dict[str, Any] = {
    "apiVersion": "eclectus.dev/v1alpha1",
    "kind": "Scenario",
    "cluster": {"groups": [{"count": 1}]},
    "workload": {"poisson": {"load": 0.5}},
    "profiles": [{"schedulerName": "plain", "place": {"policy": "uniform"}, "learn": {"policy": "none"}}],
    "measure": {"tasks": 400},
}


def document(**fields: Any) -> dict[str, Any]:
    """A scenario's fields, those given instead of the plain ones; None leaves one out."""
    merged = copy.deepcopy(PLAIN) | fields
    return {key: value for key, value in merged.items() if value is not None}


def scenario(**fields: Any) -> Scenario:
    """The same, read and checked."""
    return parse(yaml.safe_dump(document(**fields)))


def poisson(load: float | None = None, size: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A workload of one class."""
    rate = {} if load is None else {"load": load}
    return {"poisson": {**rate, "classes": [{"size": size or {}}], **fields}}


def place(policy: str, *, learn: str = "none", **settings: Any) -> list[dict[str, Any]]:
    """One profile, called `it`."""
    return [{"schedulerName": "it", "place": {"policy": policy, **settings}, "learn": {"policy": learn}}]


def runs(world: Scenario, seeds: Iterable[int], *, checked: bool = False) -> list[RunResult]:
    """The scenario's first profile with each seed."""
    return [run(world, world.profiles[0], seed, checked=checked) for seed in seeds]


class Verdict(NamedTuple):
    """One comparison."""

    what: str
    oracle: float
    mean: float
    half: float  # half the width of Student's 95 % interval
    runs: int
    tasks: int  # a run; 0 where that says nothing


VERDICTS: list[Verdict] = []
"""What was compared so far, in this process."""


def agree(what: str, values: Sequence[float], oracle: float, within: float = 0.01, tasks: int = 0) -> bool:
    """The accept rule: Student's 95 % interval on run means contains the oracle, or the mean is this near."""
    half = half_width(values)
    assert half is not None, "an interval needs two runs"
    return near(what, values, oracle, within, tasks) or abs(fmean(values) - oracle) <= half


def near(what: str, values: Sequence[float], oracle: float, within: float, tasks: int = 0) -> bool:
    """Whether the mean is this near, relative, however wide the interval."""
    mean = float(fmean(values))
    VERDICTS.append(Verdict(what, float(oracle), mean, half_width(values) or 0.0, len(values), tasks))
    return abs(mean - oracle) <= within * abs(oracle)
