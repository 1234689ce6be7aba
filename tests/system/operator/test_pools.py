"""Pools on a real API server: what it refuses, which conditions they get, and what is measured of them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eclectus.api.names import POOL_LABEL, POOLS_PATH
from eclectus.kubeclient.api_errors import ApiError, RejectedError
from eclectus.kubeclient.client import MERGE_PATCH, connected
from eclectus.kubeclient.credentials import load
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import Admin, pod, wait
from pool_objects import new_pool

pytestmark = pytest.mark.live

VALUES = {"operator": {"enabled": True}}
NODES = [NodeSpec(name=f"n{at}", group="all", speed=1.0, labels={"model": "a100"}) for at in range(2)]
SCHEDULER: dict[str, Any] = {}


@pytest.fixture
def admin(plane: Any, installed: Any, kubelets: Any, scheduler: Any, namespace: str) -> Iterator[Admin]:
    kubelets.reset()
    with Admin(plane.kubeconfig, namespace) as admin:
        yield admin
        for each in admin.get(POOLS_PATH)["items"]:
            admin.send("DELETE", f"{POOLS_PATH}/{each['metadata']['name']}")


def create(admin: Admin, name: str, **spec: Any) -> Any:
    return admin.send("POST", POOLS_PATH, new_pool(name, **spec))


def change(admin: Admin, name: str, **spec: Any) -> None:
    admin.send("PATCH", f"{POOLS_PATH}/{name}", {"spec": spec}, content_type=MERGE_PATCH)


def status(admin: Admin, name: str) -> Any:
    return admin.get(f"{POOLS_PATH}/{name}").get("status", {})


def ready(admin: Admin, name: str) -> tuple[str, str]:
    """Reason and message of its condition; empty as long as it has none."""
    conditions = status(admin, name).get("conditions", [])
    return next(((each["reason"], each["message"]) for each in conditions), ("", ""))


def wait_measured(admin: Admin, *names: str) -> None:
    """Wait until the scheduler knows the Pools: pods that come before are in no pool."""
    wait("they are measured", lambda: all("waitingPods" in status(admin, name) for name in names))


def on(model: str, amounts: Any) -> Any:
    """Amounts on the nodes with this model of GPU."""
    return {"key": "nvidia.com/gpu.product", "value": model, "amounts": amounts}


DEFAULTS = {"weight": 1, "policy": "fair", "altruism": 1, "suspend": False}
AMOUNTS = {"amounts": {"cpu": "1500m", "nvidia.com/gpu": 2}}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("x" * 64, {}, "the name is a label value of pods and namespaces, so it may have at most 63 characters"),
    ("self", {"parent": "self"}, "a pool cannot be its own parent"),
    ("default", {"parent": "a"}, "the pools default and recovery are always at the top"),
    ("recovery", {"parent": "a"}, "the pools default and recovery are always at the top"),
    ("a", {"minShare": AMOUNTS, "maxShare": {"amounts": {"cpu": 1}}}, "minShare must not be above maxShare"),
    ("a", {"minShare": AMOUNTS, "maxShare": {"amounts": {"nvidia.com/gpu": "1"}}}, "must not be above"),
    ("a", {"minShare": {"percent": 2}, "maxShare": {"percent": 1}}, "minShare.percent must not be above"),
    ("a", {"maxShare": {"amounts": {"gpu": 1}}}, "a resource is cpu, memory, ephemeral-storage, pods"),
    ("a", {"maxShare": {"amounts": {"cpu": "-1"}}}, "should match"),
    ("a", {"maxShare": {"amounts": {"cpu": -1}}}, "should be greater than or equal to 0"),
    ("a", {"maxShare": {"amounts": {f"a.b/{at}": 1 for at in range(17)}}}, "must have at most 16"),
    (
        "a",
        {
            "minShare": {"byNode": [on("a100", {"cpu": "1500m"}), on("h100", {"pods": 2})]},
            "maxShare": {"byNode": [on("h100", {"pods": 1})]},
        },
        "minShare.byNode must not be above maxShare.byNode",
    ),
    (
        "a",
        {"maxShare": {"byNode": [on("a100", {"gpu": 1})]}},
        "a resource is cpu, memory, ephemeral-storage, pods",
    ),
    ("a", {"maxShare": {"byNode": [on("a100", {}), on("a100", {})]}}, "Duplicate value"),
    ("a", {"maxShare": {"byNode": [on(str(at), {}) for at in range(17)]}}, "must have at most 16"),
    ("a", {"maxShare": {"byNode": [{**on("", {}), "key": ""}]}}, "should be at least 1 chars long"),
    ("a", {"altruism": 1.5}, "spec.altruism"),
    ("a", {"weight": -1}, "spec.weight"),
    ("a", {"weight": 1e7}, "spec.weight"),
    ("a", {"policy": "lifo"}, 'supported values: "fair", "fifo", "sjf", "srtf"'),
    ("a", {"maxRunningJobs": 0}, "spec.maxRunningJobs"),
    ("a", {"minShare": {"percent": 101}}, "spec.minShare.percent"),
    ("a", {"preemption": {"fairShareThreshold": 0}}, "spec.preemption.fairShareThreshold"),
    ("a", {"preemption": {"minShareSeconds": -1}}, "spec.preemption.minShareSeconds"),
    ("a", {"namespaces": {"names": ["b", "b"]}}, "Duplicate value"),
    (
        "a",
        {"namespaces": {"selector": {"matchExpressions": [{"key": "k", "operator": "In"}]}}},
        "In and NotIn need values, Exists and DoesNotExist have none",
    ),
]


def test_a_pool_that_cannot_be_valid_by_itself_is_refused_with_the_reason(admin: Admin) -> None:
    for name, spec, message in REFUSED:
        with pytest.raises(ApiError) as raised:
            create(admin, name, **spec)
        assert message in str(raised.value), (name, spec)
    assert admin.get(POOLS_PATH)["items"] == []


def test_a_pool_with_everything_is_stored_as_written_and_has_defaults(admin: Admin) -> None:
    spec = {
        "parent": "lab",
        "weight": 0.5,
        "minShare": {**AMOUNTS, "percent": 10, "byNode": [on("a100", {"nvidia.com/gpu": 2, "cpu": "1500m"})]},
        "maxShare": {
            "amounts": {"cpu": 2, "memory": "64Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": 0},
            "byNode": [on("a100", {"nvidia.com/gpu": "2"}), on("", {"pods": 1})],
        },
        "policy": "srtf",
        "maxRunningJobs": 7,
        "altruism": 0.5,
        "namespaces": {
            "names": ["vision"],
            "selector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
        },
        "preemption": {
            "minShareSeconds": 60,
            "fairShareSeconds": 600,
            "fairShareThreshold": 0.5,
            "minRuntimeSeconds": 1.5,
            "allowFrom": False,
            "dryRun": True,
        },
        "suspend": True,
    }
    assert create(admin, "vision", **spec)["spec"] == spec
    assert create(admin, "lab")["spec"] == DEFAULTS
    nulls = create(admin, "nulls", parent=None, weight=None, minShare=None, maxRunningJobs=None)
    assert nulls["spec"] == DEFAULTS


def test_conditions_say_what_is_wrong_with_the_tree_and_follow_it(admin: Admin, operator: Any) -> None:
    running = operator().wait_leading()
    create(admin, "research", minShare={"amounts": {"cpu": 100}})
    create(admin, "vision", parent="research", minShare={"amounts": {"cpu": 70}})
    create(admin, "speech", parent="research", minShare={"amounts": {"cpu": "50000m"}})
    create(admin, "lost", parent="nowhere")
    create(admin, "one", parent="two")
    create(admin, "two", parent="one")
    expected = {
        "research": "Accepted",
        "vision": "MinimaExceedParent",
        "speech": "MinimaExceedParent",
        "lost": "NoSuchParent",
        "one": "Cycle",
        "two": "Cycle",
    }
    wait("all have it", lambda: {name: ready(admin, name)[0] for name in expected} == expected)
    text = "the minima of the children of research add up to 120 cpu, research has a minimum of 100 cpu"
    assert ready(admin, "vision")[1] == text
    change(admin, "speech", minShare={"amounts": {"cpu": 30}})
    change(admin, "two", parent=None)
    create(admin, "nowhere")
    wait("all is well", lambda: {ready(admin, name)[0] for name in expected} == {"Accepted"})
    assert running.stop() == 0


def test_what_a_pool_holds_and_lacks_is_written_beside_the_conditions(admin: Admin, operator: Any) -> None:
    operator().wait_leading()
    names = {"names": [admin.namespace]}
    create(admin, "small", namespaces=names, maxShare={"amounts": {"cpu": 1}})
    create(admin, "large", namespaces=names, minShare={"amounts": {"cpu": "100"}})
    labels = {at: {POOL_LABEL: name} for at, name in enumerate(("small", "small", "large"))}
    bodies = [pod(f"p{at}", cpu="1", work=600) for at in labels]
    for at, body in enumerate(bodies):
        body["metadata"]["labels"] = labels[at]
    wait("they are accepted", lambda: {ready(admin, name)[0] for name in ("small", "large")} == {"Accepted"})
    wait_measured(admin, "small", "large")
    admin.create(bodies)
    wait("it is measured", lambda: status(admin, "small").get("held", {}).get("cpu") == "1000m")
    wait("one waits", lambda: status(admin, "small").get("waitingPods") == 1)
    assert len(admin.bound()) == 2, "one more would be beyond the maximum"
    found = status(admin, "small")
    assert found["demand"]["cpu"] in ("1000m", "2000m")
    assert found["runningJobs"] == 1
    assert "belowMinShareSince" not in found
    wait("the other too", lambda: status(admin, "large").get("held", {}).get("cpu") == "1000m")
    assert ready(admin, "small")[0] == "Accepted", "what the operator has written stays"
    for name in admin.pods():
        admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/{name}")
    wait("what is held no longer is not shown", lambda: not status(admin, "small").get("held"))


class Writers:
    """Write to the status of a Pool as accounts that may, by RBAC."""

    def __init__(self, plane: Any, folder: Path) -> None:
        self._plane, self._folder = plane, folder

    def write(self, namespace: str, account: str, status: Any) -> str:
        """Why the API server refuses it; empty if it does not."""
        own = chart.service_account_kubeconfig(self._plane.kubeconfig, self._folder, namespace, account)

        async def written() -> str:
            async with connected(load(own), 30.0) as client:
                body, path = {"status": status}, f"{POOLS_PATH}/a/status"
                try:
                    await client.send("PATCH", path, body, content_type=MERGE_PATCH)
                except RejectedError as error:
                    return str(error)
                return ""

        return asyncio.run(written())


def account_with(admin: Admin, name: str, *rules: Any) -> None:
    """Make an account of another release: it may write the status of Pools, and what the rules say."""
    full = f"{admin.namespace}:{name}"
    rule = {"apiGroups": ["eclectus.dev"], "resources": ["pools/status"], "verbs": ["patch"]}
    rbac, core = "/apis/rbac.authorization.k8s.io/v1", f"/api/v1/namespaces/{admin.namespace}"
    admin.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": name}})
    admin.send("POST", f"{rbac}/clusterroles", {"metadata": {"name": full}, "rules": [rule, *rules]})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": admin.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": full}
    binding = {"metadata": {"name": full}, "roleRef": reference, "subjects": [subject]}
    admin.send("POST", f"{rbac}/clusterrolebindings", binding)


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Forged",
    "message": "",
    "lastTransitionTime": "2026-03-01T12:00:00Z",
}
FORGED = {"conditions": [CONDITION]}
BINDS = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
LEADS = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}
NOT_CONDITIONS = "only the operator writes the conditions of a Pool"
NOT_MEASURED = "only a scheduler writes what is measured of a Pool"


def test_conditions_are_the_operators_and_all_else_of_the_status_is_the_schedulers(
    admin: Admin, plane: Any, installed: Any, tmp_path: Path
) -> None:
    """Whatever RBAC permits, and whose release they are of; an admin is neither of the two."""
    create(admin, "a")
    wait_measured(admin, "a")
    account_with(admin, "scheduler-2", BINDS)
    account_with(admin, "operator-2", LEADS)
    account_with(admin, "admin", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    account_with(admin, "nobody")
    schedulers = [(installed.namespace, installed.service_account), (admin.namespace, "scheduler-2")]
    operators = [(installed.namespace, installed.operator_account), (admin.namespace, "operator-2")]
    others = [(admin.namespace, "admin"), (admin.namespace, "nobody")]
    write = Writers(plane, tmp_path).write
    wait("it is in force", lambda: NOT_CONDITIONS in write(*others[1], FORGED))
    for at, scheduler in enumerate(schedulers):
        since = f"2026-03-01T12:00:0{at}Z"
        assert NOT_CONDITIONS in write(*scheduler, FORGED)
        assert write(*scheduler, {"belowMinShareSince": since, "held": {"cpu": "7"}}) == ""
        assert status(admin, "a")["belowMinShareSince"] == since
    for at, operator in enumerate(operators):
        assert NOT_MEASURED in write(*operator, {"belowMinShareSince": None}), "it keeps what is there"
        assert NOT_MEASURED in write(*operator, {"belowFairShareSince": "2026-03-01T12:00:00Z"})
        assert write(*operator, {"conditions": [{**CONDITION, "reason": f"Release{at}"}]}) == ""
        assert ready(admin, "a")[0] == f"Release{at}"
    for other in others:
        assert NOT_CONDITIONS in write(*other, {"conditions": []})
        assert NOT_MEASURED in write(*other, {"held": {"cpu": "8"}})
        assert write(*other, {"held": {"cpu": "7"}}) == "", "it changes nothing"
    assert status(admin, "a")["held"] == {"cpu": "7"}


def test_a_limit_by_kind_of_node_holds_and_what_is_held_there_is_written(admin: Admin) -> None:
    """All nodes have the label, so the second pod has none left."""
    kind = {"key": "model", "value": "a100"}
    names = {"names": [admin.namespace]}
    create(admin, "kinds", namespaces=names, maxShare={"byNode": [{**kind, "amounts": {"cpu": 1}}]})
    wait_measured(admin, "kinds")
    bodies = [pod(f"p{at}", cpu="1", work=600) for at in range(2)]
    for body in bodies:
        body["metadata"]["labels"] = {POOL_LABEL: "kinds"}
    admin.create(bodies)
    held = [{**kind, "amounts": {"cpu": "1000m"}}]
    wait("it is measured", lambda: status(admin, "kinds").get("heldByNode") == held)

    def reasons() -> set[str]:
        conditions = (each["status"].get("conditions", []) for each in admin.pods().values())
        return {each.get("reason", "") for found in conditions for each in found}

    wait("the other says why it waits", lambda: "WaitingForQuota" in reasons())
    assert len(admin.bound()) == 1


def test_kubectl_shows_and_explains_what_matters(admin: Admin, plane: Any) -> None:
    def kubectl(*arguments: str) -> str:
        program = [str(plane.binaries / "kubectl"), "--kubeconfig", str(plane.kubeconfig), *arguments]
        return subprocess.run(program, check=True, capture_output=True, text=True).stdout

    create(admin, "research", minShare={"amounts": {"cpu": 4, "nvidia.com/gpu": "8"}}, parent="lab")
    head, row = kubectl("get", "epool").splitlines()
    assert " ".join(head.split()) == "NAME PARENT WEIGHT MIN SHARE HELD WAITING STARVED READY AGE"
    assert row.split()[:4] == ["research", "lab", "1", '{"cpu":4,"nvidia.com/gpu":"8"}']
    assert "What it gets first if it needs it" in " ".join(kubectl("explain", "pool.spec.minShare").split())
