"""Many thousand pods that wait: the operator reads them page by page, only where it has to, and goes on."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from eclectus.api.common import time_text
from eclectus.kubeclient.client import PAGE_ITEMS
from eclectus_operator import room
from eclectus_operator.observed import ALL_PODS_PATH
from fake_api import NODES, PROBES, FakeApi, Object
from probe_world import ProbeWorld, node, node_probe, real, running_pod

NOWHERE = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."


class Backlog(FakeApi):
    """An API server with many unbound pods, which exist only while their page is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.pages, self.pod = 0, 0, real("waiting", "2")
        self.size = 40  # entries of a pod's environment
        self.others: list[Object] = []  # the first of them, which differ from `pod`

    async def send(
        self, method: str, path: str, body: Any = None, query: Any = None, **options: Any
    ) -> Object:
        """One request."""
        unbound = room.UNBOUND_REAL_PODS["fieldSelector"]
        if path != ALL_PODS_PATH or query["fieldSelector"] != unbound or not self.count:
            return await super().send(method, path, body, query, **options)
        self.pages += 1
        end = min(int(query.get("continue", 0)) + PAGE_ITEMS, self.count)
        items = [self._copied(number) for number in range(int(query.get("continue", 0)), end)]
        return {"metadata": {"continue": str(end)} if end < self.count else {}, "items": items}

    def _copied(self, number: int) -> Object:
        environment = [{"name": f"E{each}", "value": f"{number}-{each}"} for each in range(self.size)]
        pod = self.others[number] if number < len(self.others) else self.pod
        return {**pod, "spec": {**pod["spec"], "env": environment}}


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


MANY = 20_000
PAGES_BYTES = 6 * 2**20  # two decoded pages of the pods below are 2 MiB; all of them would be 40 MiB


def beside_pods_that_get_no_room() -> ProbeWorld:
    """Three nodes of four cores, and pods of all kinds that wait although no probe takes room from them."""
    world = ProbeWorld(nodes=3)
    nodes = {path: each for path, each in world.api.objects.items() if path.startswith(NODES)}
    world.api = Backlog()
    world.api.objects |= nodes
    world.start()
    mistyped = real("mistyped", "1", is_reported=False, schedulerName="eclectus-typo")
    old = time_text(world.api.now - room.UNREPORTED_SECONDS)
    mistyped["metadata"]["creationTimestamp"] = old
    elsewhere = real("waiting", "1")
    elsewhere["status"]["conditions"][0]["message"] = NOWHERE
    world.api.others, world.api.pod, world.api.count = [mistyped, real("impossible", "1000")], elsewhere, MANY
    world.api.size = 8
    world.api.put(PROBES, node_probe(limits={"running": 1}))
    return world


@pytest.mark.long
def test_probes_go_on_beside_twenty_thousand_that_get_no_room_and_memory_is_that_of_two_pages():
    world, peaks = beside_pods_that_get_no_room(), list[int]()

    def note_peak() -> None:
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()

    tracemalloc.start()
    try:
        while world.status().get("succeeded", 0) < 2:
            assert world.api.now < 1_000_300.0, world.status()
            world.play(5.0, each=note_peak)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    runs = world.status()["nextNumber"]
    assert runs * MANY / PAGE_ITEMS <= world.api.pages, "all pods were read before each run"
    assert max(peaks) < PAGES_BYTES
    assert kept < 2 * 2**20, "nothing of the pods is kept between two syncs"


def requests_by_sync(waiting_pods: int) -> list[tuple[int, int]]:
    """Of each of twelve syncs: pages of pods that wait, and other requests."""
    world, found = beside_pods_that_get_no_room(), list[tuple[int, int]]()
    world.api.count, world.api.size = waiting_pods, 0
    for _ in range(12):
        pages, others = world.api.pages, len(world.api.calls)
        world.play(5.0)
        found.append((world.api.pages - pages, len(world.api.calls) - others))
    assert world.status()["nextNumber"] > 0
    return found


@pytest.mark.long
def test_a_sync_beside_twenty_thousand_makes_the_requests_of_one_beside_two_and_their_pages_twice_at_most():
    """Once for the probes that run, and once for a run that is due."""
    few, many = requests_by_sync(2), requests_by_sync(MANY)
    assert [others for _, others in many] == [others for _, others in few]
    assert {pages for pages, _ in few} <= {0, 1, 2}
    assert [pages for pages, _ in many] == [pages * MANY // PAGE_ITEMS for pages, _ in few]


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
