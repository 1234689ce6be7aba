"""Runs all contestants of a section, and compares them run by run with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import yaml

from eclectus.maths.student import half_width
from eclectus.model.errors import EclectusError
from eclectus.sim.base.results import GroupResult, RunFailure, RunResult
from eclectus.sim.runs import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario import shipped_scenarios
from eclectus_bench.phoenix.cases import Case, Contestant, Section

GROUPS = "measure.groups=[class, length, constrained, set]"
CUT_OFF = "measure.cutOff=20s"
WORST = "worst set"
MET = "met"


@dataclass(frozen=True)
class Size:
    """How much is run: rather more seeds than longer runs, because intervals of three seeds say little."""

    tasks: int = 10_000  # a run
    seeds: int = 5
    workers: int = 200  # of the traces


@dataclass(frozen=True)
class Measured:
    """A figure of one contestant in one case: a mean over runs and half the width of its interval."""

    mean: float
    half_width: float | None
    what: str = ""  # the group, where the figure is that of the worst one

    @property
    def loses(self) -> bool:
        """For a ratio to the baseline, lower being better: whether its interval lies above 1."""
        return self.mean - (self.half_width or 0.0) > 1.0


@dataclass(frozen=True)
class Row:
    """One contestant in one case: seconds for the baseline, else ratios to it; None: no such task."""

    case: str
    contestant: str
    figures: Mapping[str, Measured | None]


# -- figures of one run ----------------------------------------------------------------------------


def _group(run: RunResult, grouping: str, name: str) -> GroupResult | None:
    return run.groups[grouping].get(name)


def _response(grouping: str, name: str) -> Callable[[RunResult], float | None]:
    return lambda run: None if (group := _group(run, grouping, name)) is None else group.response.mean


def _wait(grouping: str, name: str, p99: bool = False) -> Callable[[RunResult], float | None]:
    def read(run: RunResult) -> float | None:
        group = _group(run, grouping, name)
        return None if group is None else group.wait.p99 if p99 else group.wait.mean

    return read


def _work_by_wait(run: RunResult) -> float:
    """Mean wait of a second of work: each task's wait counts by the mean size of its class.

    With equal nodes and no constraint it is the same in every order of a central queue (Kleinrock 1965).
    """
    parts = list(run.groups["length"].items())
    work = [group.response.count * SIZES[name] for name, group in parts]
    return sum(each * group.wait.mean for each, (_, group) in zip(work, parts, strict=True)) / sum(work)


SIZES = {"short": 5.0, "long": 60.0}  # seconds: the means of the scenarios' classes
BY_CONSTRAINTS: dict[str, Callable[[RunResult], float | None]] = {
    "con mean": _response("constrained", "constrained"),
    "con wait": _wait("constrained", "constrained"),
    "con wait p99": _wait("constrained", "constrained", p99=True),
    "preferring mean": _response("constrained", "preferring"),
    "free mean": _response("constrained", "free"),
}
FIGURES = BY_CONSTRAINTS | {
    "all mean": lambda run: run.response.mean,
    "long mean": _response("length", "long"),
    "work x wait": _work_by_wait,
}


# -- comparison ------------------------------------------------------------------------------------


def rows_of(section: Section, case: Case, runs: Mapping[str, Sequence[RunResult]]) -> Iterator[Row]:
    """A row for each contestant; `runs` by contestant, each in the order of the seeds."""
    baseline = runs[section.baseline]
    for name, mine in runs.items():
        alike = list(map(_labels, mine)) == list(map(_labels, baseline))
        figures = {
            column: _compared(FIGURES[column], mine, baseline)
            if alike or column not in BY_CONSTRAINTS
            else None
            for column in section.columns
        }
        figures[WORST] = _worst_set(mine, baseline) if alike else None
        figures[MET] = interval([run.met for run in mine])
        yield Row(case.what, name, figures)


def _labels(run: RunResult) -> dict[str, int]:
    """Tasks by constraint set: where they differ, groups of one name are not the same tasks."""
    return {name: group.response.count for name, group in run.groups["set"].items()}


def _compared(
    read: Callable[[RunResult], float | None], mine: Sequence[RunResult], baseline: Sequence[RunResult]
) -> Measured | None:
    """Ratios to the baseline's run of the same seed; plain values if the two are the same."""
    if mine is baseline:
        return interval([read(run) for run in mine])
    pairs = [(read(run), read(other)) for run, other in zip(mine, baseline, strict=True)]
    return interval([None if one is None or not other else one / other for one, other in pairs])


def _worst_set(mine: Sequence[RunResult], baseline: Sequence[RunResult]) -> Measured | None:
    """The constraint set, the preferring or the free tasks with the largest ratio; none for the baseline."""
    if mine is baseline:
        return None
    found = []
    for name in baseline[0].groups["set"]:
        ratio = _compared(_response("set", name), mine, baseline)
        if ratio is not None:
            found.append(Measured(ratio.mean, ratio.half_width, name))
    return max(found, key=lambda each: each.mean, default=None)


def interval(values: Sequence[float | None]) -> Measured | None:
    """The mean with its interval; none if a run has no such figure."""
    known = [value for value in values if value is not None]
    return Measured(fmean(known), half_width(known)) if len(known) == len(values) else None


# -- runs ------------------------------------------------------------------------------------------


def measure(section: Section, size: Size, jobs: int, say: Callable[[str], None]) -> list[Row]:
    """All rows of the section. Raises EclectusError if a run fails."""
    specs = list(_specs(section, size))
    found = completed(section.name, [spec for _, _, spec in specs], size, jobs, say)
    runs: dict[str, dict[str, list[RunResult]]] = {case.what: {} for case in section.cases}
    for (case, name, _), run in zip(specs, found, strict=True):
        runs[case].setdefault(name, []).append(run)
    return [row for case in section.cases for row in rows_of(section, case, runs[case.what])]


def completed(
    name: str, specs: Sequence[RunSpec], size: Size, jobs: int, say: Callable[[str], None]
) -> list[RunResult]:
    """The results in the order of the specs. Raises EclectusError if a run fails."""
    total = size.tasks * len(specs)
    found = run_batch(specs, jobs, lambda tasks: say(f"{tasks / total:.0%}"), StopRequest())
    done: list[RunResult] = []
    for spec, run in zip(specs, found, strict=True):
        if isinstance(run, RunFailure):
            where = " ".join((name, *spec.changes))
            raise EclectusError(f"{where}, {run.profile}, seed {run.seed}: {run.reason}")
        done.append(run)
    return done


def _specs(section: Section, size: Size) -> Iterator[tuple[str, str, RunSpec]]:
    path = shipped_scenarios()[section.scenario]
    text = scenario_text(path, section.contestants)
    common = (GROUPS, CUT_OFF, f"measure.tasks={size.tasks}")
    for case in section.cases:
        for name, contestant in section.contestants.items():
            changes = (*case.changes, *contestant.changes, *common)
            for seed in range(1, size.seeds + 1):
                yield case.what, name, RunSpec(text, path.parent, changes, name, seed)


def scenario_text(path: Path, contestants: Mapping[str, Contestant]) -> str:
    """The scenario with the profiles of these contestants instead of its own."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["profiles"] = [{"schedulerName": name, **each.profile} for name, each in contestants.items()]
    return yaml.safe_dump(document)
