"""`make carbyne`: measures sections and writes docs/results/carbyne.md; `--quick` prints them, short."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from eclectus import __version__
from eclectus.sim.base.results import Interval
from eclectus_bench.carbyne.cases import (
    ABLATION,
    CORES,
    LEARNED,
    MACHINES,
    MEANS,
    ONLINE,
    OURS,
    REFERENCE,
    SCALE,
    SECTIONS,
    WINDOW,
    Section,
    missing,
)
from eclectus_bench.carbyne.pictures import DRAWN, FOLDER, draw, lines_of, record_runs
from eclectus_bench.carbyne.runs import BESIDE, OWN, Row, Size, rows_of, run_section
from eclectus_bench.clocks import clocks
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

Tables = Sequence[tuple[Section, Sequence[Row]]]
Figures = Mapping[tuple[str, str, str, str], float]
"""Section, case, contestant, column -> mean."""


@dataclass(frozen=True)
class Target:
    """A bound on a figure, in all cases of these names that were measured."""

    what: str
    column: str
    cases: tuple[str, ...]
    least: float | None = None
    most: float | None = None


_ALL_AT_ONCE, (_, _NEAR, _OVERLOAD) = "all at once", (case.what for case in ONLINE)
TARGETS = (
    Target("mean response: factor near saturation", "factor", (_NEAR,), least=1.35),
    Target("mean response: factor at twice the capacity", "factor", (_OVERLOAD,), least=1.5),
    Target(
        "jobs below 0.8 of their speed under `drf`, %",
        "below 0.8, %",
        (_ALL_AT_ONCE, _NEAR, _OVERLOAD),
        most=5.0,
    ),
    Target("makespan over that of `drf`", "makespan", (_ALL_AT_ONCE,), most=1.02),
)
TARGETED = ("tpch", "alibaba")


def target_lines(tables: Tables) -> Iterator[str]:
    """A table of what was to be reached and what was measured, if `carbyne` was."""
    figures = dict(_figures(tables))
    lines = [*_lines_of_carbyne(figures), *_learned_lines(figures)]
    if lines:
        yield (
            "\n## Targets\n\nMeans over runs; a bound that lies inside the interval is decided by chance. "
            f"`{REFERENCE}` gives no job\na share: its figures say what the jobs and the cluster allow.\n"
        )
        yield f"| | | | target | measured | `{REFERENCE}` | met |\n|---|---|---|---:|---:|---:|---|"
        yield from lines


def _lines_of_carbyne(figures: Figures) -> Iterator[str]:
    for target in TARGETS:
        for (section, case, other, column), value in figures.items():
            if (other, column) == (OURS, target.column) and case in target.cases and section in TARGETED:
                head = f"| `{OURS}` | {section}, {case} | {target.what} |"
                reference = figures.get((section, case, REFERENCE, column))
                yield head + _verdict(value, reference, target.least, target.most)
    for section in TARGETED:
        ablation = figures.get((section, _OVERLOAD, ABLATION, "factor"))
        measured = figures.get((section, _OVERLOAD, OURS, "factor"))
        if ablation is not None and measured is not None:
            what = f"factor, at least that of `{ABLATION}`, its own ablation"
            reference = figures.get((section, _OVERLOAD, REFERENCE, "factor"))
            head = f"| `{OURS}` | {section}, {_OVERLOAD} | {what} |"
            yield head + _verdict(measured, reference, least=ablation)


def _learned_lines(figures: Figures) -> Iterator[str]:
    """Where machines have several speeds: with learned speeds beside the same order without them."""
    for (section, case, name, column), value in figures.items():
        without = figures.get((section, case, OURS, "factor"))
        if (name, column) == (LEARNED, "factor") and without is not None:
            what = f"factor, at least that of `{OURS}`, which learns no speeds"
            yield f"| `{name}` | {section}, {case} | {what} |" + _verdict(value, None, least=without)


def _verdict(
    value: float, reference: float | None, least: float | None = None, most: float | None = None
) -> str:
    bound = f"≥ {least:.2f}" if least is not None else f"≤ {most:.2f}"
    met = value >= least if least is not None else most is not None and value <= most
    beside = "" if reference is None else f"{reference:.2f}"
    return f" {bound} | {value:.2f} | {beside} | {'yes' if met else '**no**'} |"


def loss_lines(tables: Tables) -> Iterator[str]:
    """For each case the contestants with a larger factor than `carbyne`."""
    figures = dict(_figures(tables))
    found = []
    for (section, case, name, column), ours in figures.items():
        if (name, column) != (OURS, "factor"):
            continue
        better = [
            f"`{other}` {value:.2f}"
            for (its_section, its_case, other, its_column), value in figures.items()
            if (its_section, its_case, its_column) == (section, case, "factor") and value > ours
        ]
        if ours < 1.0:
            better.insert(0, "`drf` 1")
        if better:
            found.append(f"| {section}, {case} | {ours:.2f} | {', '.join(better)} |")
    if found:
        yield f"\n## Where other orders have a better mean than `{OURS}`\n"
        yield f"| | factor of `{OURS}` | better |\n|---|---:|---|"
        yield from found


def _figures(tables: Tables) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    for section, rows in tables:
        for row in rows:
            for column, value in row.figures.items():
                if value is not None:
                    yield (section.name, row.case, row.contestant, column), value.mean


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
better. Jain's index, here in windows of {WINDOW}, and `x alone` (time over that on 1/N of the cluster) are
defined with [the simulator](../simulator.md#jobs-that-are-graphs-of-stages). Means over runs ± half of
Student's 95 % interval; **bold** is worse than `drf` by more than the interval."""

