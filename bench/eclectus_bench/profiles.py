"""Runs of all profiles of a shipped scenario with the same seeds, and cells of tables made of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from eclectus.maths.student import half_width
from eclectus.model.errors import EclectusError
from eclectus.sim.base.results import RunFailure, RunResult
from eclectus.sim.runs import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario import load, shipped_scenarios

Runs = Mapping[str, Sequence[RunResult]]
"""By profile, in the order of seeds."""


@dataclass(frozen=True)
class Part:
    """The scenario with these changes, once for each profile and seed. `profiles`: some; empty: all."""

    changes: tuple[str, ...]
    seeds: int
    profiles: tuple[str, ...] = ()


def parser_of(command: str, about: str | None) -> argparse.ArgumentParser:
    """The options that the commands of all such pages have."""
    parser = argparse.ArgumentParser(prog=command, description=about)
    parser.add_argument("--quick", action="store_true", help="two short runs of each, to check that it runs")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each profile (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    return parser


def measure(scenario: str, parts: Sequence[Part], jobs: int, say: Callable[[str], None]) -> list[Runs]:
    """The runs of each part, in `jobs` processes. Raises EclectusError if one fails."""
    path = shipped_scenarios()[scenario]
    specs, tasks = list[list[RunSpec]](), 0
    for part in parts:
        changed = load(path, part.changes)
        names = part.profiles or [profile.name for profile in changed.profiles]
        specs.append(list(_specs(path, part, names)))
        tasks += changed.tasks * len(specs[-1])
    every = [spec for some in specs for spec in some]
    results = iter(run_batch(every, jobs, lambda done: say(f"{done / tasks:.0%}"), StopRequest()))
    return [_by_profile(next(results) for _ in some) for some in specs]


def _specs(path: Path, part: Part, names: Sequence[str]) -> Iterator[RunSpec]:
    text = path.read_text(encoding="utf-8")
    for name in names:
        for seed in range(1, part.seeds + 1):
            yield RunSpec(text, path.parent, part.changes, name, seed)


def _by_profile(results: Iterator[RunResult | RunFailure]) -> Runs:
    found: dict[str, list[RunResult]] = {}
    for run in results:
        if isinstance(run, RunFailure):
            raise EclectusError(f"{run.profile}, seed {run.seed}: {run.reason}")
        found.setdefault(run.profile, []).append(run)
    return found


def publish(text: str, file: Path, *, is_short: bool) -> None:
    """Print a page, and write it unless it is of a short version."""
    print(text)
    if not is_short:
        file.write_text(text, encoding="utf-8")
        print(f"written: {file}")


def cell(values: Sequence[float | None], places: int) -> str:
    """The mean and half of Student's 95 % interval of the values that are known; empty if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    half = half_width(known)
    return f"{fmean(known):.{places}f}" + ("" if half is None else f" ±{half:.{places}f}")
