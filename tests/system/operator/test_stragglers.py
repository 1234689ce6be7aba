"""DagJobs whose stragglers the scheduler finds: one slow node of 30, and what finds and copies is killed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from dag_jobs import stage
from eclectus.api.names import (
    API_VERSION,
    COPY_OF_LABEL,
    DAG_JOB,
    NODE_PROFILES_PATH,
    STRAGGLING,
    WORK_SECONDS,
)
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import wait

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

NAMESPACE = "batch"
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}, "copies": {"namespaces": [NAMESPACE]}}}
SLOW, RATE = "n00", 0.25
SPEEDS = {f"n{i:02}": RATE if i == 0 else 1.0 for i in range(30)}
NODES = [NodeSpec(name=name, group="all", speed=speed) for name, speed in SPEEDS.items()]
# By room, since the slow node would get no pod any more where its speed counts.
PROFILE = {
    "schedulerName": "eclectus",
    "place": {"policy": "least-allocated"},
    "speculate": {"policy": "spark"},
}
SCHEDULER = {"profiles": [PROFILE], "nodeProfiles": {"interval": "1s"}}
JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/dagjobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
TASKS = 12
MEMBERS = ("eclectus.dev/dag-job", "eclectus.dev/task-index")


def submit(admin, name):
    """A job whose first task is placed on the slow node, where it takes four times as long."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"annotations": {WORK_SECONDS: "8"}}, "spec": {"containers": [main]}}
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
    names, kills, one = [f"job-{i}" for i in range(6)], 0, operator()
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
    wait("the slow node is learned within a third, and live", lambda: is_slow_learned(admin), seconds=30)


def is_slow_learned(admin):
    """Though all of its tasks were overtaken."""
    status = (admin.get(f"{NODE_PROFILES_PATH}/{SLOW}") or {}).get("status", {})
    return status.get("state") == "Live" and status["speed"] == pytest.approx(RATE, rel=1 / 3)


# -- crashes at each step of the table -------------------------------------------------------------------


class Race(NamedTuple):
    """A pod, and its copy if it has one."""

    original: Any
    copy: Any


def jobs(admin):
    return admin.get(JOBS)["items"]


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


def is_alone_on_slow(race):
    return phase(race.original) == "Running" and race.original["spec"]["nodeName"] == SLOW and not race.copy


class Crash(NamedTuple):
    """When the scheduler is killed, when the operator, and what has come to be before both are back."""

    scheduler: Callable[[Race], bool]
    operator: Callable[[Race], bool]
    back: Callable[[Race], bool]


# Four jobs each. With the scheduler dead no copy starts, with the operator dead no race is settled.
CRASHES = {
    "marked, no copy": Crash(MARKED, MARKED, MARKED),
    "the copy is made": Crash(MADE, MADE, MADE),
    "the copy runs": Crash(RUNS, RUNS, RUNS),
    "the copy has ended": Crash(RUNS, RUNS, COPY_ENDED),
    "both have ended": Crash(RUNS, RUNS, BOTH_ENDED),
}


class Replicas:
    """The scheduler and the operator: killed, and started again before their Leases have expired."""

    def __init__(self, admin, kubelets, scheduler, operator):
        self.admin, self.kubelets, self.scheduler, self.operator = admin, kubelets, scheduler, operator

    def play(self, crash):
        """Kill both at their steps, and start them at the third."""
        self.kill_scheduler_at(crash.scheduler)
        self.kill_operator_at(crash.operator)
        self.reach(crash.back)
        self.start_scheduler()
        self.start_operator()

    def kill_scheduler_at(self, step):
        race = self.reach(step)
        self.scheduler.kill()
        return race

    def kill_operator_at(self, step):
        race = self.reach(step)
        self.operator.kill()
        return race

    def start_scheduler(self):
        self.admin.remove_claims()
        runs = len(self.scheduler.lines("deciding"))
        self.scheduler.start().wait_deciding(runs + 1)

    def start_operator(self):
        self.admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
        self.operator.start()

    def reach(self, step):
        """The first race that is at this step."""
        found = []

        def is_reached():
            found[:] = filter(step, races(self.admin))
            return found

        wait("a pod and its copy are at this step", is_reached, seconds=120)
        return found[0]

    def settle(self, race, step, seconds=120):
        """Wait until this race is at a step."""

        def is_settled():
            pods = self.admin.pods()
            return step(Race(*(pods.get(each["metadata"]["name"]) for each in race)))

        wait("the race is at this step", is_settled, seconds=seconds)

    @contextmanager
    def held(self, race):
        """Neither the pod nor its copy gets any further."""
        nodes = [each["spec"]["nodeName"] for each in race if each and each["spec"].get("nodeName")]
        for node in nodes:
            self.kubelets.set_speed(0.0, nodes=[node])
        yield
        for node in nodes:
            self.kubelets.set_speed(SPEEDS[node], nodes=[node])

    @contextmanager
    def waiting_copy(self):
        """A copy waits and its original gets no further; both are dead, the scheduler since before the copy.

        Otherwise it could place the copy before anybody has seen it wait.
        """
        wait("all pods are made", lambda: len(races(self.admin)) == TASKS * len(jobs(self.admin)))
        self.kill_operator_at(is_alone_on_slow)
        with self.held(self.kill_scheduler_at(MARKED)):
            self.start_operator()
            yield self.kill_operator_at(WAITS)


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
    replicas, names = Replicas(admin, kubelets, scheduler, one), []
    for step, crash in CRASHES.items():
        wave = submit_wave(admin, len(names), 4)
        replicas.play(crash)
        names += wave
        wait_clean(admin, step, names)
    check_twenty(admin, names)


