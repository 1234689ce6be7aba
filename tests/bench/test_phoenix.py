"""`make phoenix`: contestants and cases are valid, ratios are of equal seeds, the page says who loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from eclectus.sim.base.results import GroupResult, RunResult
from eclectus.sim.scenario import parse, shipped_scenarios
from eclectus_bench.phoenix.cases import (
    BASELINE,
    CENTRAL,
    DISTRIBUTED,
    MEANS,
    SECTIONS,
    WHY,
    Case,
    Section,
    only,
)
from eclectus_bench.phoenix.measure import (
    CUT_OFF,
    FIGURES,
    GROUPS,
    MET,
    WORST,
    Measured,
    Row,
    Size,
    measure,
    rows_of,
    scenario_text,
)
from eclectus_bench.phoenix.report import Facts, page
from short_scenarios import poisson, runs, scenario

SECTION = replace(SECTIONS[0], columns=("con wait", "free mean", "work x wait"))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_every_contestant_of_every_section_is_a_valid_profile(section: Section) -> None:
    path = shipped_scenarios()[section.scenario]
    text = scenario_text(path, section.contestants)
    for more in {contestant.changes for contestant in section.contestants.values()}:
        changes = (*section.cases[-1].changes, *more, GROUPS, CUT_OFF)
        assert [each.name for each in parse(text, path.parent, changes).profiles] == list(section.contestants)
    assert next(iter(section.contestants)) == BASELINE
    assert set(section.columns) <= FIGURES.keys()


def test_the_page_explains_every_contestant() -> None:
    assert MEANS.keys() == CENTRAL.keys() | DISTRIBUTED.keys()
    assert WHY.keys() == MEANS.keys() - {BASELINE, "unconstrained"}


@pytest.fixture(scope="module")
def any_run() -> RunResult:
    return runs(scenario(workload=poisson(0.5), measure={"tasks": 40, "groups": ["class"]}), [1])[0]


def run_with(base: RunResult, waits: Mapping[str, tuple[int, float]], met: float | None = None) -> RunResult:
    """Groups by name with so many tasks that wait so long; their response is the wait and one second."""

    def group(count: int, wait: float) -> GroupResult:
        one = base.groups["class"]["work"]
        return with_fields(
            one,
            wait=with_fields(one.wait, count=count, mean=wait),
            response=with_fields(one.response, count=count, mean=wait + 1),
        )

    made = {name: group(*figures) for name, figures in waits.items()}
    groupings = {
        "length": ("short", "long"),
        "constrained": ("free", "constrained"),
        "set": ("free", "a", "b"),
    }
    groups = {
        which: {name: made[name] for name in names if name in made} for which, names in groupings.items()
    }
    return with_fields(base, groups=groups, met=met)


def test_a_run_is_compared_with_the_baseline_of_the_same_seed(any_run: RunResult) -> None:
    sizes = {"short": (120, 1.0), "long": (10, 2.0)}

    def made(con: float, a: float) -> RunResult:
        return run_with(
            any_run, sizes | {"free": (5, 3.0), "constrained": (5, con), "a": (3, a), "b": (3, 1.0)}
        )

    baseline, mine = [made(2.0, 1.0), made(4.0, 3.0)], [made(1.0, 3.0), made(6.0, 7.0)]
    rows = {
        row.contestant: row.figures
        for row in rows_of(SECTION, Case("c", ()), {BASELINE: baseline, "x": mine})
    }
    assert rows["x"]["con wait"] == Measured(1.0, pytest.approx(0.5 * 12.706, rel=1e-3))  # 1/2 and 6/4
    assert rows["x"][WORST] == Measured(2.0, 0.0, "a")  # 4/2 and 8/4; all others are as for the baseline
    assert rows[BASELINE]["con wait"] == Measured(3.0, pytest.approx(12.706, rel=1e-3))
    assert rows[BASELINE]["work x wait"] == Measured(1.5, 0.0)  # 600 s of work wait 1 s, 600 s wait 2 s
    assert (rows[BASELINE][WORST], rows["x"][MET]) == (None, None)


def test_a_figure_without_tasks_is_left_out(any_run: RunResult) -> None:
    both = [run_with(any_run, {"short": (1, 1.0), "free": (1, 1.0)}, met=0.5) for _ in range(2)]
    rows = list(rows_of(SECTION, Case("c", ()), {BASELINE: both, "x": list(both)}))
    assert [row.figures["con wait"] for row in rows] == [None, None]
    assert [row.figures[MET] for row in rows] == [Measured(0.5, 0.0)] * 2


def test_groups_of_other_tasks_are_not_compared(any_run: RunResult) -> None:
    constrained = [
        run_with(any_run, {"short": (2, 3.0), "free": (1, 1.0), "constrained": (1, 5.0), "a": (1, 5.0)})
    ]
    relaxed = [run_with(any_run, {"short": (2, 1.0), "free": (2, 1.0)})]
    _, row = rows_of(SECTION, Case("c", ()), {BASELINE: constrained, "unconstrained": relaxed})
    assert (row.figures["free mean"], row.figures[WORST]) == (None, None)
    assert row.figures["work x wait"] == Measured(1 / 3, None)


def test_the_page_has_ratios_and_marks_those_that_are_worse_than_their_interval() -> None:
    columns = dict.fromkeys((*SECTION.columns, MET))
    worse = columns | {
        "con wait": Measured(1.4, 0.1),
        "free mean": Measured(1.05, 0.01),
        WORST: Measured(1.2, None, "a"),
    }
    base = columns | {"con wait": Measured(12.3456, 1.0), WORST: None}
    lines = page(
        Facts("1.0", Size(500, 3)),
        [(SECTION, [Row("load 0.9", BASELINE, base), Row("load 0.9", "eagle-c", worse)])],
    ).splitlines()
    assert f"| load 0.9 | `{BASELINE}` | 12.3 s |  |  |  |" in lines
    assert "| load 0.9 | `eagle-c` | **1.40 ±0.10** | **1.05 ±0.01** |  | **1.20** a |" in lines
    assert f"| `eagle-c` | {MEANS['eagle-c']} |" in lines
    assert not any(line.startswith("| `sparrow-c`") for line in lines)
    failures = lines[lines.index("## What fails, and why") :]
    worst = f"1.05: free mean, {SECTION.name}, load 0.9"  # waits do not count: some hardly wait at all
    assert f"| `eagle-c` | 1 | 1 | {worst} | {WHY['eagle-c']} |" in failures
    assert not any(line.startswith(f"| `{BASELINE}`") for line in failures)


@pytest.mark.long
def test_a_section_is_measured() -> None:
    small = replace(SECTION, contestants=only(BASELINE, "phoenix"), cases=SECTION.cases[1:2])
    said: list[str] = []
    rows = measure(small, Size(tasks=300, seeds=2), 1, said.append)
    assert [row.contestant for row in rows] == [BASELINE, "phoenix"]
    assert all(row.figures["free mean"] is not None for row in rows)
