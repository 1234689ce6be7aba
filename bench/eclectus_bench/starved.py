"""Response times while other processes take the CPU away, of both schedulers, run by run in turn.

All runs on one core: the control plane, the nodes, the load and the scheduler share it with loops that
compute all the time. Each loop is in a session of its own, since Linux gives every session an equal share,
whatever the number of its processes. The pods are those of the demo at load 0.9.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import fmean

import msgspec
import uvloop

from eclectus_bench.api_writes import writes
from eclectus_bench.match import OUTPUT
from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER, SCHEDULERS
from eclectus_e2e.demo.stream.plan import NODES_PER_GROUP
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX, Arrival, capacity, poisson_arrivals
from eclectus_e2e.demo.workload.load import SentPods, delete_succeeded, send, start_over
from eclectus_e2e.demo.workload.mixed import SPEEDS
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.pairs import alternating, ratio_interval, verdict
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes

LOAD, WORK_SCALE = 0.9, 2.0  # 11 pods a second, of twice the demo's work: one core bears that
COUNTED_SECONDS = 10.0  # after the last arrival: pods that have ended by then count in the throughput
DRAIN_SECONDS = 120.0  # after the last arrival; pods that have not ended then are lost
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases/{chart.RELEASE}"
ENDED = ("finished", "killed", "vanished", "overcommitted", "violations")  # counters of nodes
_LOOP = "import os\ncaller = os.getppid()\nwhile os.getppid() == caller: pass"
NAMES = (KUBE_SCHEDULER, ECLECTUS)


@dataclass(frozen=True)
class Sizes:
    """What is run: for each number of loops so many pairs of streams."""

    loops: Sequence[int]
    pairs: int
    seconds: float  # of a stream


@dataclass(frozen=True)
class Run:
    """One stream to one scheduler."""

    scheduler: str
    loops: int
    pair: int
    mean_seconds: float  # from creation to the end; of pods that have not ended, until the run was over
    pods_per_second: float  # that have ended COUNTED_SECONDS after the last arrival
    writes: float  # a pod, those of the nodes and of the load included
    lost: int  # pods that have not ended
    leaders: int  # how often the Lease changed hands; 0 for kube-scheduler, which is run without one


# Title: field of Run, and whether more is better.
FIGURES = {
    "mean response, s": ("mean_seconds", False),
    "pods/s": ("pods_per_second", True),
    "writes a pod": ("writes", False),
}


def measure(sizes: Sizes) -> Iterator[Run]:
    """Run everything; yields each run as soon as it is over. This process is back on its cores afterwards."""
    nodes = default_nodes(DEFAULT_SEED, dict.fromkeys(SPEEDS, NODES_PER_GROUP))
    mix = DEFAULT_MIX.scaled(WORK_SCALE)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress("starved"))
        stack.enter_context(_on_one_core())
        environment = stack.enter_context(started(OUTPUT / "cluster", nodes))
        for loops in sizes.loops:
            for pair, name in alternating(NAMES, sizes.pairs):
                progress.update(f"{loops} loops, pair {pair + 1} of {sizes.pairs}, {name}")
                arrivals = poisson_arrivals(pair + 1, LOAD * capacity(nodes, mix), sizes.seconds, mix)
                yield _run(environment, arrivals, name, loops, pair)


def lines(runs: Sequence[Run]) -> list[str]:
    """A table for each number of loops: means over the pairs, and ratios within pairs with an interval."""
    found = []
    for loops in dict.fromkeys(run.loops for run in runs):
        of_both = [[run for run in runs if (run.loops, run.scheduler) == (loops, name)] for name in NAMES]
        theirs, ours = (sorted(each, key=lambda run: run.pair) for each in of_both)
        found.append(
            f"{loops} loops, {len(ours)} pairs: kube-scheduler, eclectus, ratio with its 95 % interval"
        )
        for title, (field, more_is_better) in FIGURES.items():
            pairs = [
                (getattr(one, field), getattr(other, field)) for one, other in zip(theirs, ours, strict=True)
            ]
            ratio = ratio_interval([other / one for one, other in pairs if one])
            judged = verdict(ratio, more_is_better=more_is_better)
            means = "  ".join(f"{fmean(each):8.2f}" for each in zip(*pairs, strict=True))
            found.append(f"  {title:<18} {means}  {ratio.text()}: {judged}")
        for title, field in (("pods lost", "lost"), ("times that the Lease changed hands", "leaders")):
            sums = (sum(getattr(run, field) for run in each) for each in (theirs, ours))
            found.append("  {}: {}, {}".format(title, *sums))
    return found


@contextmanager
def _on_one_core() -> Iterator[None]:
    """This process and all that it starts run on one of its cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def _loops(count: int) -> Iterator[list[int]]:
    """The ids of so many processes that compute; they end with this one, whatever ends it."""
    running = [subprocess.Popen([sys.executable, "-c", _LOOP], start_new_session=True) for _ in range(count)]
    try:
        yield [each.pid for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()


def _run(environment: Environment, arrivals: Sequence[Arrival], name: str, loops: int, pair: int) -> Run:
    environment.kubelet.reset()
    with schedulers.running(environment, name), _loops(loops):
        sent, writes, leaders = uvloop.run(_stream(environment, arrivals, name))
    over = time.time()
    ends = {
        each.name: each.finished for each in environment.kubelet.pod_times() if each.namespace == NAMESPACE
    }
    uvloop.run(_reset(environment))
    seconds = arrivals[-1].at_seconds + COUNTED_SECONDS
    return Run(
        scheduler=name,
        loops=loops,
        pair=pair,
        mean_seconds=fmean(ends.get(pod, over) - at for pod, at in sent.at.items()),
        pods_per_second=sum(end <= sent.began + seconds for end in ends.values()) / seconds,
        writes=writes / len(arrivals),
        lost=len(arrivals) - len(ends),
        leaders=leaders,
    )


async def _stream(
    environment: Environment, arrivals: Sequence[Arrival], name: str
) -> tuple[SentPods, int, int]:
    """Send every pod and wait until all have ended; with the writes, and takeovers of the Lease."""
    sent = SentPods(len(arrivals), time.time() + 1.0)
    async with environment.api() as api, asyncio.TaskGroup() as group:
        before = await _written(api), await _transitions(api, name)
        deleting = group.create_task(delete_succeeded(api))
        creating = group.create_task(send(api, arrivals, SCHEDULERS[name].scheduler_name, sent))
        await _all_ended(environment, len(arrivals), sent.began + arrivals[-1].at_seconds + DRAIN_SECONDS)
        await creating
        deleting.cancel()
        return sent, await _written(api) - before[0], await _transitions(api, name) - before[1]


async def _all_ended(environment: Environment, pods: int, deadline: float) -> None:
    """Wait until all pods have ended, or for the deadline, in Unix seconds."""
    while time.time() < deadline:
        counters = (await asyncio.to_thread(environment.kubelet.state))["counters"]
        if sum(counters[each] for each in ENDED) >= pods:
            return
        await asyncio.sleep(1.0)


async def _written(api: Api) -> int:
    """How many writes the API server has answered, those of Leases aside."""
    return written((await api.request("GET", "/metrics")).decode())


def written(metrics: str) -> int:
    """The writes in an API server's metrics, those of Leases aside."""
    return writes(metrics).total()


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    lease_transitions: int = 0


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec


async def _transitions(api: Api, name: str) -> int:
    """How often the Lease of Eclectus was taken over; kube-scheduler is run without one."""
    if name != ECLECTUS:
        return 0
    return msgspec.json.decode(await api.request("GET", LEASE), type=_Lease).spec.lease_transitions


async def _reset(environment: Environment) -> None:
    async with environment.api() as api:
        await start_over(api)
