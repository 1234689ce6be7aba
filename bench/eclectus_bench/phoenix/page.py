"""The page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eclectus_bench.phoenix.cases import Section
from eclectus_bench.phoenix.contestants import BASELINE, MEANS
from eclectus_bench.phoenix.measure import MET, WORST, Measured, Row, Size

INTRODUCTION = """\
# What constraints cost, by policy

Written by `make phoenix`; change `bench/eclectus_bench/phoenix`, not this page. 200 nodes with one slot, jobs
of ten tasks, 90 % of them short (5 s a task), 10 % long (60 s), sizes exponential
([the scenarios](../simulator.md#constraints-and-preferences)).

The row `kube-scheduler` is in seconds. All others are **ratios to it** with the same jobs, so lower is
better: means over runs ± half of Student's 95 % interval. **Bold** is worse than kube-scheduler by more than
the interval. `con` are constrained tasks, `free` those without constraints, `wait` is from arrival to start,
`met` the share of preferences met. `worst set` is the constraint set (or `free`, `preferring`) whose mean
response is worst against kube-scheduler; of few tasks it is extreme by chance. `work x wait` is the mean wait
with each task weighted by its mean size: with equal nodes that all may use no order of one queue changes it
(conservation law, Kleinrock 1965), so an order that lowers the wait of some raises that of others."""


@dataclass(frozen=True)
class Facts:
    """Version, size and duration."""

    eclectus: str
    size: Size
    minutes: float


def page(facts: Facts, tables: Sequence[tuple[Section, Sequence[Row]]]) -> str:
    """The whole page."""
    names = {row.contestant: None for _, rows in tables for row in rows}
    lines = [
        INTRODUCTION,
        "",
        f"Eclectus {facts.eclectus}; {facts.size.seeds} runs of {facts.size.tasks:,} tasks each, of which "
        f"the first 30 % are not measured; {facts.minutes:.0f} minutes.",
        "",
        "| row | policies |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in names),
        *(line for section, rows in tables for line in _section(section, rows)),
    ]
    return "\n".join(lines) + "\n"


def _section(section: Section, rows: Sequence[Row]) -> Iterator[str]:
    yield f"\n## {section.title}\n\n{section.text}\n"
    columns = [*section.columns, WORST]
    if any(row.figures[MET] is not None for row in rows):
        columns.append(MET)
    yield f"| | | {' | '.join(columns)} |\n|---|---|{'---:|' * len(columns)}"
    for row in rows:
        cells = (_cell(row.contestant, column, row.figures[column]) for column in columns)
        yield f"| {row.case} | `{row.contestant}` | {' | '.join(cells)} |"


def _cell(contestant: str, column: str, value: Measured | None) -> str:
    if value is None:
        return ""
    if column == MET:
        return f"{value.mean:.2f}"
    if contestant == BASELINE:
        return f"{value.mean:.3g} s"
    text = f"{value.mean:.2f}" + ("" if value.half_width is None else f" ±{value.half_width:.2f}")
    text = f"**{text}**" if value.loses else text
    return f"{text} {value.what}".strip()
