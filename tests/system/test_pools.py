"""Pools on a real API server: limits hold, a pool takes back what is its own, and people see both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eclectus.api.names import POOL_LABEL, POOLS_PATH
from eclectus_e2e.testbed.chart import render
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from live_cluster import Admin, Scheduler, pod, wait
from pool_objects import new_pool

pytestmark = pytest.mark.live

PROFILE = {
    "schedulerName": "eclectus",
    "order": {"policy": "pools"},
    "place": {"policy": "least-allocated"},
    "relieve": ["reclaim", "preemption"],
}
CORES = 48  # of all nodes together


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def is_served(admin: Admin) -> bool:
    return admin.get(POOLS_PATH) is not None


@pytest.fixture
def pools(admin: Admin) -> Iterator[Callable[..., None]]:
    """Makes a Pool that the test's namespace may use."""
    rendered = (each for each in render() if each["kind"] == "CustomResourceDefinition")
    (definition,) = (each for each in rendered if each["spec"]["names"]["kind"] == "Pool")
    admin.send("POST", DEFINITIONS, definition)
    wait("Pools are served", lambda: is_served(admin))

    def create(name: str, **spec: Any) -> None:
        names = {"names": [admin.namespace]}
        admin.send("POST", POOLS_PATH, new_pool(name, namespaces=names, **spec))

    yield create
    admin.send("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    wait("Pools are served no more", lambda: not is_served(admin))


def pods(pool: str, count: int) -> list[Any]:
    """Pods of one core each that work for long."""
    made = [pod(f"{pool}-{at}", cpu="1", work=1000, terminationGracePeriodSeconds=1) for at in range(count)]
    for each in made:
        each["metadata"].setdefault("labels", {})[POOL_LABEL] = pool
    return made


def held(admin: Admin, pool: str) -> int:
    return sum(name.startswith(f"{pool}-") for name in admin.bound())


def test_a_limit_holds_and_is_what_a_pod_waits_for(
    admin: Admin, pools: Callable[..., None], scheduler: Callable[..., Scheduler]
) -> None:
    pools("a", maxShare={"amounts": {"cpu": 2}})
    scheduler(profiles=[PROFILE]).wait_deciding()
    admin.create(pods("a", 3))
    wait("two are bound", lambda: held(admin, "a") == 2)

    def reasons() -> set[tuple[str, str]]:
        found = [each["status"].get("conditions", []) for each in admin.pods().values()]
        return {(each["reason"], each["message"]) for some in found for each in some if each.get("message")}

    wanted = "WaitingForQuota", "pool a holds 2000m of at most 2000m cpu"
    wait("the third says why", lambda: wanted in reasons())
    first = next(iter(admin.bound()))
    admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/{first}")
    wait("the third has its room", lambda: len(admin.pods()) == 2 and held(admin, "a") == 2)


def test_a_minimum_is_taken_back_from_the_pool_above_its_share_and_seen(
    admin: Admin,
    pools: Callable[..., None],
    scheduler: Callable[..., Scheduler],
    control_plane: ControlPlane,
) -> None:
    pools("a", minShare={"amounts": {"cpu": 2}}, preemption={"minShareSeconds": 2})
    pools("b")
    scheduler(profiles=[PROFILE]).wait_deciding()
    admin.create(pods("b", CORES))
    wait("b has the cluster", lambda: held(admin, "b") == CORES)
    admin.create(pods("a", 3))
    wait("a has its minimum", lambda: held(admin, "a") == 2)
    wait("two events", lambda: len(admin.events("Reclaimed")) == 2)
    for event in admin.events("Reclaimed"):
        assert event["note"].startswith("Pool a takes back its minimum on node n")
    wait("no more are evicted", lambda: len(admin.pods()) == CORES + 1)
    assert held(admin, "b") == CORES - 2

    def shown() -> str:
        program = "from eclectus.cli.main import main; main()"
        command = [sys.executable, "-c", program, "pools", "--kubeconfig", str(control_plane.kubeconfig)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    wait("it is written", lambda: "2 cpu   3 cpu   2 cpu" in shown())
