"""A backlog is drained: pods a second, and CPU time a pod.

The backlog exists before the scheduler starts, unless it is to find the scheduler running and at rest.
Throughput is measured from the first bind to the last, so start-up does not count. CPU time is measured until
the Scheduled events are written, because a scheduler that binds first and writes its events later has to pay
for them too.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from eclectus_bench.load import Binds, Load, Object
from eclectus_bench.schedulers import SchedulerUnderTest
from eclectus_e2e.usage import Reading, cores_of_others, peak_mebibytes, read, spent_seconds

Say = Callable[[str], None]
UntilSettled = Callable[[int], Awaitable[None]]  # of the running scheduler's pid
EVENTS_SETTLED_SECONDS = 2.0  # without a new event for so long, no more are expected


@dataclass(frozen=True)
class Drain:
    """One drained backlog."""

    scheduler: str
    pair: int
    pods: int
    pods_per_second: float  # from the first bind to the last
    reported_per_second: float  # from the first bind to the last bind or event, whichever is later
    start_seconds: float  # from the start of the process to the first bind
    scheduler_cpu_ms: float  # a pod, from the first bind until the events are written
    scheduler_cpu_ms_from_start: float  # a pod, start-up included
    apiserver_cpu_ms: float  # a pod, in the same window as scheduler_cpu_ms
    etcd_cpu_ms: float
    peak_mib: float
    events_at_last_bind: int
    events: int
    strangers_cores: float  # that processes outside the bench used in that window


@dataclass(frozen=True)
class Backlog:
    """The pods of one run, and the namespace in which they are created.

    They are created before the scheduler starts. With `until_settled` they arrive while it runs instead:
    it is called with the scheduler's pid, and the pods are created when it returns.
    """

    namespace: str
    pods: Sequence[Object]
    until_settled: UntilSettled | None = None


async def drain(
    load: Load,
    scheduler: SchedulerUnderTest,
    plane_pids: Mapping[str, int],
    binds: Binds,
    backlog: Backlog,
    *,
    pair: int,
    say: Say,
) -> Drain:
    """Create the backlog, run the scheduler, wait for all binds (`binds` watches its namespace) and events.

    Throughput and CPU time of pods that arrive are measured from their creation instead of the first bind.
    """
    namespace, pods = backlog.namespace, len(backlog.pods)
    if backlog.until_settled is None:
        say(f"creating {pods} pods")
        await load.create_pods(namespace, backlog.pods)
    began = time.monotonic()
    with scheduler.running() as pid:
        pids = {"scheduler": pid, "bench": os.getpid(), **plane_pids}
        before, since, counted = await _until_bound(load, binds, backlog, pids, say)
        at_last_bind = await load.events(namespace)
        events, last_event_at = await wait_for_events(load, namespace, pods)
        after = read(pids)
        peak = peak_mebibytes(pid)
    say("all bound; its pods are deleted")
    last = max(binds.seen_at.values())
    spent = {name: spent_seconds(before, after, name) / pods * 1000 for name in pids}
    return Drain(
        scheduler=scheduler.name,
        pair=pair,
        pods=pods,
        pods_per_second=counted / (last - since),
        reported_per_second=counted / (max(last, last_event_at) - since),
        start_seconds=min(binds.seen_at.values()) - began,
        scheduler_cpu_ms=spent["scheduler"],
        scheduler_cpu_ms_from_start=after.cpu["scheduler"] / pods * 1000,
        apiserver_cpu_ms=spent["kube-apiserver"],
        etcd_cpu_ms=spent["etcd"],
        peak_mib=peak,
        events_at_last_bind=at_last_bind,
        events=events,
        strangers_cores=cores_of_others(before, after),
    )


async def _until_bound(
    load: Load, binds: Binds, backlog: Backlog, pids: Mapping[str, int], say: Say
) -> tuple[Reading, float, int]:
    """Wait for all binds; the CPU times at the start, and for throughput since when and how many count."""
    pods, pid = len(backlog.pods), pids["scheduler"]
    if backlog.until_settled is None:
        before = await _drained(binds, pods, pids, say)
        return before, min(binds.seen_at.values()), pods - 1
    await backlog.until_settled(pid)
    before = read(pids)
    say(f"creating {pods} pods")
    await load.create_pods(backlog.namespace, backlog.pods)
    await binds.wait_for(pods, pid, say)
    return before, before.at, pods


async def _drained(binds: Binds, pods: int, pids: Mapping[str, int], say: Say) -> Reading:
    """Wait until so many pods are bound; the CPU times at the first bind."""
    waiting = asyncio.create_task(binds.wait_for(pods, pids["scheduler"], say))
    first = asyncio.create_task(binds.first.wait())
    await asyncio.wait([first, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not first.done():
        first.cancel()
        await waiting  # raises: nothing was bound
    before = read(pids)
    await waiting
    return before


async def wait_for_events(load: Load, namespace: str, pods: int) -> tuple[int, float]:
    """Wait until each pod has its event, or no more come; their number, and when it last grew."""
    count, since = await load.events(namespace), time.monotonic()
    while count < pods and time.monotonic() - since < EVENTS_SETTLED_SECONDS:
        await asyncio.sleep(0.1)
        if (now := await load.events(namespace)) > count:
            count, since = now, time.monotonic()
    return count, since
