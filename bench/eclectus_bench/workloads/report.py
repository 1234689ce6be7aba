"""The table of workloads: ratios within pairs, with their spread, beside what is wanted."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eclectus_bench.report import Comparison, Measure, comparison
from eclectus_bench.workloads.run import Measured
from eclectus_bench.workloads.table import CPU_MOST, LARGE, MEMORY_MOST, Workload


@dataclass(frozen=True)
class Row:
    """One workload; without ratios if it was not measured."""

    measured: Measured
    comparisons: Sequence[Comparison]  # in the order of `measures`


def measures(workload: Workload, nodes: int) -> tuple[Measure, ...]:
    """What is compared. Nothing is wanted of clusters with fewer than 5,000 nodes."""
    is_large = nodes >= LARGE
    return (
        Measure("bound, pods/s", "pods_per_second", least=workload.ratio_least(nodes)),
        Measure("bound, with events, pods/s", "reported_per_second"),
        Measure("scheduler CPU, ms/pod", "scheduler_cpu_ms", most=CPU_MOST if is_large else None),
        Measure("scheduler memory, MiB", "peak_mib", most=MEMORY_MOST if is_large else None),
    )


def row(workload: Workload, measured: Measured, nodes: int) -> Row:
    """Compare the runs of one workload."""
    if measured.problem:
        return Row(measured, ())
    return Row(measured, [comparison(each, measured.drains) for each in measures(workload, nodes)])


def table(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each workload, for people: pods/s of both, then the ratios."""
    yield (
        f"{'':<16}{'kube-sched.':>12}{'eclectus':>10}{'ratio':>8}{'spread':>16}  {'wanted':<16}"
        f"{'with events':>12}  {'CPU':<20}{'memory':<18}"
    ).rstrip()
    for each in rows:
        name = each.measured.workload
        if not each.comparisons:
            yield f"{name:<16}not measured: {each.measured.problem}"
            continue
        bound, events, cpu, memory = each.comparisons
        spread = f"{bound.ratio_least:.2f} .. {bound.ratio_most:.2f}"
        yield (
            f"{name:<16}{bound.kube_scheduler:>12.0f}{bound.eclectus:>10.0f}{bound.ratio:>8.2f}{spread:>16}"
            f"  {bound.verdict:<16}{events.ratio:>12.2f}  {_ratio(cpu):<20}{_ratio(memory):<18}"
        ).rstrip()


def content(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The part of report.json."""
    return [
        {
            "workload": each.measured.workload,
            "problem": each.measured.problem,
            "comparisons": [asdict(line) for line in each.comparisons],
            "drains": [asdict(drain) for drain in each.measured.drains],
        }
        for each in rows
    ]


def _ratio(found: Comparison) -> str:
    return f"{found.ratio:.2f} {found.verdict}"
