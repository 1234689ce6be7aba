"""Constraint sets beside recorded jobs: the same jobs with and without, refusals, where each task runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from constraint_sets import ARM, MACHINE_TYPES, SETS, SSD
from eclectus.model.errors import SettingsError
from eclectus.sim.base.work import Arrival
from eclectus.sim.runs import run
from eclectus.sim.scenario import Scenario, parse, shipped_scenarios
from short_scenarios import document, scenario
from traced_starts import conserved, place_and_line

CLUSTER: dict[str, Any] = {"groups": [{"count": 10, "slots": 2}], "machineTypes": MACHINE_TYPES}
JOBS = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a trace: one job in four is long."""
    found, chance, at = tmp_path_factory.mktemp("traces"), Random(1), 0.0
    with (found / "jobs.trace").open("w") as out:
        for number in range(JOBS):
            at += chance.expovariate(1)
            sizes = [chance.expovariate(1) * (1 if number % 4 else 30) + 0.01 for _ in range(3)]
            mean = 1 if number % 4 else 30
            print(f"{at:.3f}", len(sizes), mean, *(f"{size:.3f}" for size in sizes), file=out)
    return found


def traced(folder: Path, jobs: int = JOBS, **constraints: Any) -> Scenario:
    asked = {"file": "jobs.trace", "cutOff": 10, "stretch": 4, "mostJobs": jobs}
    if constraints:
        asked["constraints"] = {"sets": SETS, **constraints}
    fields = document(cluster=CLUSTER, workload={"jobtrace": asked}, allowUnstable=True, measure={})
    return parse(yaml.safe_dump(fields), folder)


def arrivals(asked: Scenario, seed: int = 1) -> list[Arrival]:
    return list(asked.plan.arrivals(seed))


def test_jobs_of_a_trace_draw_whole_sets_by_their_frequencies(folder: Path) -> None:
    jobs = arrivals(traced(folder, share=0.6, shares={"long": 1.0}))
    for name, expected in (
        ("short", {(): 0.4, ("isa",): 0.3, ("disk",): 0.18, ("disk", "isa"): 0.12}),
        ("long", {("isa",): 5 / 7, ("disk", "isa"): 2 / 7}),
    ):
        mine = [job.work_class.spec.node_selector for job in jobs if job.work_class.name == name]
        found = Counter(tuple(key for key, _ in selector) for selector in mine)
        shares = {keys: count / len(mine) for keys, count in found.items()}
        assert shares == pytest.approx(expected, abs=0.04)


def test_the_same_trace_with_and_without_constraints_is_the_same_trace(folder: Path) -> None:
    plain, picky = arrivals(traced(folder)), arrivals(traced(folder, share=0.6))
    assert [(job.at, job.sizes, job.estimate, job.work_class.name) for job in plain] == [
        (job.at, job.sizes, job.estimate, job.work_class.name) for job in picky
    ]
    assert sum(bool(job.work_class.spec.node_selector) for job in picky) > 0.5 * JOBS
    assert not any(job.work_class.spec.node_selector for job in plain)


def test_sets_follow_the_seed_and_a_class_of_jobs_that_is_added_changes_no_others(folder: Path) -> None:
    asked = traced(folder, share=0.6)
    one, again, other = (
        [job.work_class.spec.node_selector for job in arrivals(asked, seed)] for seed in (1, 1, 2)
    )
    assert one == again != other
    without_long = arrivals(traced(folder, share=0.6, shares={"long": 0.0}))
    assert [each for each, job in zip(one, without_long, strict=True) if job.work_class.name == "short"] == [
        job.work_class.spec.node_selector for job in without_long if job.work_class.name == "short"
    ]


def test_the_planned_work_of_every_set_is_what_arrives(folder: Path) -> None:
    asked = traced(folder, share=0.6)
    jobs, found = arrivals(asked), Counter[Any]()
    for job in jobs:
        found[job.work_class] += sum(job.sizes)
    planned = asked.plan.work_rates
    assert planned.keys() == found.keys() == asked.plan.mean_sizes.keys()
    assert sum(planned.values()) == pytest.approx(sum(traced(folder).plan.work_rates.values()))
    rates = {kind: work / jobs[-1].at for kind, work in found.items()}
    assert rates == pytest.approx(planned, rel=0.25)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (
            {"sets": [{"nodeSelector": {"isa": "mips"}}]},
            r".sets\[0\].nodeSelector: no machine satisfies \{isa: mips\}",
        ),
        ({"shares": {"work": 1}}, ".shares.work: is not a class; known are: long, short"),
        (
            {"sets": [{"nodeSelector": ARM, "frequency": 0}]},
            ".sets: none has a frequency above 0 among jobs of class 'short'",
        ),
    ],
)
def test_sets_that_cannot_be_meant_are_refused(folder: Path, constraints: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=r"workload.jobtrace.constraints" + words):
        traced(folder, **constraints)


