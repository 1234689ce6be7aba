"""Every feature at once, under the preset `full`, while scheduler, operator and solver are killed in turn.

Pools with a minimum, a maximum and policies of their own, DagJobs whose tasks may have copies, slow nodes,
gangs, constraints, data and a flow solver, in 10,000 pods. What each feature brings is measured by the
scenario `together`; here nothing may be lost, done twice or started beyond a limit.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections import Counter
from functools import partial
from typing import Any

import pytest
import yaml

from dag_jobs import stage
from eclectus.api.names import API_VERSION, DAG_JOB, INPUTS, POOL_LABEL, POOLS_PATH, WORK_SECONDS
from eclectus.kube.cluster_objects import COSCHEDULING_LABEL
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import Admin, pod, wait
from pod_groups import DEFINITION, coscheduling_pod_group
from pool_objects import new_pool

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(1500)]

NAMESPACE = "batch"
PRESET = yaml.safe_load((CHART / "presets" / "full.yaml").read_text())
VALUES = PRESET | {"operator": PRESET["operator"] | {"copies": {"namespaces": [NAMESPACE]}}}
NODES = [
    NodeSpec(
        name=f"n{at:02}",
        group="all",
        speed=0.25 if at % 10 == 0 else 1.0,
        labels={"disk": "ssd" if at % 3 == 0 else "none"},
    )
    for at in range(60)
]  # of four cores each
SHARED = {"order": {"policy": "pools"}, "relieve": [{"policy": "reclaim"}, {"policy": "preemption"}]}
# In any case: fake kubelets run pods as fast elsewhere, and once that is learned nobody waits.
HOLD = {"policy": "delay", "leastGain": None}
DELAYED = {"schedulerName": "data", "place": {"policy": "kube"}, "hold": HOLD, **SHARED}
SOLVED = {"schedulerName": "flow", "place": {"policy": "quincy"}}
SCHEDULER = {"profiles": [*PRESET["config"]["profiles"], DELAYED, SOLVED]}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DAG_JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/dagjobs"
POD_GROUPS = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{NAMESPACE}/podgroups"
MOST_CAPPED = 30  # cores, and pods, of the pool with a maximum
NEVER_TAKEN = {"preemption": {"allowFrom": False}}  # nothing makes its pods again
POOLS = {
    "dag": {"policy": "srtf", "preemption": {"minRuntimeSeconds": 1}},
    "shop": {
        "policy": "fifo",
        "minShare": {"amounts": {"cpu": 60}},
        "preemption": {"allowFrom": False, "minShareSeconds": 2},
    },
    "capped": {"policy": "sjf", "maxShare": {"amounts": {"cpu": MOST_CAPPED}}, **NEVER_TAKEN},
    "rest": NEVER_TAKEN,
}
JOBS, TASKS = 20, 50
GANGS, GANG = 100, 8
COUNTS = {"shop": 3_000, "capped": 2_500, "ssd": 1_200, "data": 1_000, "flow": 500}
BARE = sum(COUNTS.values()) + GANGS * GANG
TOTAL = BARE + JOBS * TASKS
MOST_WAITING = 1_500  # so that pods come and go for the whole time
CHUNK = 250
KILLS = ("scheduler", "operator", "solver") * 5


def in_pool(name: str, body: Any) -> Any:
    """The pod with the label that asks for a pool."""
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), POOL_LABEL: name}
    return body


def with_data(name: str, number: int) -> Any:
    """A pod whose data three nodes have."""
    body = pod(name, cpu="1", work=1, scheduler="data")
    inputs = [{"name": f"block-{number % 20}", "bytes": 1 << 27, "nodes": homes(number)}]
    body["metadata"]["annotations"][INPUTS] = json.dumps(inputs)
    return in_pool("rest", body)


def homes(number: int) -> list[str]:
    """The nodes that have the data of a pod."""
    return [NODES[(7 * (number % 20) + 20 * at + 1) % len(NODES)].name for at in range(3)]


def member(gang: int, number: int) -> Any:
    """One pod of a gang; it runs for longer than eight binds and starts take on a busy machine."""
    body = pod(f"gang-{gang}-{number}", cpu="1", work=10)
    body["metadata"]["labels"] = {COSCHEDULING_LABEL: f"gang-{gang}"}
    return in_pool("rest", body)


def bare_pods() -> list[Any]:
    """All pods that no DagJob makes, the kinds in turn by their numbers."""
    kinds: list[list[Any]] = [
        [in_pool("shop", pod(f"shop-{at}", cpu="1", work=1)) for at in range(COUNTS["shop"])],
        [in_pool("capped", pod(f"capped-{at}", cpu="1", work=1)) for at in range(COUNTS["capped"])],
        [
            in_pool("rest", pod(f"ssd-{at}", cpu="1", work=1, nodeSelector={"disk": "ssd"}))
            for at in range(COUNTS["ssd"])
        ],
        [with_data(f"data-{at}", at) for at in range(COUNTS["data"])],
        [
            in_pool("rest", pod(f"flow-{at}", cpu="1", work=1, scheduler="flow"))
            for at in range(COUNTS["flow"])
        ],
        [member(gang, number) for gang in range(GANGS) for number in range(GANG)],
    ]
    placed = ((at / len(kind), body) for kind in kinds for at, body in enumerate(kind))
    return [body for _, body in sorted(placed, key=lambda each: each[0])]


def submit_jobs(admin: Admin) -> None:
    """DagJobs of one stage, on nodes of which some are four times slower."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"annotations": {WORK_SECONDS: "4"}}, "spec": {"containers": [main]}}
    stages = [stage("a", tasks=TASKS, retries=0, template=template)]
    for number in range(JOBS):
        admin.send(
            "POST",
            DAG_JOBS,
            {
                "apiVersion": API_VERSION,
                "kind": DAG_JOB,
                "metadata": {"name": f"job-{number}"},
                "spec": {"pool": "dag", "speculative": True, "stages": stages},
            },
        )


