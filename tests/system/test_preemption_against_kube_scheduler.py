"""The victims of preemption compared with those of a real kube-scheduler, on equal random clusters.

No kubelet runs, so a pod that is deleted stays and is terminating: the victims can be read in peace. The
controller of PodDisruptionBudgets does not run either; the test writes their status. Both schedulers start
when all but the preemptors exists: a watch of budgets may be behind that of pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from live_cluster import Admin, Scheduler, wait

pytestmark = pytest.mark.live

OPTIONS = PlaneOptions(taint_nodes_by_condition=False, controllers="*,-disruption,-podgc")
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SEEDS = range(5)
SCHEDULERS = {"theirs": "default-scheduler", "ours": "eclectus"}
PROFILE = {
    "schedulerName": "eclectus",
    "place": {"policy": "least-allocated"},
    "relieve": {"policy": "preemption"},
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, int], Trial]]:
    """By whose they are, and seed: filled, and both schedulers run."""
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("plane") / "cluster"
        plane = stack.enter_context(ControlPlane.started(directory, OPTIONS))
        admin = stack.enter_context(Admin(plane.kubeconfig, "classes"))
        for value in range(5):
            admin.send("POST", CLASSES, {"metadata": {"name": f"p{value}"}, "value": value})
        made = {
            (whose, seed): Trial(stack.enter_context(Admin(plane.kubeconfig, f"{whose}-{seed}")), seed)
            for whose in SCHEDULERS
            for seed in SEEDS
        }
        for trial in made.values():
            trial.fill()
        plane.start_kube_scheduler()
        ours = Scheduler(tmp_path_factory.mktemp("preempting"), plane.kubeconfig, profiles=[PROFILE])
        stack.callback(ours.start().kill)
        ours.wait_deciding()
        yield made


class Trial:
    """A random cluster in a namespace: its own nodes, which are full, pods of several priorities, budgets."""

    def __init__(self, admin: Admin, seed: int) -> None:
        self._admin = admin
        rng = Random(seed)
        self.nodes = [f"{admin.namespace}-n{at}" for at in range(4)]
        self.pods: list[tuple[str, str, str, int, str, int]] = []  # name, node, cpu, priority, app, start
        for node in self.nodes:
            free = 4000
            while free:
                cpu = min(free, rng.choice([500, 1000, 1500, 2000]))
                free -= cpu
                at = len(self.pods)
                start = rng.randrange(10, 59)
                self.pods.append((f"p{at}", node, f"{cpu}m", rng.randrange(4), rng.choice("abc"), start))
        self.allowed = {app: rng.randrange(2) for app in rng.sample("abc", 2)}
        self.cpu = rng.choice([1500, 2500, 3500])

    def victims(self, scheduler: str) -> tuple[str, set[str], set[str]]:
        """The node to which the preemptor is nominated, the pods evicted there, and what is said of it."""
        admin = self._admin
        admin.create([self._preemptor(scheduler)])
        wait("a nomination", lambda: self._nominated(admin))
        wait("an event says so", lambda: self._outcomes(admin))
        # Each victim is needed, and one may be evicted after the others.
        wait("there is room", lambda: self._freed(admin) >= self.cpu)
        wait("all are evicted", lambda: len(admin.events("Preempted")) == len(self._disrupted(admin)))
        outcomes = {each.replace(admin.namespace, "s") for each in self._outcomes(admin)}
        return self._nominated(admin).replace(admin.namespace, "s"), self._terminating(admin), outcomes

    def fill(self) -> None:
        """Create the nodes, the pods on them and the budgets."""
        admin = self._admin
        for node in self.nodes:
            admin.send("POST", "/api/v1/nodes", _node(node))
        admin.create(
            [_pod(name, node, cpu, f"p{value}", app) for name, node, cpu, value, app, _ in self.pods]
        )
        for name, *_, start in self.pods:
            at = f"2026-03-01T12:00:{start}Z"
            container = {"name": "c", "image": "none", "imageID": "", "ready": True, "restartCount": 0}
            state = {**container, "state": {"running": {"startedAt": at}}}
            path = f"/api/v1/namespaces/{admin.namespace}/pods/{name}/status"
            admin.patch(path, {"status": {"phase": "Running", "startTime": at, "containerStatuses": [state]}})
        budgets = f"/apis/policy/v1/namespaces/{admin.namespace}/poddisruptionbudgets"
        for app, allowed in self.allowed.items():
            spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
            admin.send("POST", budgets, {"metadata": {"name": app}, "spec": spec})
            status = {
                "disruptionsAllowed": allowed,
                "expectedPods": 9,
                "currentHealthy": 9,
                "desiredHealthy": 8,
            }
            admin.send(
                "PATCH",
                f"{budgets}/{app}/status",
                {"status": status},
                content_type="application/merge-patch+json",
            )

    def _preemptor(self, scheduler: str) -> Any:
        pod = _pod("new", "", f"{self.cpu}m", "p4", "none")
        pod["spec"]["schedulerName"] = scheduler
        names = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [each]}]}
            for each in self.nodes
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": names}}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
        return pod

    def _nominated(self, admin: Admin) -> str:
        return str(admin.pods()["new"]["status"].get("nominatedNodeName", ""))

    def _outcomes(self, admin: Admin) -> set[str]:
        notes = (each["note"] for each in admin.events("FailedScheduling"))
        return {note for note in notes if "found a potential placement" in note}

    def _disrupted(self, admin: Admin) -> set[str]:
        return {
            name
            for name, pod in admin.pods().items()
            for each in pod["status"].get("conditions", ())
            if each["type"] == "DisruptionTarget"
        }

    def _freed(self, admin: Admin) -> int:
        """The millicores of those evicted; the nodes were full."""
        evicted = self._terminating(admin)
        return sum(int(cpu.removesuffix("m")) for name, _, cpu, *_ in self.pods if name in evicted)

    def _terminating(self, admin: Admin) -> set[str]:
        return {name for name, pod in admin.pods().items() if pod["metadata"].get("deletionTimestamp")}


def _node(name: str) -> Any:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": room, "capacity": room}}


def _pod(name: str, node: str, cpu: str, priority_class: str, app: str) -> Any:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "priorityClassName": priority_class,
            "terminationGracePeriodSeconds": 600,
        },
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_pods_are_evicted_and_the_same_is_said_of_it(
    trials: dict[tuple[str, int], Trial], seed: int
) -> None:
    theirs, ours = (trials[whose, seed].victims(scheduler) for whose, scheduler in SCHEDULERS.items())
    assert ours == theirs
    assert theirs[1]
