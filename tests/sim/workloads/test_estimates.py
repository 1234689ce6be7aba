"""Believed against true run times of stages, smaller jobs, and requests by stage."""

from __future__ import annotations

import json
from itertools import islice
from math import log
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from eclectus.model.errors import SettingsError
from eclectus.sim.base.work import Arrival
from eclectus.sim.scenario import Scenario
from short_scenarios import scenario
from staged_jobs import DIAMOND, job, written

JOBS = [job(name, *DIAMOND) for name in ("x", "y", "z")]


def read(folder: Path, **said: Any) -> Scenario:
    return scenario(
        workload={"dags": written(folder, *JOBS) | said}, cluster={"groups": [{"slots": 50}]}, measure={}
    )


def arrivals(folder: Path, most: int = 99, seed: int = 1, **said: Any) -> list[Arrival]:
    return list(islice(read(folder, **said).plan.arrivals(seed), most))


def test_by_default_the_true_means_are_believed(tmp_path: Path) -> None:
    assert {each.estimates for each in arrivals(tmp_path)} == {None}
    assert read(tmp_path).plan.stages.history_runs == 0


def test_a_bias_is_the_same_error_of_all_and_true_sizes_stay(tmp_path: Path) -> None:
    found = arrivals(tmp_path, estimates={"bias": 0.5})
    assert {each.estimates for each in found} == {(4.5, 6.0, 1.5, 3.0)}
    assert [each.sizes for each in found] == [each.sizes for each in arrivals(tmp_path)]


def test_noise_has_mean_1_and_differs_between_stages_and_jobs(tmp_path: Path) -> None:
    many = arrivals(tmp_path, 2000, arrivals="poisson", rate=1.0, estimates={"noise": 0.5})
    factors = [
        believed / stage.seconds
        for each in many
        if each.dag and each.estimates
        for believed, stage in zip(each.estimates, each.dag.stages, strict=True)
        if believed is not None
    ]
    assert len(set(factors)) == 8000
    assert fmean(factors) == pytest.approx(1.0, abs=0.03)
    assert stdev(map(log, factors)) == pytest.approx(0.5, rel=0.03)
    exact = arrivals(tmp_path, 2000, arrivals="poisson", rate=1.0)
    assert [(each.at, each.sizes) for each in many] == [(each.at, each.sizes) for each in exact]


def test_history_is_no_declaration(tmp_path: Path) -> None:
    assert read(tmp_path, estimates={"source": "history", "runs": 3}).plan.stages.history_runs == 3
    with pytest.raises(SettingsError, match=r"workload\.dags\.estimates\.bias: is valid only with source"):
        read(tmp_path, estimates={"source": "history", "bias": 0.1})


def test_smaller_jobs_keep_their_stages(tmp_path: Path) -> None:
    (first, *_) = arrivals(tmp_path, shrink=2)
    assert first.dag is not None
    assert [stage.tasks for stage in first.dag.stages] == [1, 1, 2, 1]
    assert len(first.sizes) == 5
    assert len(arrivals(tmp_path, mostTasks=7)) == 3
    with pytest.raises(SettingsError, match=r"contains no job so small"):
        read(tmp_path, mostTasks=6)


def test_stages_request_one_of_a_mix_the_same_in_all_runs(tmp_path: Path) -> None:
    fields = {"instances": 1, "duration": 1, "start_time": 0, "cpu": 50, "mem": 1}
    line = json.dumps({"job": "j", "tasks": [{"id": at} | fields for at in range(40)]})
    path = tmp_path / "jobs.jsonl"
    path.write_text(line)
    mix = [{"requests": {"cpu": 1}}, {"requests": {"cpu": 2, "memory": "1Gi"}}]
    said = {"file": str(path), "format": "alibaba", "classes": "stage", "mix": mix}
    found = []
    for seed in (1, 2):
        plan = scenario(
            workload={"dags": said},
            cluster={"groups": [{"resources": {"cpu": 4, "memory": "4Gi"}}]},
            measure={},
        ).plan
        (arrival,) = plan.arrivals(seed)
        assert arrival.dag is not None
        found.append({stage.name: stage.work_class.spec.requests for stage in arrival.dag.stages})
    assert found[0] == found[1]
    counts = [list(found[0].values()).count(each) for each in set(found[0].values())]
    assert len(counts) == 2
    assert min(counts) > 10
    with pytest.raises(SettingsError, match=r"mix: give either tasks or mix"):
        scenario(workload={"dags": said | {"tasks": {}}})
    with pytest.raises(SettingsError, match=r"mix: stages of this format have requests of their own"):
        read(tmp_path, mix=mix)
