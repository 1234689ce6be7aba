"""Scenarios of a section, their runs, and figures beside the baseline's runs of the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

import numpy as np
import yaml

from eclectus.api.names import API_VERSION
from eclectus.maths.student import half_width
from eclectus.model.errors import EclectusError
from eclectus.sim.base.results import DagComparison, DagResult, Interval, RunFailure, RunResult
from eclectus.sim.base.work import WorkClass
from eclectus.sim.report.compare import compare_jobs
from eclectus.sim.runs import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario import Scenario, parse
from eclectus_bench.carbyne.cases import BASELINE, CORES, MACHINES, WINDOW, Case, Section, folder

Runs = dict[str, dict[str, list[RunResult]]]
"""Case -> contestant -> its runs in the order of the seeds."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    jobs: int = 60  # a run: at once, about as many for each core as the 250 of the paper
    seeds: int = 3


def run_section(section: Section, size: Size, processes: int, say: Callable[[str], None]) -> Runs:
    """All runs of the section. Raises EclectusError if one fails."""
    specs = list(specs_of(section, size))
    tasks = _tasks(specs)
    found = run_batch(
        [spec for _, _, spec in specs], processes, lambda done: say(f"{done / tasks:.0%}"), StopRequest()
    )
    runs: Runs = {case.what: {} for case in section.cases}
    for (case, name, _), result in zip(specs, found, strict=True):
        if isinstance(result, RunFailure):
            raise EclectusError(f"{section.name}, {case}, {name}, seed {result.seed}: {result.reason}")
        runs[case].setdefault(name, []).append(result)
    return runs


def _tasks(specs: Sequence[tuple[str, str, RunSpec]]) -> int:
    """Of all runs together; those of one case have equally many."""
    by_case = {case: spec for case, _, spec in specs}
    counts = {case: parse(each.text, each.folder, each.changes).tasks for case, each in by_case.items()}
    return sum(counts[case] for case, _, _ in specs)


def specs_of(section: Section, size: Size) -> Iterator[tuple[str, str, RunSpec]]:
    """Case, contestant and run, of all runs of the section."""
    text = scenario_text(section)
    for case in section.cases:
        changes = (f"workload.dags.jobs={size.jobs}", *_arrivals(text, case), *case.changes)
        for name in section.contestants:
            for seed in range(1, size.seeds + 1):
                yield case.what, name, RunSpec(text, folder(), changes, name, seed)


def _arrivals(text: str, case: Case) -> tuple[str, ...]:
    """The settings of arrivals for the load of the case."""
    if case.load is None:
        return ()
    rate = case.load / load_at_rate_1(text)
    return ("workload.dags.arrivals=poisson", f"workload.dags.rate={rate!r}", "measure.warmUp=0")


def load_at_rate_1(text: str) -> float:
    """Load of the resource that is shortest if one job arrives per second."""
    scenario = parse(text, folder(), ("workload.dags.arrivals=poisson", "workload.dags.rate=1"))
    return max(loads(scenario).values())


def loads(scenario: Scenario) -> Mapping[str, float]:
    """Arriving demand of each resource over what all machines offer, speeds counted."""
    offered: dict[str, float] = {}
    for machine in scenario.cluster.machines().values():
        for name, amount in machine.node.allocatable:
            offered[name] = offered.get(name, 0.0) + amount * machine.nominal_speed("")
    wanted: dict[str, float] = {}
    rates: Mapping[WorkClass, float] = scenario.plan.work_rates
    for work_class, rate in rates.items():
        for name, amount in work_class.demand:
            wanted[name] = wanted.get(name, 0.0) + amount * rate
    return {name: amount / offered[name] if offered.get(name) else inf for name, amount in wanted.items()}


def scenario_text(section: Section) -> str:
    """The scenario of the section; its files are relative to the folder of data sets."""
    dags = yaml.safe_load(f"{{{section.jobs.settings}}}")
    dags |= {"classes": section.classes, "fairnessWindow": WINDOW}
    dags |= dict(zip(("file", "graphs"), section.jobs.files, strict=False))
    machine = {"resources": {"cpu": CORES, "memory": "128Gi"}}
    mean = fmean(section.speeds or (1,))  # estimates are of speed 1, and meant as those of mean speed
    parts = [{"name": f"speed-{one}", "speed": one / mean} for one in section.speeds] or [{"name": "node"}]
    count = max(MACHINES // len(parts), 1)
    document = {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "about": section.title,
        "cluster": {"groups": [{"count": count, **machine, **part} for part in parts]},
        "workload": {"dags": dags},
        "allowUnstable": True,
        "profiles": [{"schedulerName": name, **each} for name, each in section.contestants.items()],
    }
    return yaml.safe_dump(document, sort_keys=False)


@dataclass(frozen=True)
class Row:
    """One contestant in one case; figures by the names of `OWN` and `BESIDE`."""

    case: str
    contestant: str
    figures: dict[str, Interval | None]


def _quantile(share: float) -> Callable[[DagResult], float]:
    return lambda dags: float(np.quantile([job.response for job in dags.jobs], share))


OWN: dict[str, Callable[[DagResult], float | None]] = {
    "mean, s": lambda dags: fmean(job.response for job in dags.jobs),
    "p50, s": _quantile(0.5),
    "p95, s": _quantile(0.95),
    "Jain": lambda dags: dags.fairness,
    "x alone": lambda dags: fmean(job.unfairness for job in dags.jobs),
    "slips": lambda dags: dags.slips,
}
BESIDE: dict[str, Callable[[DagComparison], float]] = {
    "factor": lambda found: found.factor,
    "p50": lambda found: found.p50,
    "p95": lambda found: found.p95,
    "below 0.8, %": lambda found: 100 * found.losers,
    "worst": lambda found: found.worst,
    "makespan": lambda found: found.makespan,
}


def rows_of(runs: Runs) -> Iterator[Row]:
    """A row for each contestant of each case; the baseline is the first of them."""
    for case, by_contestant in runs.items():
        baseline = by_contestant[BASELINE]
        for name, mine in by_contestant.items():
            own = {what: _interval([read(dags(run)) for run in mine]) for what, read in OWN.items()}
            beside = {
                what: _beside(read, mine, baseline) if mine is not baseline else None
                for what, read in BESIDE.items()
            }
            yield Row(case, name, own | beside)


def dags(run: RunResult) -> DagResult:
    """The jobs with stages of a run that has some."""
    if run.dags is None or not run.dags.jobs:
        raise ValueError(f"{run.profile}, seed {run.seed}: no job with stages has ended")
    return run.dags


def _beside(
    read: Callable[[DagComparison], float], mine: Sequence[RunResult], baseline: Sequence[RunResult]
) -> Interval | None:
    found = (compare_jobs(dags(one), dags(other)) for one, other in zip(mine, baseline, strict=True))
    return _interval([None if each is None else read(each) for each in found])


def _interval(values: Sequence[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return Interval(fmean(known), half_width(known)) if len(known) == len(values) else None
