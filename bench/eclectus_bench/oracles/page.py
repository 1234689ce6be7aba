"""Comparisons with published figures, as a page of Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

HEAD = "| | reference | here | ±95 % | off | runs | tasks a run |\n|---|---:|---:|---:|---:|---:|---:|"
INTRODUCTION = """\
# What the simulator measures, beside the figures of others

Written by `make report`; change the tests in `tests/oracles`, not this page. Every row is a mean over
independent runs, seeds 1 to the number of runs (Gavel: from 0), with half the width of Student's 95 %
interval; the beginning of each run, 30 % of its tasks unless a test says otherwise, is not measured. The
accept rule: the reference lies in the interval, or the mean within the tolerance that the test states.
What is measured depends on seeds and sizes alone, not on the machine."""


@dataclass(frozen=True)
class Comparison:
    """One row."""

    what: str
    reference: float
    here: float
    half_width: float
    runs: int
    tasks: int  # a run; 0 where that says nothing


@dataclass
class Section:
    """The rows of one test file, the tests that failed, and what was not measured."""

    title: str
    text: str
    comparisons: list[Comparison] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # names of tests
    left_out: set[str] = field(default_factory=set)  # reasons of skipped tests


@dataclass(frozen=True)
class Facts:
    """Versions, machine and duration."""

    eclectus: str
    python: str
    machine: str
    minutes: float
    test_minutes: float  # sum over the tests, whatever the number of cores


def page(facts: Facts, sections: Sequence[Section]) -> str:
    """The whole page."""
    return "\n".join(
        [INTRODUCTION, "", *_facts(facts), *(line for each in sections for line in _section(each))]
    )


def _facts(facts: Facts) -> Iterator[str]:
    yield "| | |\n|---|---|"
    yield f"| Eclectus | {facts.eclectus} |"
    yield f"| by | {facts.python}; {facts.machine} |"
    yield f"| took | {facts.minutes:.0f} min, {facts.test_minutes:.0f} min of tests |"


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {section.title}\n"
    if section.text:
        yield f"{section.text}\n"
    if section.comparisons:
        yield HEAD
        yield from map(_row, section.comparisons)
    for reason in sorted(section.left_out):
        yield f"\nNot measured: {reason}."
    for name in section.failed:
        yield f"\n**Outside the accept rule**: `{name}`."


def _row(one: Comparison) -> str:
    off = f"{100 * (one.here / one.reference - 1):+.1f} %" if one.reference else ""
    tasks = f"{one.tasks:,}" if one.tasks else ""
    half = f"{one.half_width:.2g}" if one.runs > 1 else ""
    return f"| {one.what} | {one.reference:.4g} | {one.here:.4g} | {half} | {off} | {one.runs} | {tasks} |"
