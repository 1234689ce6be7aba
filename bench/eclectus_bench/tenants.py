"""`make tenants`: what three tenants get of a cluster, by profile, written as docs/results/tenants.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from eclectus import __version__
from eclectus.sim.base.results import PoolResult, PoolsResult, RunResult
from eclectus_bench.profiles import Part, Runs, cell, measure, parser_of, publish
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO = "tenants"
MEANS = {
    "kube-scheduler": "`place: kube`, `order: fifo`: its scores, and its order by priority, then age",
    "fifo": "`place: best-fit`, `order: fifo`: one queue",
    "drf": "`order: drf` with these weights of namespaces; it knows no minima",
    "pools": "`order: pools`",
    "reclaim": "the same with `relieve: [reclaim]`: pods are evicted for pools that have had too little",
}
INTRODUCTION = """\
# Pools: three tenants, one of them greedy

Written by `make tenants`; change `scenarios/tenants.yaml` or `bench/eclectus_bench/tenants.py`, not this
page. 30 nodes of four slots. `greedy` comes first, with pods of 40 s and twice the work that the cluster
can do. `steady` comes after 20 s with more than half of what it can do, in pods of 10 s; `small` after 30 s
with about a tenth. Their weights are 1, 2 and 1, and `small` has a minimum of 20 slots.

`entitled` is the share by [the formula](../pools.md), with what the tenant demands in this very run; `held`
is what its pods held; both in per cent of the cluster, means over the samples of each second from second 60
to the last arrival, about second 300. `wait` is from arrival to start, `first` that of the tenant's first
pod. `Jain` is Jain's index of held over entitled in windows of a minute, over tenants with waiting pods all
the time; `least` that of the worst window; `furthest` is how far the mean of the tenant that is furthest
from its share is from it, in per cent of the share. Means over runs ± half of Student's 95 % interval.

All pods are alike and all nodes equal, so `kube-scheduler` and `fifo` start the same pods: the order
decides, not the scores. `drf` with the same weights divides alike: what pools add are a tree, minima and
limits, which these three tenants hardly need. It starts a tenant's pods by age, `pools` those of the job
that holds least, which makes the longest waits longer."""


def _first(of_pool: PoolResult) -> float | None:
    if of_pool.first_start is None or of_pool.first_arrival is None:
        return None
    return of_pool.first_start - of_pool.first_arrival


PARTS: Mapping[str, Callable[[PoolResult], float | None]] = {
    "entitled, %": lambda of_pool: 100 * of_pool.share,
    "held, %": lambda of_pool: 100 * of_pool.held,
    "wait, s": lambda of_pool: of_pool.wait.mean,
    "wait p99, s": lambda of_pool: of_pool.wait.p99,
    "first, s": _first,
}


def furthest(pools: PoolsResult) -> float:
    """How far the pool that is furthest from its share is from it, in per cent of the share."""
    apart = (abs(each.held / each.share - 1.0) for each in pools.pools.values() if each.share)
    return 100 * max(apart)


WHOLE: Mapping[str, Callable[[PoolsResult], float | None]] = {
    "Jain": lambda pools: pools.fairness,
    "least": lambda pools: pools.fairness_least,
    "furthest, %": furthest,
}


@dataclass(frozen=True)
class Facts:
    """Version, and how many runs of each profile."""

    eclectus: str
    seeds: int


def page(facts: Facts, runs: Runs) -> str:
    """The whole page; `runs` by profile."""
    pools = {name: [run.pools for run in mine if run.pools is not None] for name, mine in runs.items()}
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs of each profile.\n",
        "| profile | |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in runs),
        f"\n| | {' | '.join(WHOLE)} | evictions |\n|---|{'---:|' * (len(WHOLE) + 1)}",
        *(_whole(name, pools[name], runs[name]) for name in runs),
        f"\n| tenant | profile | {' | '.join(PARTS)} |\n|---|---|{'---:|' * len(PARTS)}",
        *_parts(pools),
    ]
    return "\n".join(lines) + "\n"


def _whole(name: str, pools: Sequence[PoolsResult], runs: Sequence[RunResult]) -> str:
    cells = [cell([read(each) for each in pools], 1 if "%" in head else 3) for head, read in WHOLE.items()]
    return f"| `{name}` | {' | '.join(cells)} | {fmean(run.evictions for run in runs):.0f} |"


def _parts(pools: Mapping[str, Sequence[PoolsResult]]) -> Iterator[str]:
    tenants = {path: None for some in pools.values() for each in some for path in each.pools}
    for tenant in tenants:
        for name, mine in pools.items():
            found = [each.pools[tenant] for each in mine if tenant in each.pools]
            cells = (cell([read(each) for each in found], 1) for read in PARTS.values())
            yield f"| `{tenant}` | `{name}` | {' | '.join(cells)} |"


def part(seeds: int, horizon: float) -> Part:
    """So many seeds, with arrivals until `horizon`, seconds, measured from second 60 on."""
    return Part((f"measure.horizon={horizon}", f"measure.warmUp={60 / horizon}"), seeds)


FILE = CHECKOUT / "docs" / "results" / "tenants.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make tenants", __doc__)
    options = parser.parse_args(arguments)
    seeds, horizon = (2, 90.0) if options.quick else (options.seeds, 300.0)
    with Progress("tenants", expected="half a minute" if options.quick else "4 minutes") as progress:
        (runs,) = measure(SCENARIO, [part(seeds, horizon)], options.jobs, progress.update)
    text = page(Facts(__version__, seeds), runs)
    publish(text, FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
