"""Ten thousand pods that wait: the operator reads them page by page, and only where it has to."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from eclectus.kubeclient.client import PAGE_ITEMS
from eclectus_operator.decide import waiting
from eclectus_operator.objects.observed import ALL_PODS_PATH
from fake_api import NODES, PROBES, FakeApi, Object
from probe_world import ProbeWorld, node, node_probe, real, running_pod

NOWHERE = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."


class Backlog(FakeApi):
    """An API server with many unbound pods, which exist only while their page is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.pages, self.pod = 0, 0, real("waiting", "2")

    async def send(
        self, method: str, path: str, body: Any = None, query: Any = None, **options: Any
    ) -> Object:
        """One request."""
        unbound = waiting.UNBOUND_REAL_PODS["fieldSelector"]
        if path != ALL_PODS_PATH or query["fieldSelector"] != unbound or not self.count:
            return await super().send(method, path, body, query, **options)
        self.pages += 1
        end = min(int(query.get("continue", 0)) + PAGE_ITEMS, self.count)
        items = [self._copied(number) for number in range(end - PAGE_ITEMS, end)]
        return {"metadata": {"continue": str(end)} if end < self.count else {}, "items": items}

    def _copied(self, number: int) -> Object:
        environment = [{"name": f"E{each}", "value": f"{number}-{each}"} for each in range(40)]
        return {**self.pod, "spec": {**self.pod["spec"], "env": environment}}


def probed(*, reserve_room: bool = False, **fields: Any) -> ProbeWorld:
    """A node of four cores on which a probe of one core runs, beside a real pod of two."""
    world = ProbeWorld(nodes=0)
    world.api = Backlog()
    world.start()
    there = node("n0")
    there["status"]["allocatable"] |= fields
    world.api.put(NODES, there)
    world.api.put("/api/v1/namespaces/default/pods", real("placed", "2", on="n0"))
    world.api.put(PROBES, node_probe(reserveRoom=reserve_room))
    running_pod(world)
    world.api.count = 10 * PAGE_ITEMS
    return world


def yields(world: ProbeWorld) -> bool:
    world.sync()
    (probe,) = world.api.pods().values()
    return "deletionTimestamp" in probe["metadata"]


def test_pods_that_wait_are_not_listed_for_a_probe_that_can_block_none():
    world = probed()
    assert not yields(world)
    assert world.api.pages == 0


@pytest.mark.parametrize(
    "world", [probed(reserve_room=True), probed(pods="2")], ids=["reserves", "last slot"]
)
def test_they_are_listed_no_further_than_to_one_that_is_blocked(world):
    assert yields(world)
    assert world.api.pages == 1


def test_all_are_listed_where_none_is_blocked():
    world = probed(reserve_room=True)
    world.api.pod = real("waiting", "3")
    assert not yields(world)
    assert world.api.pages == 10


def test_before_a_run_they_are_listed_no_further_than_to_one_that_waits_for_room():
    world = ProbeWorld(nodes=3)
    world.api = Backlog()
    world.start()
    world.api.put(NODES, node("n0"))
    world.api.count = 10 * PAGE_ITEMS
    world.api.put(PROBES, node_probe())
    while "conditions" not in str(world.status()) or world.api.pages == 0:
        world.sync()
        world.api.now += 1
    assert world.condition("Probing")["reason"] == "RealPodsWait"
    assert world.api.pages == 1


@pytest.mark.long
def test_memory_does_not_grow_with_the_pods_that_wait():
    def peak(count: int) -> int:
        world = probed(reserve_room=True)
        world.api.count, world.api.pod = count, real("waiting", "3")
        tracemalloc.start()
        try:
            world.sync()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(8 * PAGE_ITEMS) < 1.25 * peak(2 * PAGE_ITEMS), (
        "one page is read, the one before is still there"
    )
