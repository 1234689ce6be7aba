"""What questions cost those who wait: how long pods of a stream take to a node beside 200 questions a second.

Each stream is sent three times to the same scheduler: alone; beside as many reads that the API server answers
by itself; and beside questions that it passes on to the scheduler, of which most are refused, because their
number is bounded. The second shows what API server and machine pay, the third what the scheduler does.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean

import numpy as np
import uvloop

from eclectus.api.names import PENDING_PODS, VISIBILITY_API
from eclectus.live.visibility import own_address
from eclectus_bench.load import Load, pod
from eclectus_bench.match import bench_plane, with_nodes
from eclectus_bench.schedulers import SchedulerUnderTest, eclectus
from eclectus_e2e.errors import ApiError, StartError
from eclectus_e2e.pairs import alternating, ratio_interval
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubelet.api import TRANSIENT, Api
from eclectus_e2e.usage import read, spent_seconds

ALONE, READS, QUESTIONS = KINDS = ("alone", "beside other reads", "beside questions")
RATE = 200.0  # a second
WAITING = 20  # pods that are asked about: no node has room for them
NAMESPACE = "asked"
MOST = 1.05  # p99 beside questions over p99 alone
WARM_SECONDS = 3.0  # of a stream that does not count
AVAILABLE_SECONDS = 120.0  # until the API server passes the first question on
TOO_MANY = 429
OUTCOMES = ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"  # refused: with 429


@dataclass(frozen=True)
class Sizes:
    """What is run: `pairs` streams of each kind."""

    nodes: int
    pairs: int
    pods_per_second: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """One stream: seconds from sending the POST of a pod until the bench's watch shows the bind."""

    kind: str
    pair: int
    p50_seconds: float
    p99_seconds: float
    cores: float  # that the scheduler used
    outcomes: dict[str, int]  # of what was asked meanwhile


def measure(sizes: Sizes) -> list[Run]:
    """Run everything on a control plane of its own."""
    with bench_plane() as plane, Progress("questions") as progress:
        return uvloop.run(_measure(sizes, plane, progress))


def lines(runs: Sequence[Run]) -> Iterator[str]:
    """Means over the pairs; ratios of 99th percentiles within pairs, with 95 % intervals."""
    of_kind = {kind: sorted((r for r in runs if r.kind == kind), key=lambda r: r.pair) for kind in KINDS}
    for kind, some in of_kind.items():
        cores = fmean(run.cores for run in some)
        p50, p99 = (
            1000 * fmean(getattr(run, field) for run in some) for field in ("p50_seconds", "p99_seconds")
        )
        asked = ", ".join(f"{sum(run.outcomes[what] for run in some)} {what}" for what in OUTCOMES)
        yield f"  {kind:<20} p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, scheduler {cores:.3f} cores; {asked}"
    for other in (ALONE, READS):
        pairs = zip(of_kind[QUESTIONS], of_kind[other], strict=True)
        ratio = ratio_interval([mine.p99_seconds / theirs.p99_seconds for mine, theirs in pairs])
        yield f"  p99 {QUESTIONS} over {other}: {ratio.text()}; wanted: at most {MOST:g}"


def paths(kind: str) -> list[str]:
    """What is asked for in turn."""
    names = [f"waits-{at:02}" for at in range(WAITING)]
    if kind == READS:
        return [f"/api/v1/namespaces/{NAMESPACE}/pods/{name}" for name in names]
    api, found = f"/apis/{VISIBILITY_API}", list[str]()
    for name in names if kind == QUESTIONS else ():
        of_pod = f"{api}/namespaces/{NAMESPACE}/pods/{name}"
        found += [f"{of_pod}/explanation", f"{of_pod}/what-if?whatIf=request.cpu%3D1"]
        found += [f"{api}/namespaces/{NAMESPACE}/{PENDING_PODS}", f"{api}/nodespeeds"]
    return found


async def ask(api: Api, asked_for: Sequence[str], outcomes: Counter[str], rate: float = RATE) -> None:
    """Ask again and again, so many times a second whatever is answered, until cancelled."""
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number, path in enumerate(cycle(asked_for)):
            await asyncio.sleep(began + number / rate - time.monotonic())
            group.create_task(_ask(api, path, outcomes))


async def _ask(api: Api, path: str, outcomes: Counter[str]) -> None:
    try:
        await api.request("GET", path)
    except ApiError as error:
        outcomes[REFUSED if error.status == TOO_MANY else FAILED] += 1
    except TRANSIENT:
        outcomes[FAILED] += 1
    else:
        outcomes[ANSWERED] += 1


@dataclass(frozen=True)
class Site:
    """A running scheduler, and what creates its load."""

    load: Load
    scheduler: SchedulerUnderTest
    pid: int
    pods_per_second: float

    async def run(self, kind: str, pair: int, seconds: float) -> Run:
        """Send one stream. The pair is its seed."""
        namespace, outcomes = f"stream-{pair}-{kind.replace(' ', '-')}", Counter[str]()
        async with self.load.namespace(namespace) as binds:
            asking = asyncio.create_task(ask(self.load.api, paths(kind), outcomes))
            try:
                name, before = self.scheduler.scheduler_name, read({"scheduler": self.pid})
                sent_at = await self.load.stream(namespace, name, self.pods_per_second, seconds, pair)
                await binds.wait_for(len(sent_at), self.pid, lambda _: None)
                after = read({"scheduler": self.pid})
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        waits = [binds.seen_at[name] - sent for name, sent in sent_at.items()]
        p50, p99 = np.percentile(waits, [50, 99])
        cores = spent_seconds(before, after, "scheduler") / (after.at - before.at)
        return Run(kind, pair, float(p50), float(p99), cores, {what: outcomes[what] for what in OUTCOMES})


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress) -> list[Run]:
    (port,) = free_ports(1)
    config = {"visibility": {"port": port, "advertiseAddress": _address()}}
    scheduler = eclectus(plane, config=config, values={"visibility": {"enabled": True}})
    found = list[Run]()
    async with with_nodes(sizes.nodes, plane, progress) as load, load.namespace(NAMESPACE):
        waiting = [pod(f"waits-{at:02}", scheduler.scheduler_name, cpu="1000") for at in range(WAITING)]
        await load.create_pods(NAMESPACE, waiting)
        with scheduler.running() as pid:
            progress.update("waiting until the API server passes questions on")
            await _passed_on(load.api)
            site = Site(load, scheduler, pid, sizes.pods_per_second)
            await site.run("warm", 0, WARM_SECONDS)
            for pair, kind in alternating(KINDS, sizes.pairs):
                progress.update(f"{kind}, pair {pair + 1} of {sizes.pairs}")
                found.append(await site.run(kind, pair, sizes.seconds))
    return found


def _address() -> str:
    """The address of this machine. Raises StartError where it has none beside loopback."""
    try:
        return own_address("https://198.51.100.1")
    except OSError as error:
        raise StartError(
            f"an EndpointSlice takes no loopback address, and there is no other: {error}"
        ) from error


async def _passed_on(api: Api) -> None:
    """Wait until a question is answered. Raises StartError when none is for too long."""
    until, outcomes = time.monotonic() + AVAILABLE_SECONDS, Counter[str]()
    while not outcomes[ANSWERED]:
        if time.monotonic() > until:
            raise StartError(f"no question is answered for {AVAILABLE_SECONDS:g} s through the API server")
        await asyncio.sleep(0.5)
        await _ask(api, paths(QUESTIONS)[0], outcomes)