COLUMNS = ("mean, s", "factor", "p50", "p95", "below 0.8, %", "worst", "makespan", "Jain", "x alone", "slips")
MAY_LACK = frozenset({"Jain", "slips"})  # Jain's index: no window that two jobs fill
BETTER_BELOW_1 = frozenset({"makespan"})


@dataclass(frozen=True)
class Facts:
    """Version, size, duration and processor time."""

    eclectus: str
    size: Size
    minutes: float
    processor_minutes: float


def page(facts: Facts, tables: Tables, skipped: Sequence[str] = (), pictures: Sequence[str] = ()) -> str:
    """The whole page.

    `skipped`: what was not measured, and why if it could not be. `pictures`: the section that shows them.
    """
    names = {row.contestant: None for _, rows in tables for row in rows}
    lines = [
        INTRODUCTION,
        "",
        f"Eclectus {facts.eclectus}; {facts.size.seeds} runs of {facts.size.jobs} jobs each, all measured; "
        f"{facts.minutes:.0f} minutes, {facts.processor_minutes:.0f} of processor time.",
        *([f"\nNot measured: {'; '.join(skipped)}."] if skipped else []),
        *(["", "| row | policies |\n|---|---|"] if names else []),
        *(f"| `{name}` | {MEANS[name]} |" for name in names),
        *target_lines(tables),
        *(line for section, rows in tables for line in _section(section, rows)),
        *pictures,
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


FILE = CHECKOUT / "docs" / "results" / "carbyne.md"
QUICK = Size(jobs=12, seeds=1)
PICTURES = "pictures"  # for --only
NAMES = (*(each.name for each in SECTIONS), PICTURES)


@dataclass
class Draft:
    """The page while it is measured."""

    size: Size
    processes: int
    is_short: bool
    progress: Progress
    began: tuple[float, float]
    tables: list[tuple[Section, Sequence[Row]]] = field(default_factory=list)
    pictures: Sequence[str] = ()
    left_out: dict[str, str] = field(
        default_factory=lambda: {each.name: each.title for each in SECTIONS} | {PICTURES: "Pictures"}
    )

    def add(self, section: Section) -> None:
        """Measure a section, or note why it cannot be."""
        if why := missing(section.jobs.files):
            self.left_out[section.name] += f" ({why})"
            return
        say = partial(_say, self.progress, section.name)
        runs = run_section(section, self.size, self.processes, say)
        self.tables.append((section, list(rows_of(runs))))
        del self.left_out[section.name]

    def add_pictures(self) -> None:
        """Make the runs that pictures show, and draw them unless they are short; or note why it cannot be."""
        if why := missing(DRAWN.jobs.files):
            self.left_out[PICTURES] += f" ({why})"
            return
        runs = record_runs(self.size)
        if not self.is_short:
            draw(runs, FOLDER)
        self.pictures = list(lines_of(runs))
        del self.left_out[PICTURES]

    def text(self) -> str:
        """The page so far; empty before anything is measured."""
        if not self.tables and not self.pictures:
            return ""
        minutes = (each - start for each, start in zip(clocks(), self.began, strict=True))
        facts = Facts(__version__, self.size, *minutes)
        return page(facts, self.tables, list(self.left_out.values()), self.pictures)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, and write the page after each section; it names what it lacks.

    A part (`--only`) or a short version (`--quick`) is printed instead.
    """
    options = _parser().parse_args(arguments)
    size = QUICK if options.quick else Size(options.jobs, options.seeds)
    is_printed = options.quick or set(options.only) != set(NAMES)
    expected = "two minutes" if options.quick else "65 minutes on two idle cores"
    with Progress("carbyne", expected=expected) as progress:
        draft = Draft(size, options.processes, options.quick, progress, clocks())
        steps = {each.name: partial(draft.add, each) for each in SECTIONS}
        for name, step in (steps | {PICTURES: draft.add_pictures}).items():
            if name in options.only:
                step()
                if not is_printed and (text := draft.text()):
                    FILE.write_text(text, encoding="utf-8")
    if not (text := draft.text()):
        print(f"nothing to measure: {'; '.join(draft.left_out.values())}", file=sys.stderr)
        return 1
    print(text if is_printed else f"written: {FILE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make carbyne", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few jobs, to check that it runs: two minutes")
    parser.add_argument(
        "--only", choices=NAMES, nargs="+", default=NAMES, help="print these sections alone (default: all)"
    )
    parser.add_argument(
        "--seeds", type=int, default=Size.seeds, help="runs of each case (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=Size.jobs, help="jobs a run (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="at a time (default: %(default)s)"
    )
    return parser


def _say(progress: Progress, head: str, done: str) -> None:
    progress.update(f"{head}: {done}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
