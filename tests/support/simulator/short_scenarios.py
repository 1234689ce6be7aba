"""Short ways to write scenarios, and the rule by which a measured mean agrees with an expected value."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from checked_worlds import run_checked
from eclectus.api.names import API_VERSION
from eclectus.maths.student import half_width
from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import Scenario, parse

PLAIN: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Scenario",
    "cluster": {"groups": [{"count": 1}]},
    "workload": {"poisson": {"load": 0.5}},
    "profiles": [{"schedulerName": "plain", "place": {"policy": "uniform"}, "learn": {"policy": "none"}}],
    "measure": {"tasks": 400},
}


def document(**fields: Any) -> dict[str, Any]:
    """The fields of a scenario, with these instead of the defaults; None removes a field."""
    merged = copy.deepcopy(PLAIN) | fields
    return {key: value for key, value in merged.items() if value is not None}


def scenario(**fields: Any) -> Scenario:
    """The same as a validated scenario."""
    return parse(yaml.safe_dump(document(**fields)))


def poisson(load: float | None = None, size: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A Poisson workload with one class."""
    rate = {} if load is None else {"load": load}
    return {"poisson": {**rate, "classes": [{"size": size or {}}], **fields}}


def place(policy: str, *, learn: str = "none", **settings: Any) -> list[dict[str, Any]]:
    """A list of one profile, named `it`."""
    return [{"schedulerName": "it", "place": {"policy": policy, **settings}, "learn": {"policy": learn}}]


def runs(world: Scenario, seeds: Iterable[int], *, checked: bool = False) -> list[RunResult]:
    """Runs of the scenario's first profile with each seed."""
    return [(run_checked if checked else run)(world, world.profiles[0], seed) for seed in seeds]


class Verdict(NamedTuple):
    """One comparison of a measured mean with an expected value."""

    what: str
    oracle: float
    mean: float
    half: float  # half the width of Student's 95 % interval
    runs: int
    tasks: int  # per run; 0 if not meaningful


VERDICTS: list[Verdict] = []
"""All comparisons so far in this process, for reports."""


def agree(what: str, values: Sequence[float], oracle: float, within: float = 0.01, tasks: int = 0) -> bool:
    """The accept rule: Student's 95 % interval contains the oracle, or the mean is within `within` of it."""
    half = half_width(values)
    assert half is not None, "an interval needs two runs"
    return near(what, values, oracle, within, tasks) or abs(fmean(values) - oracle) <= half


def near(what: str, values: Sequence[float], oracle: float, within: float, tasks: int = 0) -> bool:
    """Whether the mean is within this relative distance, however wide the interval is."""
    mean = float(fmean(values))
    VERDICTS.append(Verdict(what, float(oracle), mean, half_width(values) or 0.0, len(values), tasks))
    return abs(mean - oracle) <= within * abs(oracle)
