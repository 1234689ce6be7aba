"""`make phoenix`: measures all sections and writes docs/results/phoenix.md; `--quick` prints them, short."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from eclectus import __version__
from eclectus_bench.phoenix import pictures, traces
from eclectus_bench.phoenix.cases import BASELINE, MEANS, SECTIONS, WHY, Section
from eclectus_bench.phoenix.measure import MET, WORST, Measured, Row, Size, measure
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

INTRODUCTION = """\
# What constraints cost, by policy

Written by `make phoenix`; change `bench/eclectus_bench/phoenix`, not this page. 200 nodes with one slot, jobs
of ten tasks, 90 % of them short (5 s a task), 10 % long (60 s), sizes exponential
([the scenarios](../simulator.md#constraints-and-preferences)); recorded jobs, which have tables of another
form, come last.

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


def page(
    facts: Facts,
    tables: Sequence[tuple[Section, Sequence[Row]]],
    of_traces: Sequence[traces.Measurement] = (),
) -> str:
    """The whole page."""
    names = {row.contestant: None for _, rows in tables for row in rows}
    names |= dict.fromkeys(name for each in of_traces for name in each.pairs)
    lines = [
        INTRODUCTION,
        "",
        f"Eclectus {facts.eclectus}; {facts.size.seeds} runs of {facts.size.tasks:,} tasks each, of which "
        "the first 30 % are not measured.",
        "",
        "| row | policies |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in names),
        *(line for section, rows in tables for line in _section(section, rows)),
        *(line for each in of_traces for line in traces.section(each)),
        *(_failures(names, tables) if tables else ()),
    ]
    return "\n".join(lines) + "\n"


def _section(section: Section, rows: Sequence[Row]) -> Iterator[str]:
    yield f"\n## {section.title}\n\n{section.text}\n"
    columns = [*section.columns, WORST]
    if any(row.figures[MET] is not None for row in rows):
        columns.append(MET)
    yield f"| | | {' | '.join(columns)} |\n|---|---|{'---:|' * len(columns)}"
    for row in rows:
        cells = (_cell(row.contestant == section.baseline, column, row.figures[column]) for column in columns)
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
            if row.contestant == name != section.baseline == BASELINE
            for column, value in row.figures.items()
            if column.endswith(" mean") and value is not None
        ]
        worse = [(value.mean, where) for value, where in found if value.loses]
        if worse:
            most, where = max(worse)
            yield f"| `{name}` | {len(worse)} | {len(found)} | {most:.2f}: {where} | {WHY[name]} |"


def _cell(is_baseline: bool, column: str, value: Measured | None) -> str:
    if value is None:
        return ""
    if column == MET:
        return f"{value.mean:.2f}"
    if is_baseline:
        return f"{value.mean:.3g} s"
    text = f"{value.mean:.2f}" + ("" if value.half_width is None else f" ±{value.half_width:.2f}")
    text = f"**{text}**" if value.loses else text
    return f"{text} {value.what}".strip()


FILE = CHECKOUT / "docs" / "results" / "phoenix.md"
QUICK = Size(tasks=400, seeds=2)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and write; a part (`--only`) or a short version (`--quick`) is printed instead."""
    parser = argparse.ArgumentParser(prog="make phoenix", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few tasks, to check that it runs: a minute")
    parser.add_argument(
        "--only", choices=[each.name for each in (*SECTIONS, *traces.PARTS)], help="one section"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=Size.seeds,
        help="runs of each case, traces apart (default: %(default)s)",
    )
    parser.add_argument("--tasks", type=int, default=Size.tasks, help="tasks of these (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else Size(options.tasks, options.seeds)
    sections = [each for each in SECTIONS if options.only in (None, each.name)]
    tables = []
    expected = "a minute" if options.quick else "25 minutes on two idle cores"
    with Progress("phoenix", expected=expected) as progress:
        for at, section in enumerate(sections, start=1):
            say = partial(_say, progress, f"{section.name}, {at} of {len(sections)}")
            tables.append((section, measure(section, size, options.jobs, say)))
        of_traces = []
        for part in traces.PARTS:
            if options.only in (None, part.name):
                say = partial(_say, progress, part.name)
                asked = QUICK if options.quick else part.size
                of_traces.append(traces.measure(part, asked, options.jobs, say))
    for done in () if options.quick else of_traces:
        if done.part.is_drawn:
            pictures.draw(done, pictures.WAITS)
    text = page(Facts(__version__, size), tables, of_traces)
    if options.quick or options.only:
        print(text)
    else:
        FILE.write_text(text, encoding="utf-8")
        print(f"written: {FILE}")
    return 0


def _say(progress: Progress, head: str, done: str) -> None:
    progress.update(f"{head}: {done}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
