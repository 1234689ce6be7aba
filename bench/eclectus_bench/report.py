"""The results: ratios with their spread, targets, tables, and the content of report.json."""

import os
import platform
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, TypeVar

import msgspec

from eclectus_bench.ceiling import SCHEDULER as CEILING
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.drain import Drain
from eclectus_bench.engine import EngineCost
from eclectus_bench.match import Result, Sizes
from eclectus_bench.plans import PlanCost
from eclectus_bench.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_bench.simulator import SimulatorCost
from eclectus_bench.stream import Stream
from eclectus_e2e.pairs import Interval, ratio_interval
from eclectus_e2e.testbed.controlplane.build import KUBERNETES_VERSION

FLAT_MOST = 1.3  # cost of a decision on the largest cluster over the smallest
Run = TypeVar("Run", Drain, Stream)


@dataclass(frozen=True)
class Measure:
    """One row. `field` is a field of Drain or Stream; `least` and `most` are targets for Eclectus' ratio."""

    title: str
    field: str
    least: float | None = None
    most: float | None = None


DRAIN_MEASURES = (
    Measure("bound, pods/s", "pods_per_second", least=1.8),
    Measure("bound, with events, pods/s", "reported_per_second", least=1.8),
    Measure("scheduler CPU, ms/pod", "scheduler_cpu_ms", most=0.4),
    Measure("the same with start-up, ms/pod", "scheduler_cpu_ms_from_start"),
    Measure("API server CPU, ms/pod", "apiserver_cpu_ms"),
    Measure("etcd CPU, ms/pod", "etcd_cpu_ms"),
    Measure("scheduler memory, MiB", "peak_mib", most=1.0),
    Measure("start to first bind, s", "start_seconds"),
)
RATES = DRAIN_MEASURES[:2]
STREAM_MEASURES = (
    Measure("half load, p50, s", "p50_seconds"),
    Measure("half load, p99, s", "p99_seconds", most=1.0),
)


@dataclass(frozen=True)
class Comparison:
    """One measure over all pairs. Ratios are Eclectus over kube-scheduler within a pair."""

    measure: str
    kube_scheduler: float  # median over runs
    eclectus: float
    ratio: float  # median over pairs
    ratio_least: float
    ratio_most: float
    target: str
    met: bool | None  # None: no target

    @property
    def verdict(self) -> str:
        """The target and whether it is met; empty without one."""
        return {None: "", True: f"{self.target} met", False: f"{self.target} MISSED"}[self.met]


def compare(result: Result) -> list[Comparison]:
    """Every row of the table."""
    lines = [comparison(measure, result.drains) for measure in DRAIN_MEASURES]
    return lines + [comparison(measure, result.streams) for measure in STREAM_MEASURES]


def shares_of_ceiling(drains: Sequence[Drain]) -> dict[str, dict[str, Interval]]:
    """By measure and scheduler: its rate over that of what decides nothing, within pairs."""
    most = {run.pair: run for run in drains if run.scheduler == CEILING}

    def share(name: str, field: str) -> Interval:
        runs = (run for run in drains if run.scheduler == name)
        return ratio_interval([getattr(run, field) / getattr(most[run.pair], field) for run in runs])

    return {
        measure.title: {name: share(name, measure.field) for name in (KUBE_SCHEDULER, ECLECTUS)}
        for measure in RATES
    }


def ceiling_lines(drains: Sequence[Drain]) -> Iterator[str]:
    """How much each scheduler reaches of what one can that decides nothing."""
    for title, shares in shares_of_ceiling(drains).items():
        of = ", ".join(f"{name} {share.text()}" for name, share in shares.items())
        yield f"{title}, share of what a scheduler reaches that decides nothing: {of}"


def flatness(costs: Iterable[DecisionCost]) -> dict[str, float]:
    """`policy, workload`: cost on the largest cluster over cost on the smallest."""
    found: dict[str, dict[int, float]] = {}
    for cost in costs:
        found.setdefault(f"{cost.policy}, {cost.workload}", {})[cost.nodes] = cost.microseconds
    return {name: by_nodes[max(by_nodes)] / by_nodes[min(by_nodes)] for name, by_nodes in found.items()}


