"""A backlog drained: how many pods a second, at what cost.

The backlog is there before the scheduler starts and nothing else is created meanwhile. The pace is
taken from the first bind to the last, so start-up counts for neither side. The CPU window is longer:
it ends when the Scheduled events are out, because whoever binds first and tells later has still to
pay for the telling.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eclectus_bench.load import Binds, Load
from eclectus_bench.schedulers import SchedulerUnderTest
from eclectus_bench.usage import Reading, cores_of_others, peak_mebibytes, read

Say = Callable[[str], None]
EVENTS_SETTLED_SECONDS = 2.0  # no new event for so long: the rest was dropped or never meant to come


@dataclass(frozen=True)
class Drain:
    """One drained backlog."""

    scheduler: str
    pair: int
    pods: int
    pods_per_second: float  # first bind to last
    told_per_second: float  # first bind to the last bind or event, whichever is later
    start_seconds: float  # process start to first bind
    scheduler_cpu_ms: float  # a pod, from the first bind until the events are out
    scheduler_cpu_ms_from_start: float  # a pod, with all that came before
    apiserver_cpu_ms: float  # a pod, in the same window as scheduler_cpu_ms
    etcd_cpu_ms: float
    peak_mib: float
    events_at_last_bind: int
    events: int
    strangers_cores: float  # used in that window by processes that are no part of this


async def drain(
    load: Load,
    contestant: SchedulerUnderTest,
    plane_pids: Mapping[str, int],
    pods: int,
    *,
    pair: int,
    say: Say,
) -> Drain:
    """Create a backlog, start the scheduler, wait until all is bound and told, take everything away."""
    namespace = f"drain-{pair}-{contestant.name}"

    def tell(text: str) -> None:
        say(f"drain {pair + 1}, {contestant.name}: {text}")

    async with load.namespace(namespace) as binds:
        tell(f"creating {pods} pods")
        names = [f"pod-{index:06}" for index in range(pods)]
        await load.create_pods(namespace, contestant.scheduler_name, names)
        began = time.monotonic()
        with contestant.running() as pid:
            pids = {"scheduler": pid, "bench": os.getpid(), **plane_pids}
            waiting = asyncio.create_task(binds.wait_for(pods, pid, tell))
            before = await _meters_at_first_bind(binds, waiting, pids)
            await waiting
            at_last_bind = await load.events(namespace)
            events, told_at = await _events_out(load, namespace, pods)
            after = read(pids)
            peak = peak_mebibytes(pid)
    first, last = min(binds.seen_at.values()), max(binds.seen_at.values())
    spent = {name: (after.cpu[name] - before.cpu[name]) / pods * 1000 for name in pids}
    return Drain(
        scheduler=contestant.name,
        pair=pair,
        pods=pods,
        pods_per_second=(pods - 1) / (last - first),
        told_per_second=(pods - 1) / (max(last, told_at) - first),
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


async def _meters_at_first_bind(
    binds: Binds, waiting: asyncio.Task[None], pids: Mapping[str, int]
) -> Reading:
    first = asyncio.create_task(binds.first.wait())
    await asyncio.wait([first, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not first.done():
        first.cancel()
        await waiting  # it has failed: nothing was bound at all
    return read(pids)


async def _events_out(load: Load, namespace: str, pods: int) -> tuple[int, float]:
    """Wait until each pod has its event, or no more come; how many there are, and since when."""
    count, since = await load.events(namespace), time.monotonic()
    while count < pods and time.monotonic() - since < EVENTS_SETTLED_SECONDS:
        await asyncio.sleep(0.1)
        if (now := await load.events(namespace)) > count:
            count, since = now, time.monotonic()
    return count, since
