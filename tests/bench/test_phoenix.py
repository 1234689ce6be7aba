"""`make phoenix`: contestants and cases are valid, ratios are of equal seeds, the page says who loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_fields

from eclectus.sim.base.results import GroupResult, RunResult, Times
from eclectus.sim.scenario import parse, shipped_scenarios
from eclectus.sim.world.run_record import ZERO_BUCKET
from eclectus_bench.phoenix import pictures, traces
from eclectus_bench.phoenix.cases import (
    BASELINE,
    CENTRAL,
    DISTRIBUTED,
    MEANS,
    RECORDED,
    SECTIONS,
    SOFT,
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
    assert next(iter(section.contestants)) == section.baseline
    assert set(section.columns) <= FIGURES.keys()


def test_the_page_explains_every_contestant() -> None:
    assert MEANS.keys() == CENTRAL.keys() | DISTRIBUTED.keys() | RECORDED.keys() | SOFT.keys()
    assert WHY.keys() == MEANS.keys() - {BASELINE, "unconstrained"} - SOFT.keys()


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


SMALL = Size(tasks=600, seeds=2, workers=40)


def test_a_trace_has_so_many_tasks_and_so_much_work(tmp_path: Path) -> None:
    (tmp_path / "t.trace").write_text("".join(traces.trace_lines(SMALL, 1)))
    for with_sets in (True, False):
        asked = parse(traces.scenario_text(SMALL, "t.trace", with_sets), tmp_path)
        jobs = list(asked.plan.arrivals(1))
        assert any(job.work_class.spec.node_selector for job in jobs) == with_sets
        assert asked.plan.tasks is not None
        assert 600 <= asked.plan.tasks < 1000
        assert asked.load == pytest.approx(traces.LOAD, rel=1e-3)
        assert [each.name for each in asked.profiles] == list(traces.NAMES)


def test_seeds_write_other_traces() -> None:
    one, again, other = (list(traces.trace_lines(SMALL, seed)) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        ((2.0, 2.5), Measured(1.8, 0.3), ": within the interval."),
        ((2.0, 2.5), Measured(1.4, 0.3), ": less."),
        ((2.0, 2.5), Measured(1.2, 0.3), ": no cost or gain that the interval shows."),
        ((2.0, 2.5), Measured(0.8, 0.1), ": **reversed**."),
        ((2.0, 2.0), Measured(3.0, 0.5), ": more."),
        ((2.0, 2.0), Measured(0.8, None), "2 in the paper, 0.80 in one run here."),
        ((2.0, 2.0), None, "nothing to compare here."),
    ],
)
def test_a_sentence_says_where_the_paper_differs(
    paper: tuple[float, float], ours: Measured | None, verdict: str
) -> None:
    assert verdict in traces.Published("it", paper, ours).sentence()


def test_a_distribution_is_of_all_samples_together() -> None:
    buckets = {ZERO_BUCKET: 2, 0: 1}, {0: 3, 200: 2}
    samples = [Times(sum(each.values()), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, each) for each in buckets]
    seconds, shares = pictures.distribution(samples)
    assert seconds.tolist() == [0.0, 1.005, 1.005**201]
    assert shares.tolist() == [0.25, 0.75, 1.0]


@pytest.mark.long
def test_a_trace_is_measured_with_and_without_constraints(tmp_path: Path) -> None:
    done = traces.measure(traces.PARTS[0], SMALL, 1, lambda done: None)
    assert {name: len(mine) for name, mine in done.pairs.items()} == dict.fromkeys(traces.NAMES, 2)
    for pair in done.pairs["eagle-c"]:
        assert pair.constrained.seed == pair.plain.seed
        assert pair.constrained.response.count == pair.plain.response.count
        assert "short, constrained" in pair.constrained.groups["length+constrained"]
        assert "short, constrained" not in pair.plain.groups["length+constrained"]
    lines = page(Facts("1.0", SMALL), [], [done]).splitlines()
    assert f"## {done.part.title}" in lines
    assert sum(line.startswith("| `hawk-c` |") for line in lines) == 3  # what it is, what it costs, waits
    assert sum(line.startswith("- `hawk-c`, ") for line in lines) == 2
    pictures.draw(done, tmp_path / "waits.png")
    assert (tmp_path / "waits.png").read_bytes().startswith(b"\x89PNG")
    assert f"](../pictures/{pictures.WAITS.name})" in "\n".join(lines)


@pytest.mark.long
def test_a_part_of_its_own_size_says_what_it_took_and_compares_its_policies_alone() -> None:
    one = replace(traces.PARTS[1], policies=("eagle-c",))
    text = page(Facts("1.0", SMALL), [], [traces.measure(one, SMALL, 1, lambda done: None)])
    assert "minutes of processor time" in text
    assert "| `hawk-c` |" not in text
    assert "over Phoenix's: 1.9 in the paper; nothing to compare here." in text
