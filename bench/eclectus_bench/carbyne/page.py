"""The page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eclectus.sim.base.results import Interval
from eclectus_bench.carbyne.cases import CORES, MACHINES, SCALE, Section
from eclectus_bench.carbyne.contestants import MEANS
from eclectus_bench.carbyne.figures import BESIDE, OWN, Row
from eclectus_bench.carbyne.runs import Size
from eclectus_bench.carbyne.targets import loss_lines, target_lines

INTRODUCTION = f"""\
# Jobs with stages, by order

Written by `make carbyne`; change `bench/eclectus_bench/carbyne`, not this page. {MACHINES} machines of
{CORES} cores and 128 GiB: the paper's 100 machines and the tasks of each TPC-H stage are both divided by
{SCALE}. Tasks are placed on machines one by one. The measured TPC-H stages have no memory: each stage
requests one of four mixes of cores and memory, chosen by its name. The load is that of the resource that is
shortest. The true run time of a task is the mean of its stage.

`factor` is the mean response time of jobs under `drf` over that here, with the same jobs: above 1 is better.
`p50` and `p95` are of the factors of single jobs, `worst` is the least of a run, `below 0.8` the share of
jobs that take more than 1.25 times as long as under `drf`. `makespan` is over that of `drf`: below 1 is
better. Jain's index and `x alone` (time over that on 1/N of the cluster) are defined with
[the simulator](../simulator.md#jobs-that-are-graphs-of-stages). Means over runs ± half of Student's 95 %
interval; **bold** is worse than `drf` by more than the interval."""

COLUMNS = ("mean, s", "factor", "p50", "p95", "below 0.8, %", "worst", "makespan", "Jain", "x alone", "slips")
MAY_LACK = frozenset({"Jain", "slips"})  # Jain's index: runs shorter than two of its windows
BETTER_BELOW_1 = frozenset({"makespan"})


@dataclass(frozen=True)
class Facts:
    """Version, size, duration and processor time."""

    eclectus: str
    size: Size
    minutes: float
    processor_minutes: float


def page(facts: Facts, tables: Sequence[tuple[Section, Sequence[Row]]], skipped: Sequence[str] = ()) -> str:
    """The whole page; `skipped`: what was not measured, and why if it could not be."""
    names = {row.contestant: None for _, rows in tables for row in rows}
    lines = [
        INTRODUCTION,
        "",
        f"Eclectus {facts.eclectus}; {facts.size.seeds} runs of {facts.size.jobs} jobs each, all measured; "
        f"{facts.minutes:.0f} minutes, {facts.processor_minutes:.0f} of processor time.",
        *([f"\nNot measured: {'; '.join(skipped)}."] if skipped else []),
        "",
        "| row | policies |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in names),
        *target_lines(tables),
        *(line for section, rows in tables for line in _section(section, rows)),
        *loss_lines(tables),
    ]
    return "\n".join(lines) + "\n"


def _section(section: Section, rows: Sequence[Row]) -> Iterator[str]:
    yield f"\n## {section.title}\n\n{section.text}\n"
    columns = [column for column in COLUMNS if column not in MAY_LACK or _has_some(rows, column)]
    yield f"| | | {' | '.join(columns)} |\n|---|---|{'---:|' * len(columns)}"
    for row in rows:
        cells = (_cell(column, row.figures[column]) for column in columns)
        yield f"| {row.case} | `{row.contestant}` | {' | '.join(cells)} |"


def _has_some(rows: Sequence[Row], column: str) -> bool:
    return any(value is not None and value.mean for row in rows if (value := row.figures[column]))


def _cell(column: str, value: Interval | None) -> str:
    if value is None:
        return ""
    if column in OWN or column == "worst":
        return f"{value.mean:.3g}"
    half = value.half_width or 0.0
    if column == "below 0.8, %":
        return f"{value.mean:.1f}"
    loses = value.mean - half > 1 if column in BETTER_BELOW_1 else value.mean + half < 1
    text = f"{value.mean:.2f}" + ("" if value.half_width is None else f" ±{half:.2f}")
    return f"**{text}**" if loses and column in BESIDE else text
