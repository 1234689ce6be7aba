"""Jobs with stages in reports: each beside the same job under the first profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from eclectus.sim.base.results import ComparisonReport, DagJob, DagResult
from eclectus.sim.report.compare import compare_jobs, summarise
from eclectus.sim.report.drawing import render_page
from eclectus.sim.report.tables import text_lines
from eclectus.sim.runs import run
from short_scenarios import scenario
from staged_jobs import DIAMOND, job, written


def result(responses: dict[int, float]) -> DagResult:
    jobs = [DagJob(number, "j", 1, float(number), each, 1.0) for number, each in responses.items()]
    return DagResult(jobs, None, None, 0, 0.0, 0.0, 0, 0, 0.0)


def test_jobs_are_paired_by_their_number_whatever_the_order_of_their_ends() -> None:
    found = compare_jobs(result({3: 5.0, 1: 2.0, 2: 10.0}), result({1: 4.0, 2: 7.0, 3: 10.0}))
    assert found is not None
    assert found.factor == pytest.approx(21 / 17)
    assert (found.p50, found.worst, found.losers) == (2.0, 0.7, pytest.approx(1 / 3))
    assert found.makespan == pytest.approx(12 / 13)


def test_jobs_that_have_not_ended_in_both_runs_are_left_out() -> None:
    found = compare_jobs(result({1: 2.0}), result({1: 2.0, 2: 7.0}))
    assert found is not None
    assert (found.factor, found.makespan) == (1.0, 1.0)
    assert compare_jobs(result({1: 2.0}), result({2: 7.0})) is None


def test_the_report_has_jobs_with_stages_beside_the_first_profile(tmp_path: Path) -> None:
    small = [job(f"small{at}", ("a", 2, 1.0, "")) for at in range(6)]
    profiles = [
        {"schedulerName": name, "order": {"policy": name}, "place": {"policy": "best-fit"}, "learn": none}
        for none in ({"policy": "none"},)
        for name in ("fifo", "srtf")
    ]
    read = scenario(
        workload={"dags": written(tmp_path, *small, job("large", *DIAMOND), job("wide", ("a", 40, 2.0, "")))},
        cluster={"groups": [{"slots": 2}]},
        profiles=profiles,
        measure={},
    )
    runs = [run(read, each, seed) for each in read.profiles for seed in (1, 2)]
    fifo, srtf = summarise(runs)
    assert fifo.dags is not None
    assert srtf.dags is not None
    assert fifo.dags.factor is not None
    assert srtf.dags.factor is not None
    assert fifo.dags.factor.mean == 1.0
    assert srtf.dags.factor.mean == pytest.approx(
        sum(
            sum(each.response for each in one.dags.jobs) / sum(each.response for each in other.dags.jobs)
            for one, other in zip(runs[:2], runs[2:], strict=True)
            if one.dags and other.dags
        )
        / 2
    )
    assert srtf.dags.factor.mean > 1.0
    report = ComparisonReport("1", "s", "", None, True, [1, 2], [fifo, srtf], runs)
    lines = list(text_lines(report))
    (at,) = [at for at, line in enumerate(lines) if line.startswith("jobs with stages, s")]
    assert lines[at].split()[-2:] == ["0.8,", "%"]
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["fifo", "srtf"]
    assert "jobs with stages" in render_page(report)
