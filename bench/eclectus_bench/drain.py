"""A backlog is drained: pods a second, and CPU time a pod.

The backlog exists before the scheduler starts, and nothing else is created meanwhile. Throughput is measured
from the first bind to the last, so start-up does not count. CPU time is measured until the Scheduled events
are written, because a scheduler that binds first and writes its events later has to pay for them too.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eclectus_bench.load import Binds, Load, pod
from eclectus_bench.schedulers import SchedulerUnderTest
from eclectus_bench.usage import Reading, cores_of_others, peak_mebibytes, read

Say = Callable[[str], None]
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


async def drain(
    load: Load,
    scheduler: SchedulerUnderTest,
    plane_pids: Mapping[str, int],
    pods: int,
    *,
    pair: int,
    say: Say,
) -> Drain:
    """Create a backlog, start the scheduler, wait for all binds and events, delete everything."""
    namespace = f"drain-{pair}-{scheduler.name}"

    def progress(text: str) -> None:
        say(f"drain {pair + 1}, {scheduler.name}: {text}")

    async with load.namespace(namespace) as binds:
        progress(f"creating {pods} pods")
        backlog = (pod(f"pod-{index:06}", scheduler.scheduler_name) for index in range(pods))
        await load.create_pods(namespace, backlog)
        began = time.monotonic()
        with scheduler.running() as pid:
            pids = {"scheduler": pid, "bench": os.getpid(), **plane_pids}
            waiting = asyncio.create_task(binds.wait_for(pods, pid, progress))
            before = await _usage_at_first_bind(binds, waiting, pids)
            await waiting
            at_last_bind = await load.events(namespace)
            events, last_event_at = await _wait_for_events(load, namespace, pods)
            after = read(pids)
            peak = peak_mebibytes(pid)
    first, last = min(binds.seen_at.values()), max(binds.seen_at.values())
    spent = {name: (after.cpu[name] - before.cpu[name]) / pods * 1000 for name in pids}
    return Drain(
        scheduler=scheduler.name,
        pair=pair,
        pods=pods,
        pods_per_second=(pods - 1) / (last - first),
        reported_per_second=(pods - 1) / (max(last, last_event_at) - first),
        start_seconds=first - began,
        scheduler_cpu_ms=spent["scheduler"],
        scheduler_cpu_ms_from_start=after.cpu["scheduler"] / pods * 1000,
        apiserver_cpu_ms=spent["kube-apiserver"],
        etcd_cpu_ms=spent["etcd"],
        peak_mib=peak,
        events_at_last_bind=at_last_bind,
        events=events,
        strangers_cores=cores_of_others(before, after),
    )


async def _usage_at_first_bind(binds: Binds, waiting: asyncio.Task[None], pids: Mapping[str, int]) -> Reading:
    first = asyncio.create_task(binds.first.wait())
    await asyncio.wait([first, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not first.done():
        first.cancel()
        await waiting  # raises: nothing was bound
    return read(pids)


async def _wait_for_events(load: Load, namespace: str, pods: int) -> tuple[int, float]:
    """Wait until each pod has its event, or no more come; their number, and when it last grew."""
    count, since = await load.events(namespace), time.monotonic()
    while count < pods and time.monotonic() - since < EVENTS_SETTLED_SECONDS:
        await asyncio.sleep(0.1)
        if (now := await load.events(namespace)) > count:
            count, since = now, time.monotonic()
    return count, since
