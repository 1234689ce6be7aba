"""`make carbyne`: contestants are valid, loads are of the shortest resource, the page says who loses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_fields

from eclectus.sim.base.results import DagJob, DagResult, Interval, RunResult
from eclectus.sim.runs import build_world
from eclectus_bench.carbyne.cases import BASELINE, CONTESTANTS, MEANS, SECTIONS, Case, Section, missing
from eclectus_bench.carbyne.pictures import ALLOCATION, LEFTOVER, Recorded, Span, draw, lines_of, record
from eclectus_bench.carbyne.report import COLUMNS, MAY_LACK, Facts, loss_lines, main, page, target_lines
from eclectus_bench.carbyne.runs import (
    BESIDE,
    OWN,
    Row,
    Size,
    load_at_rate_1,
    loads,
    rows_of,
    run_section,
    scenario_text,
)
from published_data import published
from short_scenarios import poisson, runs, scenario
from staged_jobs import DIAMOND, job, written


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_every_contestant_is_a_valid_profile_and_explained(section: Section, tmp_path: Path) -> None:
    profiles = [{"schedulerName": name, **each} for name, each in section.contestants.items()]
    read = scenario(workload={"dags": written(tmp_path, job("j", *DIAMOND))}, profiles=profiles, measure={})
    assert next(iter(section.contestants)) == BASELINE
    assert [each.name for each in read.profiles] == list(section.contestants)
    assert CONTESTANTS.keys() == MEANS.keys()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_every_section_can_be_read_and_its_load_is_found(
    section: Section, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECLECTUS_DATA", str(published("README.md").parent))
    assert missing(section.jobs.files) == ""
    assert 0.1 < load_at_rate_1(scenario_text(section)) < 1000


def test_wrong_demands_change_what_tasks_request_and_not_how_many_arrive() -> None:
    section = next(each for each in SECTIONS if each.name == "demands")
    changed = dict(zip((case.what for case in section.cases), section.cases, strict=True))
    assert (
        changed["+25%"].changes[0].startswith("workload.dags.mix=[{requests: {cpu: 1250m, memory: 2560Mi}}, ")
    )
    assert {case.load for case in section.cases} == {0.95}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ECLECTUS_DATA", str(tmp_path))
    assert "set ECLECTUS_DATA" in missing(SECTIONS[0].jobs.files)
    assert main(["--quick"]) == 1


def test_the_load_is_that_of_the_resource_that_is_shortest(tmp_path: Path) -> None:
    stage = {"name": "a", "tasks": 4, "seconds": 5, "requests": {"cpu": 1, "memory": "4Gi"}}
    read = scenario(
        workload={
            "dags": written(tmp_path, {"name": "j", "stages": [stage]}) | {"arrivals": "poisson", "rate": 0.1}
        },
        cluster={"groups": [{"speed": 2, "resources": {"cpu": 4, "memory": "8Gi"}}]},
        measure={},
        allowUnstable=True,
    )
    found = loads(read)
    assert found["cpu"] == pytest.approx(0.1 * 20 / 8)
    assert found["memory"] == pytest.approx(0.1 * 20 * 4 / 16)


@pytest.fixture(scope="module")
def any_run() -> RunResult:
    return runs(scenario(workload=poisson(0.5), measure={"tasks": 40}), [1])[0]


def with_responses(run: RunResult, *responses: float) -> RunResult:
    jobs = [DagJob(at, "j", 1, 0.0, each, 10.0) for at, each in enumerate(responses)]
    return with_fields(run, dags=DagResult(jobs, 0.5, 0.5, 1, 0.0, 0.0, 0, 0, 0.0))


def test_a_job_is_compared_with_itself_in_the_run_of_the_same_seed(any_run: RunResult) -> None:
    drf = [with_responses(any_run, 10.0, 20.0), with_responses(any_run, 30.0, 30.0)]
    mine = [with_responses(any_run, 5.0, 40.0), with_responses(any_run, 20.0, 20.0)]
    base, row = rows_of({"c": {"drf": drf, "x": mine}})
    assert base.figures["mean, s"] == Interval(22.5, pytest.approx(95.3, rel=1e-2))
    assert {base.figures[name] for name in BESIDE} == {None}
    found = {name: each.mean for name in BESIDE if (each := row.figures[name]) is not None}
    assert found["factor"] == pytest.approx((30 / 45 + 60 / 40) / 2)
    assert found["below 0.8, %"] == pytest.approx(25.0)  # one of two, and none of two
    assert found["worst"] == pytest.approx((0.5 + 1.5) / 2)
    assert found["makespan"] == pytest.approx((2 + 2 / 3) / 2)
    assert row.figures["x alone"] == Interval(2.125, pytest.approx(1.59, rel=1e-2))


def test_the_page_marks_what_is_worse_than_drf_by_more_than_the_interval() -> None:
    figures: dict[str, Interval | None] = dict.fromkeys((*OWN, *BESIDE))
    base = figures | {"mean, s": Interval(12.3456, 1.0)}
    worse = figures | {
        "factor": Interval(0.8, 0.1),
        "p50": Interval(0.95, 0.1),
        "p95": Interval(1.5, 0.1),
        "makespan": Interval(1.2, 0.1),
        "worst": Interval(0.4, 0.1),
    }
    section = replace(SECTIONS[0], cases=(Case("all at once"),))
    rows = [Row("all at once", "drf", base), Row("all at once", "sjf", worse)]
    lines = page(Facts("1.0", Size(7, 3), 4.2, 6.8), [(section, rows)], ["Speeds (no file)"]).splitlines()
    cells = ["mean, s", "factor", "p50", "p95", "below 0.8, %", "worst", "makespan", "x alone"]
    assert [name for name in COLUMNS if name not in MAY_LACK] == cells
    assert "| all at once | `drf` | 12.3 |  |  |  |  |  |  |  |" in lines
    shown = "**0.80 ±0.10** | 0.95 ±0.10 | 1.50 ±0.10 |  | 0.4 | **1.20 ±0.10**"
    assert f"| all at once | `sjf` |  | {shown} |  |" in lines
    assert "Not measured: Speeds (no file)." in lines
    assert f"| `sjf` | {MEANS['sjf']} |" in lines


def figures_of(case: str, factors: dict[str, float], **more: float) -> list[Row]:
    """Rows of one case; `more` are other figures of `carbyne`."""
    empty: dict[str, Interval | None] = dict.fromkeys((*OWN, *BESIDE))
    rows = [Row(case, "drf", empty)]
    for name, factor in factors.items():
        figures = {"factor": factor} | (more if name == "carbyne" else {})
        rows.append(
            Row(case, name, empty | {column: Interval(each, None) for column, each in figures.items()})
        )
    return rows


def test_targets_are_judged_by_what_was_measured() -> None:
    rows = [
        *figures_of("all at once", {"carbyne": 1.2}, **{"below 0.8, %": 6.0, "makespan": 1.02}),
        *figures_of("load 2", {"srtf": 1.7, "share-srtf": 1.55, "carbyne": 1.5}, **{"below 0.8, %": 5.0}),
    ]
    lines = list(target_lines([(SECTIONS[0], rows)]))
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert {cells[0] for cells in found} == {"`carbyne`"}
    assert [(cells[1], cells[2][:8], *cells[3:]) for cells in found] == [
        ("tpch, load 2", "mean res", "≥ 1.50", "1.50", "1.70", "yes"),
        ("tpch, all at once", "jobs bel", "≤ 5.00", "6.00", "", "**no**"),
        ("tpch, load 2", "jobs bel", "≤ 5.00", "5.00", "", "yes"),
        ("tpch, all at once", "makespan", "≤ 1.02", "1.02", "", "yes"),
        ("tpch, load 2", "factor, ", "≥ 1.55", "1.50", "1.70", "**no**"),
    ]


def test_learned_speeds_are_judged_beside_the_same_order_without_them() -> None:
    rows = figures_of("load 0.7", {"carbyne": 1.01, "carbyne-rosella": 1.3})
    speeds = next(each for each in SECTIONS if each.name == "speeds")
    (line,) = list(target_lines([(speeds, rows)]))[2:]
    assert line.startswith("| `carbyne-rosella` | speeds, load 0.7 | factor, at least that of `carbyne`")
    assert line.endswith("| ≥ 1.01 | 1.30 |  | yes |")


def test_the_page_lists_who_is_better_than_carbyne() -> None:
    rows = [
        *figures_of("a", {"srtf": 1.7, "sjf": 1.2, "carbyne": 1.5}),
        *figures_of("b", {"srtf": 0.8, "carbyne": 0.9}),
        *figures_of("c", {"srtf": 1.2, "carbyne": 1.3}),
    ]
    lines = list(loss_lines([(SECTIONS[0], rows)]))
    assert lines[2:] == ["| tpch, a | 1.50 | `srtf` 1.70 |", "| tpch, b | 0.90 | `drf` 1 |"]
    assert list(loss_lines([(SECTIONS[0], figures_of("a", {"srtf": 1.7}))])) == []


def test_what_no_job_holds_within_its_fair_share_is_left_over_and_counted_by_time() -> None:
    spans = [
        Span(0.0, 5.0, {0: 0.2}),  # of one job alone nothing is said
        Span(5.0, 8.0, {0: 0.9, 1: 0.1}),  # the second leaves 0.4, whoever holds it
        Span(8.0, 9.0, {0: 0.5, 1: 0.3}),
    ]
    run = Recorded(spans, [DagJob(at, "j", tasks, 0.0, 9.0, 9.0) for at, tasks in ((1, 7), (2, 9), (0, 9))])
    values, times = run.leftovers()
    assert values.tolist() == pytest.approx([0.2, 0.4])
    assert times.tolist() == pytest.approx([0.25, 1.0])
    assert run.leftover_median() == pytest.approx(0.4)
    assert run.largest == 0  # the first of those with the most tasks


def test_pictures_show_one_job_of_equal_runs_and_what_all_leave_over(tmp_path: Path) -> None:
    read = scenario(
        workload={"dags": written(tmp_path, job("x", *DIAMOND), job("y", ("a", 5, 3.0, "")))},
        cluster={"groups": [{"slots": 4}]},
        profiles=[{"schedulerName": name, **CONTESTANTS[name]} for name in ("drf", "carbyne")],
        measure={},
    )
    runs = {each.name: record(build_world(read, each, 1)) for each in read.profiles}
    for run in runs.values():
        slot_seconds = sum(4 * sum(each.shares.values()) * (each.end - each.begin) for each in run.spans)
        assert slot_seconds == pytest.approx(2 * 3 + 4 + 3 + 2 + 5 * 3)  # all work was held by some job
    draw(runs, tmp_path)
    for name in (ALLOCATION, LEFTOVER):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    text = "\n".join(lines_of(runs))
    took = [f"{run.job(run.largest).response:.1f} s under `{name}`" for name, run in runs.items()]
    assert f"The job with the most tasks (7) took {' and '.join(took)}." in text


@pytest.mark.long
@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_a_section_is_measured(section: Section, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECLECTUS_DATA", str(published("README.md").parent))
    said: list[str] = []
    small = replace(section, cases=section.cases[-1:])
    rows = list(rows_of(run_section(small, Size(jobs=10, seeds=1), 1, said.append)))
    assert [row.contestant for row in rows] == list(section.contestants)
    assert all(row.figures["mean, s"] is not None for row in rows)
    if section.name in ("tpch", "overload"):
        assert any(row.figures["Jain"] is not None for row in rows), "no window that two jobs fill"