def test_sets_that_need_more_than_their_machines_can_do_are_refused(folder: Path) -> None:
    asked = {"file": "jobs.trace", "cutOff": 10, "constraints": {"sets": [SETS[2]], "share": 0.9}}
    with pytest.raises(SettingsError, match="workload: the load is"):
        parse(yaml.safe_dump(document(cluster=CLUSTER, workload={"jobtrace": asked}, measure={})), folder)


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
        }
    }
}


def manifest(folder: Path, **spec: Any) -> Scenario:
    """A manifest of twenty Pods and one Job, whose template has more in its spec."""
    template = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}],
    }
    metadata = {"annotations": {"e2e.eclectus.dev/work-seconds": "2"}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{at}", **metadata},
            "spec": template,
        }
        for at in range(20)
    ]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"completions": 4, "template": {"metadata": metadata, "spec": {**template, **spec}}},
    }
    (folder / "jobs.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*pods, job]}))
    asked = {"file": "jobs.json", "constraints": {"sets": [{"nodeSelector": ARM}], "share": 0.5}}
    fields = document(cluster=CLUSTER, workload={"kubernetes": asked}, measure={"warmUp": 0})
    return parse(yaml.safe_dump(fields), folder)


def test_jobs_of_a_manifest_draw_sets(tmp_path: Path) -> None:
    asked = manifest(tmp_path)
    drawn = [bool(job.work_class.spec.node_selector) for job in asked.plan.arrivals(1)]
    assert len(drawn) == 21
    assert 4 < sum(drawn) < 17
    conserved(asked, 1)


def taped(folder: Path, file: str, **more: Any) -> Scenario:
    cluster = CLUSTER | {"groups": [{"count": 10, "resources": {"cpu": 4, "memory": "16Gi"}}]}
    fields = document(cluster=cluster, workload={"tape": {"file": file, **more}}, allowUnstable=True)
    return parse(yaml.safe_dump(fields | {"measure": {"warmUp": 0}}), folder)


def test_pods_of_a_tape_draw_sets_one_by_one(tmp_path: Path) -> None:
    recorded = scenario()
    run(recorded, recorded.profiles[0], 1, tape=tmp_path / "run.tape.gz")
    plain = arrivals(taped(tmp_path, "run.tape.gz"))
    picky = arrivals(taped(tmp_path, "run.tape.gz", constraints={"sets": [SETS[0]], "share": 0.5}))
    drawn = [bool(job.work_class.spec.node_selector) for job in picky]
    assert sum(drawn) / len(drawn) == pytest.approx(0.5, abs=0.1)
    assert [(job.at, job.sizes) for job in plain] == [(job.at, job.sizes) for job in picky]


def test_pods_of_a_tape_with_constraints_of_their_own_draw_none() -> None:
    shipped = shipped_scenarios()["tape"].parent
    with pytest.raises(SettingsError, match=r"tape\.constraints: jobs of class 'long' have a node selector"):
        taped(shipped, "tapes/two-speeds.tape.gz", constraints={"sets": [SETS[0]]})


@pytest.mark.parametrize("own", [{"nodeSelector": SSD}, {"affinity": AFFINITY}])
def test_jobs_with_constraints_of_their_own_draw_none(tmp_path: Path, own: dict[str, Any]) -> None:
    words = "jobs of class 'default/' have a node selector or a required node affinity of their own"
    with pytest.raises(SettingsError, match=r"workload\.kubernetes\.constraints: " + words):
        manifest(tmp_path, **own)


@pytest.mark.parametrize("name", place_and_line(10))
def test_every_task_ends_once_on_a_node_that_its_job_may_use(folder: Path, name: str) -> None:
    asked = parse(
        yaml.safe_dump(
            document(
                cluster=CLUSTER,
                workload={
                    "jobtrace": {
                        "file": "jobs.trace",
                        "cutOff": 10,
                        "stretch": 3,
                        "mostJobs": 60,
                        "constraints": {"sets": SETS, "share": 0.6},
                    }
                },
                profiles=[{"schedulerName": name, **place_and_line(10)[name]}],
                learn={"policy": "none"},
                allowUnstable=True,
                measure={"warmUp": 0},
            )
        ),
        folder,
    )
    assert conserved(asked, 1).record.arrived == 180
