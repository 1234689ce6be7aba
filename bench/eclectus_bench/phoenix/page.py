"""The page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from eclectus_bench.phoenix.cases import Section
from eclectus_bench.phoenix.contestants import BASELINE, MEANS, WHY
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
    """Version and size."""

    eclectus: str
    size: Size


def page(facts: Facts, tables: Sequence[tuple[Section, Sequence[Row]]]) -> str:
    """The whole page."""
    names = {row.contestant: None for _, rows in tables for row in rows}
    lines = [
        INTRODUCTION,
        "",
        f"Eclectus {facts.eclectus}; {facts.size.seeds} runs of {facts.size.tasks:,} tasks each, of which "
        "the first 30 % are not measured.",
        "",
        "| row | policies |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in names),
        *(line for section, rows in tables for line in _section(section, rows)),
        *_failures(names, tables),
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


def _failures(names: Iterable[str], tables: Sequence[tuple[Section, Sequence[Row]]]) -> Iterator[str]:
    """Who is worse than the baseline by more than the interval, in how many means, and in which most."""
    yield "\n## What fails, and why\n"
    yield "Mean responses worse than kube-scheduler's by more than the interval, of all in these tables.\n"
    yield "| row | worse | of | most | why |\n|---|---:|---:|---|---|"
    for name in names:
        found = [
            (value, f"{column}, {section.name}, {row.case}")
            for section, rows in tables
            for row in rows
            if row.contestant == name != BASELINE
            for column, value in row.figures.items()
            if column.endswith(" mean") and value is not None
        ]
        worse = [(value.mean, where) for value, where in found if value.loses]
        if worse:
            most, where = max(worse)
            yield f"| `{name}` | {len(worse)} | {len(found)} | {most:.2f}: {where} | {WHY[name]} |"


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
