"""The requests by which a cluster becomes another one."""

import asyncio
import json
from typing import Any

import pytest

from eclectus_e2e.differential.cluster import ClusterObjects
from eclectus_e2e.errors import ApiError

NODE, POD = "/api/v1/nodes/n", "/api/v1/namespaces/lab/pods/p"
CLAIM = "/api/v1/namespaces/lab/persistentvolumeclaims/c"


def thing(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **fields}, "spec": {}}


class FakeApi:
    """Records requests; `failing`: path -> status of a failure."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.failing: dict[str, int] = {}
        self.listed: list[str] = []  # names of the pods in the namespace lab

    async def request(self, method: str, path: str, body: Any = None, kind: str = "") -> bytes:
        self.sent.append(f"{method} {path}")
        if f"{method} {path}" in self.failing:
            raise ApiError(path, self.failing[f"{method} {path}"], "", "")
        items = [{"metadata": {"name": name, "namespace": "lab"}} for name in self.listed]
        return json.dumps({"items": items}).encode()

    def taken(self) -> list[str]:
        sent, self.sent = self.sent, []
        return sent


def test_only_what_differs_is_written_nodes_before_pods_and_pods_deleted_first() -> None:
    api = FakeApi()
    cluster = ClusterObjects(api)  # type: ignore[arg-type]

    def become(**wanted: dict[str, Any]) -> list[str]:
        paths = {"node": NODE, "pod": POD, "claim": CLAIM}
        asyncio.run(cluster.become({paths[name]: each for name, each in wanted.items()}))
        return api.taken()

    assert become(pod=thing("p"), node=thing("n")) == [
        "POST /api/v1/nodes",
        "POST /api/v1/namespaces/lab/pods",
    ]
    assert become(pod=thing("p"), node=thing("n")) == []
    assert become(pod=thing("p"), node=thing("n", labels={})) == [f"PUT {NODE}", f"PUT {NODE}/status"]
    assert become(pod=thing("p", labels={}), node=thing("n", labels={})) == [
        f"DELETE {POD}",
        "POST /api/v1/namespaces/lab/pods",
    ]
    claims = CLAIM.rpartition("/")[0]
    deleting = thing("c", deletionTimestamp="2026-01-01T00:00:00Z")
    assert become(claim=deleting) == [f"DELETE {POD}", f"DELETE {NODE}", f"POST {claims}", f"DELETE {CLAIM}"]
    api.failing[f"DELETE {CLAIM}"] = 404  # it was gone with its finalizers
    assert become() == [f"PATCH {CLAIM}", f"DELETE {CLAIM}"]


def test_what_the_api_server_refuses_is_not_there() -> None:
    api = FakeApi()
    cluster = ClusterObjects(api)  # type: ignore[arg-type]
    api.failing["POST /api/v1/nodes"] = 422
    for _ in range(2):
        with pytest.raises(ApiError, match="422"):
            asyncio.run(cluster.become({NODE: thing("n")}))
    assert api.taken() == ["POST /api/v1/nodes"] * 2


def test_what_was_evicted_is_there_again_and_the_budgets_are_written() -> None:
    api = FakeApi()
    cluster = ClusterObjects(api)  # type: ignore[arg-type]
    pods, budget = POD.rpartition("/")[0], "/apis/policy/v1/namespaces/lab/poddisruptionbudgets/b"
    running = thing("p") | {"status": {"phase": "Running"}}

    async def evict_and_restore() -> None:
        await cluster.become({POD: running, f"{pods}/q": thing("q"), budget: thing("b")})
        assert f"PATCH {POD}/status" in api.taken()
        api.listed = ["p", "q", "asked-1"]
        assert await cluster.restored() == frozenset()
        assert api.taken() == ["GET /api/v1/pods"]
        api.listed = ["q"]
        assert await cluster.restored() == {POD}

    asyncio.run(evict_and_restore())
    assert api.taken() == [
        "GET /api/v1/pods",
        f"POST {pods}",
        f"PATCH {POD}/status",
        f"PATCH {budget}/status",
    ]
