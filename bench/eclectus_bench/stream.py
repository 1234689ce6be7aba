"""An open stream at half load: how long from a pod's creation to its bind."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eclectus_bench.drain import Say
from eclectus_bench.load import Load
from eclectus_bench.schedulers import SchedulerUnderTest
from eclectus_bench.usage import cores_of_others, read

WARM_PODS = 50  # bound before the stream: whoever has just started is still compiling, caching, connecting


@dataclass(frozen=True)
class Stream:
    """One stream. Seconds from the sending of the POST to the sight of the bind."""

    scheduler: str
    pair: int
    pods: int
    pods_per_second: float  # as sent
    p50_seconds: float
    p99_seconds: float
    strangers_cores: float  # used while it ran by processes that are no part of this


async def stream(
    load: Load,
    contestant: SchedulerUnderTest,
    plane_pids: Mapping[str, int],
    rate: float,
    seconds: float,
    *,
    pair: int,
    say: Say,
) -> Stream:
    """Start the scheduler, warm it up, send the stream, wait until all is bound, take everything away.

    Both schedulers of a pair are sent the same stream: the pair is its seed.
    """
    namespace = f"stream-{pair}-{contestant.name}"

    def tell(text: str) -> None:
        say(f"stream {pair + 1}, {contestant.name}: {text}")

    async with load.namespace(namespace) as binds:
        with contestant.running() as pid:
            warm = [f"warm-{index:03}" for index in range(WARM_PODS)]
            await load.create_pods(namespace, contestant.scheduler_name, warm)
            await binds.wait_for(WARM_PODS, pid, tell)
            tell(f"{rate:.0f} pods/s for {seconds:.0f} s")
            pids = {"scheduler": pid, "bench": os.getpid(), **plane_pids}
            before = read(pids)
            sent_at = await load.stream(namespace, contestant.scheduler_name, rate, seconds, pair)
            spent = read(pids).at - before.at
            await binds.wait_for(WARM_PODS + len(sent_at), pid, tell)
            after = read(pids)
    waits = [binds.seen_at[name] - sent for name, sent in sent_at.items()]
    p50, p99 = np.percentile(waits, [50, 99])
    return Stream(
        scheduler=contestant.name,
        pair=pair,
        pods=len(waits),
        pods_per_second=len(waits) / spent,
        p50_seconds=float(p50),
        p99_seconds=float(p99),
        strangers_cores=cores_of_others(before, after),
    )