def report(
    sizes: Sizes,
    costs: Sequence[DecisionCost],
    steps: Sequence[EngineCost],
    result: Result | None,
    *,
    simulated: SimulatorCost | None = None,
    planned: Sequence[PlanCost] = (),
) -> dict[str, Any]:
    """The content of report.json, documented in bench/README.md."""
    return {
        "machine": machine(),
        "course": asdict(sizes),
        "decisions": {
            "costs": [asdict(cost) for cost in costs],
            "flatness": flatness(costs),
            "flatness_target": f"<= {FLAT_MOST:g}",
        },
        "engine": [{**asdict(cost), "met": cost.met} for cost in steps],
        "plans": [{**asdict(cost), "met": cost.met} for cost in planned],
        "simulator": asdict(simulated) if simulated else None,
        "comparisons": [asdict(line) for line in compare(result)] if result else [],
        "shares_of_ceiling": msgspec.to_builtins(shares_of_ceiling(result.drains)) if result else {},
        "drains": [asdict(run) for run in result.drains] if result else [],
        "streams": [asdict(run) for run in result.streams] if result else [],
    }


def machine() -> dict[str, Any]:
    """The machine. Its load average tells whether anything else ran."""
    return {
        "cpus": os.cpu_count(),
        "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "system": platform.platform(),
        "python": platform.python_version(),
        "python_build": interpreter_build(sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "kubernetes": KUBERNETES_VERSION,
        "load_average_at_end": list(os.getloadavg()),
    }


def interpreter_build(configured: str) -> str:
    """How this interpreter was built, of the arguments of its `configure`: either option makes it faster."""
    options = {"--enable-optimizations": "by profile", "--with-lto": "at link time"}
    found = [meaning for option, meaning in options.items() if option in configured]
    return f"optimised {' and '.join(found)}" if found else "not optimised by profile nor at link time"


def head() -> str:
    """What the figures depend on, for people: printed before all tables."""
    found = machine()
    return (
        f"Python {found['python']} ({found['python_build']}), {found['cpus']} CPUs, "
        f"Kubernetes {found['kubernetes']}; all clients show tokens"
    )


def decisions_head(node_counts: Sequence[int]) -> str:
    """The first line of the table of decisions."""
    columns = "".join(f"{f'{count:,} nodes':>14}" for count in node_counts)
    return f"{'decision, µs CPU':<28}{columns}{'flat':>8}"


def decisions_lines(costs: Sequence[DecisionCost]) -> Iterator[str]:
    """Microseconds by policy and workload, with a column for each number of nodes."""
    counts = sorted({cost.nodes for cost in costs})
    found = {(cost.policy, cost.workload, cost.nodes): cost for cost in costs}
    flat = flatness(costs)
    for policy, workload in dict.fromkeys((cost.policy, cost.workload) for cost in costs):
        cells = "".join(f"{found[policy, workload, count].microseconds:>14.1f}" for count in counts)
        yield f"{f'{policy}, {workload}':<28}{cells}{flat[f'{policy}, {workload}']:>8.2f}"


def comparison_table(lines: Sequence[Comparison]) -> Iterator[str]:
    """A row for each measure."""
    yield f"{'':<32}{'kube-scheduler':>16}{'eclectus':>12}{'ratio':>8}{'spread':>16}   target"
    for line in lines:
        spread = f"{line.ratio_least:.2f} .. {line.ratio_most:.2f}"
        values = f"{line.kube_scheduler:>16.4g}{line.eclectus:>12.4g}{line.ratio:>8.2f}{spread:>16}"
        yield f"{line.measure:<32}{values}   {line.verdict}".rstrip()


def comparison(measure: Measure, runs: Sequence[Run]) -> Comparison:
    """One measure over the runs of both schedulers, paired by their `pair`."""

    def of(name: str) -> dict[int, float]:
        return {run.pair: getattr(run, measure.field) for run in runs if run.scheduler == name}

    theirs, ours = of(KUBE_SCHEDULER), of(ECLECTUS)
    ratios = [ours[pair] / theirs[pair] for pair in theirs]
    ratio = median(ratios)
    target, met = _judged(measure, ratio)
    return Comparison(
        measure.title,
        median(theirs.values()),
        median(ours.values()),
        ratio,
        min(ratios),
        max(ratios),
        target,
        met,
    )


def _judged(measure: Measure, ratio: float) -> tuple[str, bool | None]:
    if measure.least is not None:
        return f">= {measure.least:g}", ratio >= measure.least
    if measure.most is not None:
        return f"<= {measure.most:g}", ratio <= measure.most
    return "", None
