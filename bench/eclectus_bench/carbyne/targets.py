"""What was to be reached, and where other orders are better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eclectus_bench.carbyne.cases import ONLINE, Section
from eclectus_bench.carbyne.contestants import ABLATION, LEARNED, OURS, REFERENCE
from eclectus_bench.carbyne.figures import Row

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
SECTIONS = ("tpch", "alibaba")


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
            if (other, column) == (OURS, target.column) and case in target.cases and section in SECTIONS:
                head = f"| `{OURS}` | {section}, {case} | {target.what} |"
                reference = figures.get((section, case, REFERENCE, column))
                yield head + _verdict(value, reference, target.least, target.most)
    for section in SECTIONS:
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