def submit_wave(admin, first, many):
    wave = [f"wave-{first + number}" for number in range(many)]
    for name in wave:
        submit(admin, name)
    return wave


def check_twenty(admin, names):
    assert len(names) == 20
    for name in names:
        (found,) = admin.get(f"{JOBS}/{name}")["status"]["stages"]
        assert (found["succeeded"], found["retried"]) == (TASKS, 0)
    admin.send("DELETE", JOBS)
    wait("no pod is left", lambda: not admin.pods())


# -- crashes where a copy is taken back, or is the only one that is left -----------------------------------


def withdraw(replicas):
    """The scheduler has written that the pod is not late any more; its copy waits."""
    with replicas.waiting_copy() as race:
        condition = {"type": STRAGGLING, "status": "False", "reason": "NoLongerLate"}
        path = f"{PODS}/{race.original['metadata']['name']}/status"
        replicas.admin.patch(path, {"status": {"conditions": [condition]}})
        replicas.start_operator()
        replicas.settle(race, are("Running", "none"))


def outrun(replicas):
    """The pod has ended while its copy waits."""
    with replicas.waiting_copy() as race:
        pass
    replicas.settle(race, ORIGINAL_ENDED)
    replicas.start_operator()


def take_over(replicas):
    """The pod is gone while its copy runs."""
    race = replicas.kill_scheduler_at(RUNS)
    with replicas.held(race):
        replicas.operator.kill()
        path, now = f"{PODS}/{race.original['metadata']['name']}", {"gracePeriodSeconds": "0"}
        replicas.admin.send("DELETE", path, query=now)
        replicas.start_operator()
        replicas.settle(race, are("none", "Running"))
    replicas.settle(race, are("none", "Succeeded"))


def drop(replicas):
    """Their job is suspended while both run."""
    race = replicas.kill_scheduler_at(RUNS)
    job = f"{JOBS}/{race.original['metadata']['labels'][MEMBERS[0]]}"
    with replicas.held(race):
        replicas.operator.kill()
        suspend(replicas.admin, job, True)
        replicas.start_operator()
        replicas.settle(race, are("none", "none"))
    suspend(replicas.admin, job, False)


def suspend(admin, job, is_suspended):
    body = {"spec": {"suspend": is_suspended}}
    admin.send("PATCH", job, body, content_type="application/merge-patch+json")


def force(replicas):
    """The copy has lost, and its node does not answer."""
    node = replicas.kill_scheduler_at(RUNS).copy["spec"]["nodeName"]
    replicas.kubelets.freeze(node)
    race = replicas.kill_operator_at(lambda race: race.copy and "deletionTimestamp" in race.copy["metadata"])
    replicas.start_operator()
    replicas.settle(race, are("Succeeded", "none"), seconds=240)
    replicas.kubelets.thaw(node)


def fail(replicas):
    """The copy has failed, and its original has still to end."""
    race = replicas.kill_scheduler_at(RUNS)
    replicas.operator.kill()
    node = race.copy["spec"]["nodeName"]
    replicas.kubelets.kill(node)
    replicas.kubelets.recover(node)
    replicas.settle(race, are("Running", "Failed"))
    replicas.start_operator()
    replicas.settle(race, are("Succeeded", "none"))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(1800)
def test_both_are_killed_where_copies_are_given_up_and_each_task_succeeds_once(
    admin, kubelets, scheduler, operator
):
    admin.send("DELETE", JOBS)
    wait("no pod is left", lambda: not admin.pods())
    one = operator()
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    replicas, names = Replicas(admin, kubelets, scheduler, one), []
    for play, many in ((withdraw, 4), (outrun, 4), (take_over, 3), (drop, 3), (force, 3), (fail, 3)):
        wave = submit_wave(admin, len(names), many)
        play(replicas)
        replicas.start_scheduler()
        names += wave
        wait_clean(admin, play.__doc__, names)
    check_twenty(admin, names)
