"""DagJobs whose stragglers the scheduler finds: one slow node of 30, and what finds and copies is killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from dag_jobs import stage
from eclectus.api.names import API_VERSION, COPY_OF_LABEL, DAG_JOB, STRAGGLING, WORK_SECONDS
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import wait

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

NAMESPACE = "batch"
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}, "copies": {"namespaces": [NAMESPACE]}}}
SLOW = "n00"
NODES = [NodeSpec(name=f"n{i:02}", group="all", speed=0.1 if i == 0 else 1.0) for i in range(30)]
# Without what is learned of the slow node, which would get no pod any more.
PROFILE = {
    "schedulerName": "eclectus",
    "place": {"policy": "least-allocated"},
    "speculate": {"policy": "spark"},
}
SCHEDULER = {"profiles": [PROFILE]}
JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/dagjobs"
TASKS = 12
MEMBERS = ("eclectus.dev/dag-job", "eclectus.dev/task-index")


def submit(admin, name, work=6):
    """A job whose first task is placed on the slow node, where it takes ten times as long."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"annotations": {WORK_SECONDS: str(work)}}, "spec": {"containers": [main]}}
    spec = {"speculative": True, "stages": [stage("a", tasks=TASKS, retries=0, template=template)]}
    admin.send(
        "POST", JOBS, {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": name}, "spec": spec}
    )


def has_succeeded(admin, name):
    found = (admin.get(f"{JOBS}/{name}") or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Succeeded" and each["status"] == "True" for each in found)


def is_clean(admin, count):
    """Whether there are so many pods, each has succeeded, and no two are of one task."""
    pods = admin.pods().values()
    tasks = {tuple(each["metadata"]["labels"][label] for label in MEMBERS) for each in pods}
    return len(tasks) == len(pods) == count and all(each["status"]["phase"] == "Succeeded" for each in pods)


def test_a_slow_node_is_overtaken_and_each_task_succeeds_once(admin, kubelets, scheduler, operator):
    names, kills, one = [f"job-{i}" for i in range(4)], 0, operator()
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    for name in names:
        submit(admin, name)

    def is_done():
        nonlocal kills
        copies = [each for each in admin.pods().values() if COPY_OF_LABEL in each["metadata"]["labels"]]
        if kills < 3 and len(copies) > kills:
            kills += 1
            one.kill()
            admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
            one.start()
        return all(has_succeeded(admin, name) for name in names)

    wait("all jobs succeed", is_done, every=1.0, seconds=400)
    assert kills
    wait("one success a task is left", lambda: is_clean(admin, len(names) * TASKS))
    for name in names:
        (found,) = admin.get(f"{JOBS}/{name}")["status"]["stages"]
        assert (found["succeeded"], found["retried"]) == (TASKS, 0)
    winners = [each for each in admin.pods().values() if COPY_OF_LABEL in each["metadata"]["labels"]]
    assert winners, "a copy has won"
    assert all(each["spec"]["nodeName"] != SLOW for each in winners)


# -- crashes at each step of the table -------------------------------------------------------------------


class Race(NamedTuple):
    """A pod, and its copy if it has one."""

    original: Any
    copy: Any


def races(admin):
    pods = admin.pods().values()
    copies = {each["metadata"]["labels"].get(COPY_OF_LABEL): each for each in pods}
    return [Race(each, copies.get(each["metadata"]["uid"])) for each in pods if not is_copy(each)]


def is_copy(pod):
    return COPY_OF_LABEL in pod["metadata"]["labels"]


def phase(pod):
    return pod["status"]["phase"] if pod else "none"


def is_marked(race):
    conditions = race.original["status"].get("conditions", [])
    return phase(race.original) == "Running" and any(
        each["type"] == STRAGGLING and each["status"] == "True" for each in conditions
    )


def are(original, *copy):
    return lambda race: phase(race.original) == original and phase(race.copy) in copy


MARKED, MADE = is_marked, lambda race: race.copy is not None
WAITS, RUNS = are("Running", "Pending"), are("Running", "Running")
COPY_ENDED, BOTH_ENDED = are("Running", "Succeeded"), are("Succeeded", "Succeeded")
ORIGINAL_ENDED = are("Succeeded", "Pending")


class Crash(NamedTuple):
    """When the scheduler is killed, when the operator, and what has come to be before both are back."""

    scheduler: Callable[[Race], bool]
    operator: Callable[[Race], bool]
    back: Callable[[Race], bool]


# One wave of jobs each. With the scheduler dead no copy starts, with the operator dead no race is settled.
CRASHES = {
    "marked, no copy": (Crash(MARKED, MARKED, MARKED), 4),
    "the copy is made": (Crash(MADE, MADE, MADE), 4),
    "the copy runs": (Crash(RUNS, RUNS, RUNS), 3),
    "the copy has ended": (Crash(RUNS, RUNS, COPY_ENDED), 3),
    "both have ended": (Crash(RUNS, RUNS, BOTH_ENDED), 3),
    "the original has ended, the copy waits": (Crash(MARKED, WAITS, ORIGINAL_ENDED), 3),
}


class Replicas:
    """The scheduler and the operator: killed, and started again before their Leases have expired."""

    def __init__(self, admin, scheduler, operator):
        self.admin, self.scheduler, self.operator = admin, scheduler, operator
        self.starts = 1

    def play(self, crash):
        """Kill both at their steps, and start them at the third."""
        self.reach(crash.scheduler)
        self.scheduler.kill()
        self.reach(crash.operator)
        self.operator.kill()
        self.reach(crash.back)
        self.admin.remove_claims()
        self.admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
        self.starts += 1
        self.scheduler.start().wait_deciding(self.starts)
        self.operator.start()

    def reach(self, step):
        wait("a pod and its copy are at this step", lambda: any(map(step, races(self.admin))), seconds=120)


def wait_clean(admin, step, names):
    wait(f"{step}: all succeed", lambda: all(has_succeeded(admin, name) for name in names), every=1.0)
    wait(f"{step}: one success a task is left", lambda: is_clean(admin, len(names) * TASKS))


@pytest.mark.slow
@pytest.mark.alone
def test_both_are_killed_at_each_step_and_each_task_succeeds_once(admin, kubelets, scheduler, operator):
    admin.send("DELETE", JOBS)
    wait("no pod is left", lambda: not admin.pods())
    one = operator()
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    replicas, names = Replicas(admin, scheduler, one), []
    for step, (crash, jobs) in CRASHES.items():
        wave = [f"wave-{len(names) + number}" for number in range(jobs)]
        for name in wave:
            submit(admin, name, work=3)
        replicas.play(crash)
        names += wave
        wait_clean(admin, step, names)
    assert len(names) == 20
    for name in names:
        (found,) = admin.get(f"{JOBS}/{name}")["status"]["stages"]
        assert (found["succeeded"], found["retried"]) == (TASKS, 0)
    admin.send("DELETE", JOBS)
    wait("no pod is left", lambda: not admin.pods())
