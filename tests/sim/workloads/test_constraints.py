"""Constraint sets of generated jobs: frequencies, correlation with the class, refusals, delay."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest

from constraint_sets import ARM, MACHINE_TYPES, SETS, SSD
from eclectus.model.errors import SettingsError
from eclectus.sim.runs import build_world, run
from eclectus.sim.scenario import Scenario, load, shipped_scenarios
from eclectus.sim.workloads.constraints import satisfying
from short_scenarios import place, scenario

CLUSTER: dict[str, Any] = {"groups": [{"count": 20}], "machineTypes": MACHINE_TYPES}
CLASSES = [{"name": "short", "share": 3, "tasksPerJob": 4}, {"name": "long", "size": {"mean": 12}}]


def constrained(load: float = 0.5, **constraints: Any) -> Scenario:
    poisson = {"load": load, "classes": CLASSES, "constraints": {"sets": SETS, **constraints}}
    return scenario(cluster=CLUSTER, workload={"poisson": poisson})


def drawn(asked: Scenario, name: str, jobs: int = 20_000) -> dict[tuple[tuple[str, str], ...], float]:
    """Share of the jobs of the class by node selector."""
    arrivals = islice(asked.plan.arrivals(1), jobs)
    found = Counter(job.work_class.spec.node_selector for job in arrivals if job.work_class.name == name)
    return {selector: count / found.total() for selector, count in found.items()}


def test_jobs_draw_whole_sets_by_their_frequencies() -> None:
    arm, ssd, both = ((("isa", "arm"),), (("disk", "ssd"),), (("disk", "ssd"), ("isa", "arm")))
    asked = constrained(share=0.6)
    assert drawn(asked, "short") == pytest.approx({(): 0.4, arm: 0.3, ssd: 0.18, both: 0.12}, abs=0.015)
    assert drawn(asked, "long") == pytest.approx({(): 0.4, arm: 3 / 7, both: 1.2 / 7}, abs=0.03)


def test_the_share_of_constrained_jobs_may_depend_on_the_class() -> None:
    asked = constrained(share=0.6, shares={"long": 0})
    assert drawn(asked, "short")[()] == pytest.approx(0.4, abs=0.02)
    assert drawn(asked, "long") == {(): 1.0}


def test_all_tasks_of_a_job_have_the_same_set_and_sizes_do_not_depend_on_sets() -> None:
    plain, picky = (list(islice(constrained(share=share).plan.arrivals(1), 2_000)) for share in (0, 0.8))
    assert [(job.at, job.sizes) for job in plain] == [(job.at, job.sizes) for job in picky]
    assert {len(job.sizes) for job in picky} == {1, 4}


def test_the_planned_work_of_every_set_is_what_arrives() -> None:
    asked = constrained(share=0.6)
    jobs = list(islice(asked.plan.arrivals(1), 40_000))
    found: Counter[Any] = Counter()
    for job in jobs:
        found[job.work_class] += sum(job.sizes)
    assert {kind: work / jobs[-1].at for kind, work in found.items()} == pytest.approx(
        asked.plan.work_rates, rel=0.1
    )
    assert sum(asked.plan.work_rates.values()) == pytest.approx(0.5 * 20)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"sets": []}, "constraints.sets: is empty"),
        (
            {"sets": [{"nodeSelector": {"isa": "mips"}}]},
            r"constraints.sets\[0\].nodeSelector: no machine satisfies \{isa: mips\}",
        ),
        (
            {"sets": [{"nodeSelector": {}}]},
            r"constraints.sets\[0\].nodeSelector: all machines satisfy \{\}, so it constrains",
        ),
        ({"shares": {"shrt": 1}}, "constraints.shares.shrt: is not a class; did you mean 'short'"),
        (
            {"sets": [{"nodeSelector": ARM, "frequencies": {"work": 1}}]},
            r"constraints.sets\[0\].frequencies.work: is not a class; known are: long, short",
        ),
        (
            {"sets": [{"nodeSelector": ARM, "frequency": 0}]},
            "constraints.sets: none has a frequency above 0 among jobs of class 'short'",
        ),
        ({"share": 1.5}, "constraints.share: 1.5 is too large"),
    ],
)
def test_sets_that_cannot_be_meant_are_refused(constraints: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=r"workload.poisson." + words):
        constrained(**constraints)


def test_sets_that_need_more_than_their_machines_can_do_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"workload: the load is 2\.4"):
        constrained(0.9, share=0.55, sets=[{"nodeSelector": ARM | SSD}])


@pytest.mark.parametrize("name", ["constraints", "scarce"])
def test_the_shipped_sets_have_neither_no_machine_nor_all(name: str) -> None:
    asked = load(shipped_scenarios()[name])
    machines = asked.cluster.machines()
    selectors = {each.spec.node_selector for each in asked.plan.mean_sizes} - {()}
    assert len(selectors) >= 8
    assert all(0 < satisfying(dict(each), machines.values()) < len(machines) for each in selectors)
    work = asked.plan.work_rates
    share = sum(rate for each, rate in work.items() if each.spec.node_selector) / sum(work.values())
    assert share == pytest.approx({"constraints": 0.5, "scarce": 0.45}[name], abs=1e-3)


def test_delay_rises_with_the_utilisation_multiplier_of_the_set() -> None:
    """Utilisation on the machines that satisfy a set, over that of the cluster (Sharma and others)."""
    cluster = {
        "groups": [{"count": 60}],
        "machineTypes": {
            "types": [{"labels": {"p": "a"}}, {"labels": {"p": "b"}}, {"labels": {"p": "c"}, "share": 2}]
        },
    }
    sets = [
        {"nodeSelector": {"p": "a"}, "frequency": 36},
        {"nodeSelector": {"p": "b"}, "frequency": 28},
        {"nodeSelector": {"p": "c"}, "frequency": 36},
    ]
    poisson = {"load": 0.6, "classes": [{"tasksPerJob": 5}], "constraints": {"sets": sets, "share": 1.0}}
    asked = scenario(
        cluster=cluster,
        workload={"poisson": poisson},
        profiles=place("least-allocated", ties="random"),
        measure={"tasks": 6000, "groups": ["set"]},
    )
    world = build_world(asked, asked.profiles[0], 1)
    world.run()
    busy = dict.fromkeys("abc", 0.0)
    for machine in world.machines.values():
        busy[dict(machine.node.labels)["p"]] += machine.busy_seconds
    multiplier = {"p=a": busy["a"] / 15, "p=b": busy["b"] / 15, "p=c": busy["c"] / 30}
    waits = {name: each.wait.mean for name, each in run(asked, asked.profiles[0], 1).groups["set"].items()}
    assert sorted(waits, key=waits.__getitem__) == sorted(multiplier, key=multiplier.__getitem__)
    assert waits["p=a"] > 2 * waits["p=c"]
