"""Figure 2 of the Carbyne paper as two DagJobs on a node: API server, operator, scheduler and fake kubelet.

A unit of the figure is ten seconds, its capacity one core. The scheduler starts when all pods that can start
exist, so that both jobs come at once, and times are from the first start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zlib import crc32

import pytest

from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS, WORK_SECONDS
from eclectus_e2e.demo import environment
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.testbed import clusters, product
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec
from eclectus_e2e.testbed.processes import Process
from live_cluster import Admin, wait

pytestmark = pytest.mark.live

UNIT_SECONDS = 10.0
SLACK_SECONDS = 2.0  # the operator notices the end of a stage, and pods take a moment to start
CARBYNE = {"policy": "carbyne"}
STRICT = {"policy": "carbyne", "altruism": 0, "leftover": "none"}
FAIR = {"policy": "drf", "by": "job"}
# Stage: tasks, millicores, run time in units, parents.
JOBS: dict[str, dict[str, tuple[int, int, float, list[str]]]] = {
    "j1": {"s0": (2, 80, 0.5, []), "s1": (3, 210, 1.0, []), "s2": (1, 100, 0.1, ["s0", "s1"])},
    "j2": {"s0": (2, 290, 1.0, [])},
}
READY = 7  # tasks of stages without parents


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A node of one core, the chart with the rights for Carbyne, and its operator."""
    if clusters.choice():
        pytest.skip("the capacity of the cluster must be one core")
    node = NodeSpec(name="node", group="all", speed=1.0, allocatable={**ALLOCATABLE, "cpu": "1"})
    profile = {"schedulerName": "eclectus", "order": CARBYNE, "place": {"policy": "least-allocated"}}
    config = {"profiles": [profile], "learn": {"policy": "none"}}
    values = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}, "config": config}
    directory = tmp_path_factory.mktemp("c") / "cluster"
    with environment.started(directory, [node], values=values) as started:
        yield started


@pytest.fixture
def admin(cluster: Environment, request: pytest.FixtureRequest) -> Iterator[Admin]:
    cluster.kubelet.reset()
    name = f"figure-2-{crc32(request.node.name.encode())}"
    with Admin(cluster.plane.kubeconfig, name) as admin:
        yield admin


def dag_job(name: str) -> Any:
    stages = [stage(each, *fields) for each, fields in JOBS[name].items()]
    spec = {"stages": stages}
    return {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": name}, "spec": spec}


def stage(name: str, tasks: int, millicores: int, units: float, parents: list[str]) -> Any:
    seconds = units * UNIT_SECONDS
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": f"{millicores}m"}}}
    template = {
        "metadata": {"annotations": {WORK_SECONDS: str(seconds)}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    estimate = {"seconds": seconds}
    return {"name": name, "tasks": tasks, "dependsOn": parents, "estimate": estimate, "template": template}


@contextmanager
def operator(cluster: Environment) -> Iterator[Process]:
    process = product.start_operator(cluster.product, dies_with_caller=True)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def scheduler(cluster: Environment, order: dict[str, Any]) -> Iterator[Process]:
    def change(configuration: dict[str, Any]) -> None:
        configuration["profiles"][0]["order"] = order

    process = product.start_scheduler(cluster.product, dies_with_caller=True, change=change)
    try:
        yield process
    finally:
        process.stop()


def create(admin: Admin) -> None:
    """Both jobs, and all pods that can start."""
    for name in JOBS:
        admin.send("POST", f"/apis/{API_VERSION}/namespaces/{admin.namespace}/{DAG_JOBS}", dag_job(name))
    wait("the first pods exist", lambda: len(admin.pods()) == READY)


def wait_until_ended(admin: Admin) -> dict[str, Any]:
    """The jobs, once both have succeeded."""
    path = f"/apis/{API_VERSION}/namespaces/{admin.namespace}/{DAG_JOBS}"

    def jobs() -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in admin.send("GET", path)["items"]}

    def have_succeeded() -> bool:
        conditions = [one for job in jobs().values() for one in job.get("status", {}).get("conditions", [])]
        return [one["status"] for one in conditions if one["type"] == "Succeeded"] == ["True"] * len(JOBS)

    wait("both jobs have succeeded", have_succeeded)
    return jobs()


def job_seconds(cluster: Environment, admin: Admin) -> dict[str, float]:
    """By job: from the first start of any task to its last end."""
    entries = [each for each in cluster.kubelet.pod_times() if each.namespace == admin.namespace]
    assert {each.outcome for each in entries} == {"succeeded"}, "no task ran twice"
    began = min(each.started for each in entries)
    return {name: max(e.finished - began for e in entries if e.name.startswith(f"{name}-")) for name in JOBS}


def run(cluster: Environment, admin: Admin, order: dict[str, Any]) -> dict[str, float]:
    with operator(cluster):
        create(admin)
        with scheduler(cluster, order):
            wait_until_ended(admin)
    return job_seconds(cluster, admin)


def units(*of_jobs: float) -> dict[str, Any]:
    return {
        name: pytest.approx(value * UNIT_SECONDS, abs=SLACK_SECONDS)
        for name, value in zip(JOBS, of_jobs, strict=True)
    }


@pytest.mark.slow
def test_under_strict_fair_shares_both_jobs_take_twice_as_long_as_they_need(
    cluster: Environment, admin: Admin
) -> None:
    assert run(cluster, admin, STRICT) == units(2.1, 2.0)


def test_under_carbyne_the_second_job_ends_first_and_the_first_is_not_delayed(
    cluster: Environment, admin: Admin
) -> None:
    assert run(cluster, admin, CARBYNE) == units(2.1, 1.0)


@pytest.mark.slow
def test_work_conserving_fair_shares_delay_one_of_the_jobs(cluster: Environment, admin: Admin) -> None:
    found = run(cluster, admin, FAIR)
    assert found in (units(1.1, 2.0), units(2.1, 1.5), units(2.1, 1.0)), "which one gets a gap is a tie"


def test_a_restart_of_operator_and_scheduler_changes_no_end(cluster: Environment, admin: Admin) -> None:
    with operator(cluster):
        create(admin)
        with scheduler(cluster, CARBYNE):
            wait("four tasks run", lambda: admin.phases().get("Running") == 4)
            wait("a plan is written", lambda: plan(admin, "j1").get("deadline"))
            before = plan(admin, "j1")
    with operator(cluster), scheduler(cluster, CARBYNE):
        wait_until_ended(admin)
        after = plan(admin, "j1")
    assert job_seconds(cluster, admin) == units(2.1, 1.0)
    assert before["share"]["cpu"] == "500m"
    moved = [datetime.fromisoformat(each["deadline"]).timestamp() for each in (before, after)]
    assert moved[1] == pytest.approx(moved[0], abs=1.0), "the deadline is that of the status"


def plan(admin: Admin, name: str) -> dict[str, Any]:
    path = f"/apis/{API_VERSION}/namespaces/{admin.namespace}/{DAG_JOBS}/{name}"
    found: dict[str, Any] = admin.send("GET", path).get("status", {}).get("plan", {})
    return found
