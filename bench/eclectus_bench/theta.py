"""Which theta is best, by slots and load, as in docs/results/rosella.md. Takes a few minutes.

`python -m eclectus_bench.theta` runs scenarios/theta.yaml with several slots and loads and prints mean and
99th percentile of the response as ratios to the central queue that knows no speeds, on the same streams.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from eclectus.sim.base.results import RunFailure, RunResult
from eclectus.sim.batch import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario.builtin import shipped_scenarios
from eclectus.sim.scenario.reading import parse
from eclectus_e2e.progress import Progress

TASKS = {1: 3000, 4: 5000}  # by slots: with more slots it takes longer until they are filled
LOADS = (0.5, 0.8, 0.9)
CASES = [(slots, load) for slots in TASKS for load in LOADS]
GROUPS = "abcd"
RIVAL = "central"
JOBS = 2


def main() -> None:
    """Measure and print, a line as soon as it is known."""
    path = shipped_scenarios()["theta"]
    for at, (slots, load) in enumerate(CASES):
        with Progress(f"case {at + 1} of {len(CASES)}"):
            runs = _runs(path, _changes(slots, load))
        ratios = {name: _ratio(each, runs[RIVAL]) for name, each in runs.items() if name != RIVAL}
        if not at:
            print(f"| slots | load | {' | '.join(ratios)} |")
            print("|---|---|" + "---|" * len(ratios), flush=True)
        print(f"| {slots} | {load} | {' | '.join(ratios.values())} |", flush=True)


def _changes(slots: int, load: float) -> tuple[str, ...]:
    groups = [f"cluster.groups.{name}.slots={slots}" for name in GROUPS]
    return (*groups, f"workload.poisson.load={load}", f"measure.tasks={TASKS[slots]}")


def _runs(path: Path, changes: tuple[str, ...]) -> dict[str, list[RunResult]]:
    text = path.read_text()
    scenario = parse(text, path.parent, changes)
    questions = list(_questions(text, path.parent, changes, [each.name for each in scenario.profiles]))
    runs: dict[str, list[RunResult]] = {}
    for run in run_batch(questions, JOBS, lambda _: None, StopRequest()):
        if isinstance(run, RunFailure):
            sys.exit(f"{run.profile}, seed {run.seed}: {run.reason}")
        runs.setdefault(run.profile, []).append(run)
    return runs


def _questions(text: str, folder: Path, changes: tuple[str, ...], names: Sequence[str]) -> Iterator[RunSpec]:
    for name in names:
        for seed in range(1, parse(text, folder, changes).seeds + 1):
            yield RunSpec(text, folder, changes, name, seed)


def _ratio(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> str:
    pairs = list(zip(ours, theirs, strict=True))
    mean = fmean(one.response.mean / other.response.mean for one, other in pairs)
    p99 = fmean(one.response.p99 / other.response.p99 for one, other in pairs)
    return f"{mean:.2f}/{p99:.2f}"


if __name__ == "__main__":
    main()
