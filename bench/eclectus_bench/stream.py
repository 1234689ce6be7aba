"""An open stream at half load: the time from a pod's creation to its bind."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eclectus_bench.drain import Say
from eclectus_bench.load import Load, pod
from eclectus_bench.schedulers import SchedulerUnderTest
from eclectus_e2e.usage import cores_of_others, read

WARM_PODS = 50  # bound before the stream, so that caches and connections of a new process are warm


@dataclass(frozen=True)
class Stream:
    """One stream. Seconds from sending the POST until the bench's watch shows the bind."""

    scheduler: str
    pair: int
    pods: int
    pods_per_second: float  # as sent
    p50_seconds: float
    p99_seconds: float
    strangers_cores: float  # that processes outside the bench used during the stream


async def stream(
    load: Load,
    scheduler: SchedulerUnderTest,
    plane_pids: Mapping[str, int],
    rate: float,
    seconds: float,
    *,
    pair: int,
    say: Say,
) -> Stream:
    """Start the scheduler, warm it up, send the stream, wait for all binds, delete everything.

    The pair is the seed of the stream, so both schedulers of a pair get the same one.
    """
    namespace = f"stream-{pair}-{scheduler.name}"

    def progress(text: str) -> None:
        say(f"stream {pair + 1}, {scheduler.name}: {text}")

    async with load.namespace(namespace) as binds:
        with scheduler.running() as pid:
            warm = [pod(f"warm-{index:03}", scheduler.scheduler_name) for index in range(WARM_PODS)]
            await load.create_pods(namespace, warm)
            await binds.wait_for(WARM_PODS, pid, progress)
            progress(f"{rate:.0f} pods/s for {seconds:.0f} s")
            pids = {"scheduler": pid, "bench": os.getpid(), **plane_pids}
            before = read(pids)
            sent_at = await load.stream(namespace, scheduler.scheduler_name, rate, seconds, pair)
            spent = read(pids).at - before.at
            await binds.wait_for(WARM_PODS + len(sent_at), pid, progress)
            after = read(pids)
    waits = [binds.seen_at[name] - sent for name, sent in sent_at.items()]
    p50, p99 = np.percentile(waits, [50, 99])
    return Stream(
        scheduler=scheduler.name,
        pair=pair,
        pods=len(waits),
        pods_per_second=len(waits) / spent,
        p50_seconds=float(p50),
        p99_seconds=float(p99),
        strangers_cores=cores_of_others(before, after),
    )
