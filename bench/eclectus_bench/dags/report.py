"""The runs as a table: means for each contestant, and ratios within pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from eclectus_bench.dags.reckoning import Run
from eclectus_bench.schedulers import ECLECTUS
from eclectus_e2e.pairs import ratio_interval, verdict


@dataclass(frozen=True)
class Row:
    """A measure; less is better unless it says more."""

    title: str
    read: Callable[[Run], float]
    more: bool = False


ROWS = (
    Row("steps a second", lambda run: run.steps / run.seconds, more=True),
    Row("mean time of a graph, s", lambda run: run.graph_seconds),
    Row("writes a step, without argoexec", lambda run: sum(run.writes.values()) / run.steps),
    Row(
        "writes a step, with argoexec",
        lambda run: (sum(run.writes.values()) + run.executor_writes) / run.steps,
    ),
    Row("CPU of the engine a step, ms", lambda run: 1000 * run.engine_cpu_seconds / run.steps),
    Row("CPU of the scheduler a step, ms", lambda run: 1000 * run.scheduler_cpu_seconds / run.steps),
    Row("CPU of API server, etcd a step, ms", lambda run: 1000 * run.plane_cpu_seconds / run.steps),
)


def table(runs: Sequence[Run]) -> Iterator[str]:
    """Means over the runs of each; then ratios of ours over each other's, pair by pair, with intervals."""
    found = by_contestant(runs)
    ours, *others = found
    yield f"{'':<38}" + "".join(f"{name:>26}" for name in found)
    for row in ROWS:
        means = (fmean(map(row.read, some)) for some in found.values())
        yield f"{row.title:<38}" + "".join(f"{mean:>26.2f}" for mean in means)
    for other in others:
        yield f"\n{ours} over {other}, pairs: {len(found[other])}"
        for row in ROWS:
            pairs = zip(found[ours], found[other], strict=True)
            ratio = ratio_interval([row.read(mine) / row.read(theirs) for mine, theirs in pairs])
            yield f"{row.title:<38}{ratio.text():>26}: {verdict(ratio, more_is_better=row.more)}"


def by_contestant(runs: Sequence[Run]) -> Mapping[str, list[Run]]:
    """The runs of each by pair, ours first."""
    found: dict[str, list[Run]] = {ECLECTUS: []}
    for each in sorted(runs, key=lambda run: run.pair):
        found.setdefault(each.contestant, []).append(each)
    return found


def of_writes(run: Run) -> str:
    """What a run has written, the most frequent first: `POST pods 1.00, ...`, a step."""
    counts = sorted(run.writes.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{what} {count / run.steps:.2f}" for what, count in counts)


def content(runs: Sequence[Run]) -> list[Mapping[str, object]]:
    """For report.json."""
    return [msgspec.to_builtins(each) for each in runs]
