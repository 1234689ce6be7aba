"""What is there besides the measured pods: pods on nodes, pods that cannot run, objects that come and go.

Each is a block: it is there inside, and deleted at the end. A block around one run gives how to wait in the
running scheduler before the measured pods arrive, or None if they are to wait before it starts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from eclectus_bench.drain import UntilSettled, wait_for_events
from eclectus_bench.load import DELETE_NOW, Load, Object, node, node_name, reach
from eclectus_bench.workloads import pods
from eclectus_bench.workloads.site import Run, Site

OF_NOBODY = "nobody"  # schedulerName of pods that are created on their nodes
CHURN_SECONDS = 0.1  # after which a node and a pod come, or go
CHURN_NODES_FROM = 90_000  # number of the first node that comes and goes: greater than any other
PRIORITY_CLASS, PRIORITY = "bench-urgent", 1000


# -- around all runs -------------------------------------------------------------------------------------


@asynccontextmanager
async def nothing_more(site: Site) -> AsyncIterator[None]:
    """Empty nodes."""
    yield


@asynccontextmanager
async def standing_pods(site: Site) -> AsyncIterator[None]:
    """Pods of the workload on nodes, one on each of the first ones."""
    count = site.sizes.standing_pods
    async with site.load.namespace(site.standing):
        site.say(f"creating {count} pods on nodes")
        await site.load.create_pods(site.standing, (_on_node(site, index) for index in range(count)))
        yield


def _on_node(site: Site, index: int) -> Object:
    found = site.pod_of(f"standing-{index:06}", OF_NOBODY, site.namespaces)
    found["spec"]["nodeName"] = node_name(index)
    return found


@asynccontextmanager
async def urgent_class(site: Site) -> AsyncIterator[None]:
    """The PriorityClass of the pods that come and go."""
    await site.load.create_priority_class(PRIORITY_CLASS, PRIORITY)
    try:
        yield
    finally:
        path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{PRIORITY_CLASS}"
        await site.load.send("DELETE", [(path, DELETE_NOW)])


# -- around one run --------------------------------------------------------------------------------------


@asynccontextmanager
async def no_others(run: Run) -> AsyncIterator[UntilSettled | None]:
    """The measured pods alone."""
    yield None


@asynccontextmanager
async def unschedulable_pods(run: Run) -> AsyncIterator[UntilSettled | None]:
    """Pods for which no node is large enough. Settled: each says that it was refused, in an event too."""
    load, namespace, count = run.site.load, f"{run.namespace}-waiting", run.site.sizes.waiting
    async with load.namespace(namespace):
        run.say(f"creating {count} pods for which no node is large enough")
        await load.create_pods(
            namespace, (pods.too_large(f"waiting-{at:06}", run.scheduler) for at in range(count))
        )

        async def until_refused(pid: int) -> None:
            refusals = Refusals()
            watch = asyncio.create_task(refusals.follow(load, namespace))
            try:
                await reach(count, lambda: len(refusals.names), "refused", pid, run.say)
                await wait_for_events(load, namespace, count)
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)

        yield until_refused


@asynccontextmanager
async def gated_pods(run: Run) -> AsyncIterator[UntilSettled | None]:
    """Pods whose scheduling gates are closed."""
    load, namespace, count = run.site.load, f"{run.namespace}-waiting", run.site.sizes.waiting
    async with load.namespace(namespace):
        run.say(f"creating {count} gated pods")
        await load.create_pods(
            namespace, (pods.gated(f"waiting-{at:06}", run.scheduler) for at in range(count))
        )
        yield None


@asynccontextmanager
async def churn(run: Run) -> AsyncIterator[UntilSettled | None]:
    """A node and a pod of high priority, too large for every node, come and go again and again."""
    load, namespace, stop = run.site.load, f"{run.namespace}-churn", asyncio.Event()
    async with load.namespace(namespace):
        task = asyncio.create_task(_come_and_go(load, namespace, run.scheduler, stop))
        try:
            yield None
        finally:
            stop.set()
            await task  # raises what was refused: then the cluster was at rest instead


async def _come_and_go(load: Load, namespace: str, scheduler: str, stop: asyncio.Event) -> None:
    number, pods_path = CHURN_NODES_FROM, f"/api/v1/namespaces/{namespace}/pods"
    while not stop.is_set():
        number += 1
        large = pods.too_large(f"pod-{number}", scheduler, priorityClassName=PRIORITY_CLASS)
        await load.send("POST", [("/api/v1/nodes", node(number)), (pods_path, large)])
        await _pause(stop)
        paths = (f"/api/v1/nodes/{node_name(number)}", f"{pods_path}/pod-{number}")
        await load.send("DELETE", [(path, DELETE_NOW) for path in paths])
        await _pause(stop)


async def _pause(stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), CHURN_SECONDS)


# -- refusals --------------------------------------------------------------------------------------------


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Name(msgspec.Struct, frozen=True):
    name: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Name
    status: _Status


class Refusals:
    """The names of the pods of a namespace that say that they cannot be scheduled."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def follow(self, load: Load, namespace: str) -> None:
        """Watch until cancelled."""
        async for change in load.api.changes(f"/api/v1/namespaces/{namespace}/pods", _Pod):
            if change.kind != "deleted":
                self.names.update(each.metadata.name for each in change.items if _is_refused(each))


def _is_refused(pod: _Pod) -> bool:
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