def has_succeeded(job: Any) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(each["type"] == "Succeeded" and each["status"] == "True" for each in conditions)


class Killer:
    """Kills what the preset runs, one after the other, and starts it again."""

    def __init__(self, admin: Admin, scheduler: Any, operator: Any) -> None:
        self._admin, self._scheduler, self._operator = admin, scheduler, operator
        self._starts = 1

    def kill(self, what: str) -> None:
        getattr(self, f"_kill_{what}")()

    def _kill_scheduler(self) -> None:
        self._scheduler.kill()
        self._admin.remove_claims()
        self._starts += 1
        self._scheduler.start().wait_deciding(self._starts)

    def _kill_operator(self) -> None:
        self._operator.kill()
        self._admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
        self._operator.start()

    def _kill_solver(self) -> None:
        wait("a solver runs", self._scheduler.solver_pids)
        os.kill(self._scheduler.solver_pids()[0], signal.SIGKILL)


def play(admin: Admin, kubelets: Any, killer: Killer) -> None:
    """Submit pods as others end, and kill something whenever a sixteenth of all has ended."""
    coming, kills = iter(bare_pods()), list(KILLS)
    sent, step = JOBS * TASKS, TOTAL // (len(KILLS) + 1)

    def have_ended(many: int) -> bool:
        return bool(kubelets.counters().finished >= many)

    while kills or sent < TOTAL:
        done = kubelets.counters().finished
        if kills and done >= step * (len(KILLS) - len(kills) + 1):
            killer.kill(kills.pop(0))
        if sent < TOTAL:
            chunk = list(itertools.islice(coming, CHUNK))
            admin.create(chunk)
            sent += len(chunk)
        goal = sent - MOST_WAITING if sent < TOTAL else min(done + 1, TOTAL)
        wait("pods end", partial(have_ended, goal), seconds=300)


def most_at_once(times: list[tuple[float, float]]) -> int:
    """The largest number of intervals that overlap; one that ends as another begins does not."""
    changes = sorted([*((begin, 1) for begin, _ in times), *((end, -1) for _, end in times)])
    return max(itertools.accumulate(change for _, change in changes))


def test_nothing_is_lost_done_twice_or_beyond_a_limit_while_all_are_killed_in_turn(
    admin, kubelets, scheduler, operator
):
    admin.send("POST", DEFINITIONS, DEFINITION)
    wait("the PodGroups are served", lambda: admin.get(POD_GROUPS) is not None)
    for name, spec in POOLS.items():
        admin.send("POST", POOLS_PATH, new_pool(name, namespaces={"names": [NAMESPACE]}, **spec))
    for name in POOLS:
        wait(
            f"{name} is measured",
            lambda name=name: "waitingPods" in admin.get(f"{POOLS_PATH}/{name}").get("status", {}),
        )
    for gang in range(GANGS):
        admin.send("POST", POD_GROUPS, coscheduling_pod_group(f"gang-{gang}", GANG))
    one = operator().wait_leading()
    submit_jobs(admin)
    play(admin, kubelets, Killer(admin, scheduler, one))
    wait(
        "all DagJobs succeed",
        lambda: all(map(has_succeeded, admin.send("GET", DAG_JOBS)["items"])),
        every=2.0,
        seconds=300,
    )
    names = {body["metadata"]["name"] for body in bare_pods()}
    wait(
        "all pods succeed",
        lambda: kubelets.counters().finished >= TOTAL and succeeded(admin) >= names,
        every=2.0,
        seconds=300,
    )
    check(admin, kubelets, names)


def succeeded(admin: Admin) -> set[str]:
    return {name for name, each in admin.pods().items() if each["status"]["phase"] == "Succeeded"}


def check(admin: Admin, kubelets: Any, names: set[str]) -> None:
    """Hold what has run against what each feature promises."""
    counters, records = kubelets.counters(), kubelets.pod_times()
    assert (counters.refused, counters.overcommitted, counters.violations) == ({}, 0, 0)
    runs = Counter(each.name for each in records if each.name in names)
    assert set(runs.values()) == {1}, "no bare pod is taken back, and none runs twice"
    for job in admin.send("GET", DAG_JOBS)["items"]:
        (found,) = job["status"]["stages"]
        assert (found["succeeded"], found["retried"]) == (TASKS, 0)
    capped = [(each.started, each.finished) for each in records if each.name.startswith("capped-")]
    assert most_at_once(capped) <= MOST_CAPPED
    gangs = [[each for each in records if each.name.startswith(f"gang-{gang}-")] for gang in range(GANGS)]
    cut = [mine for mine in gangs if max(one.started for one in mine) >= min(one.finished for one in mine)]
    assert len(cut) <= KILLS.count("scheduler"), "but for those that a kill cut all of a gang run at once"
    at_home = [each.node in homes(int(each.name[5:])) for each in records if each.name.startswith("data-")]
    assert sum(at_home) >= 0.9 * len(at_home)
