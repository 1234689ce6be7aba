"""DagJobs are counted by phase and by why they ended: the number of series does not grow with the jobs."""

from typing import Any

import pytest

from dag_jobs import dag_job, stage, stored
from dag_operator_world import DagWorld

FAILS = (1, "Error")


def samples(world: DagWorld, name: str) -> dict[str, float]:
    """Value by label, of those that are not 0."""
    families = world.controller._context.metrics.registry.collect()
    found = (each for family in families for each in family.samples if each.name == name)
    return {next(iter(each.labels.values())): each.value for each in found if each.value}


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": "R", "lastTransitionTime": "x"}]}


@pytest.mark.parametrize(
    ("status", "spec", "expected"),
    [
        ({}, {}, "Pending"),
        ({"startTime": "2026-01-01T00:00:00Z"}, {}, "Running"),
        ({"startTime": "2026-01-01T00:00:00Z"}, {"suspend": True}, "Suspended"),
        (condition("Succeeded"), {"suspend": True}, "Succeeded"),
        (condition("Failed"), {}, "Failed"),
        (condition("Failed", "False"), {}, "Pending"),
    ],
)
def test_the_phase_of_a_job(status: dict[str, Any], spec: dict[str, Any], expected: str) -> None:
    assert stored(dag_job(**spec), status).phase == expected


def test_jobs_are_counted_by_phase_as_they_are_now() -> None:
    world = DagWorld(dag_job("good", stages=[stage("a", tasks=2)]))
    world.api.put("/apis/eclectus.dev/v1alpha1/namespaces/team/dagjobs", dag_job("held", suspend=True))
    world.sync()
    assert samples(world, "eclectus_dag_jobs") == {"Running": 1, "Suspended": 1}
    world.play(40)
    assert samples(world, "eclectus_dag_jobs") == {"Succeeded": 1, "Suspended": 1}
    world.api.remove("/apis/eclectus.dev/v1alpha1/namespaces/team/dagjobs/held")
    world.play(40)
    assert samples(world, "eclectus_dag_jobs") == {"Succeeded": 1}
    assert samples(world, "eclectus_dag_jobs_ended_total") == {"AllTasksSucceeded": 1}
    assert samples(world, "eclectus_dag_pods_created_total") == {"first": 2}


def test_failures_and_pods_that_run_again_are_counted_once() -> None:
    world = DagWorld(dag_job(stages=[stage("a", retries=1)]))
    world.ends = {("a", 0, 0): FAILS, ("a", 0, 1): FAILS}
    world.play(80)
    assert samples(world, "eclectus_dag_jobs_ended_total") == {"RetriesExceeded": 1}
    assert samples(world, "eclectus_dag_pods_created_total") == {"first": 1, "again": 1}
    world.start()
    world.play(20)
    assert samples(world, "eclectus_dag_jobs") == {"Failed": 1}
    assert samples(world, "eclectus_dag_jobs_ended_total") == {}, "an operator before this one has counted it"
