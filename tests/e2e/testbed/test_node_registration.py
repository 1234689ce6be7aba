"""What the fake kubelet writes to Node objects when others change them."""

import asyncio
from typing import Any

import msgspec

from eclectus_e2e.testbed.kubelet.api import Api, Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.node_registration import NodeRegistration
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.objects import Node


class RecordingApi(Api):
    """An API server that records writes and accepts them."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Any]] = []

    async def request(self, method: str, path: str, body: Any = None, kind: str = "") -> bytes:
        self.written.append((f"{method} {path}", body))
        return b""


def written_after(state: NodeState, capacity: dict[str, str], allocatable: dict[str, str]) -> list[Any]:
    """What is written for node `a` in this state when its status is seen."""
    machine, api = Machine(NodeSpec(name="a", group="one", speed=1.0), 1, state), RecordingApi()
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": capacity, "allocatable": allocatable, "conditions": ready}
    node = msgspec.convert({"metadata": {"name": "a", "uid": "u"}, "status": status}, Node)

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            NodeRegistration(api, {"a": machine}, group.create_task).apply(Change("written", [node]))

    asyncio.run(story())
    return api.written


def test_an_extended_resource_that_was_added_to_capacity_becomes_allocatable() -> None:
    capacity = {"cpu": "4", "hugepages-2Mi": "0", "example.com/foo": "5"}
    assert written_after(NodeState.UP, capacity, {"cpu": "4"}) == [
        ("PATCH /api/v1/nodes/a/status", {"status": {"allocatable": {"example.com/foo": "5"}}})
    ]
    assert written_after(NodeState.FROZEN, capacity, {"cpu": "4"}) == []


def test_what_is_listed_as_allocatable_stays_as_others_set_it() -> None:
    assert written_after(NodeState.UP, {"example.com/foo": "5"}, {"example.com/foo": "3"}) == []
    assert written_after(NodeState.UP, {}, {"example.com/foo": "3"}) == []
