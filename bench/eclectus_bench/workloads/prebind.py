"""What pods that wait for their volumes cost the others: plain pods with and without a hundred of them.

Their claims wait for a first consumer: the scheduler writes the chosen node on the claim, and binds the pod
when a provisioner, played here, has bound the claim (PreBind of VolumeBinding; it may take 600 s). The plain
pods arrive when all the others wait. In every second run these have no claims, and are bound already.

Throughput on a busy machine scatters by more than what is to be found. So first, while nothing arrives, the
scheduler's CPU time is measured: what waiting costs is compared with what the plain pods cost.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import nan
from statistics import median

import uvloop

from eclectus_bench.drain import Backlog, Drain, UntilSettled, drain
from eclectus_bench.load import Binds, Load, pod, reach
from eclectus_bench.match import bench_plane, plane_pids, print_run, with_nodes
from eclectus_bench.schedulers import ECLECTUS, SchedulerUnderTest, eclectus
from eclectus_bench.workloads.pods import with_volume
from eclectus_bench.workloads.provisioner import Provisioner, claims_path, late_claim, slow_class
from eclectus_bench.workloads.storage import VOLUMES_PATH
from eclectus_e2e.pairs import alternating
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.usage import cpu_seconds

SETTLE_SECONDS = 1.0  # until the CPU time of the last bind, or write, is spent
SHARE_WANTED = 0.05  # most of the CPU time that plain pods cost, which waiting for volumes may cost besides


@dataclass(frozen=True)
class Sizes:
    """`waiting`: pods with a claim each, for which the provisioner takes `provision_seconds`.

    `rest_seconds`: for so long CPU time is measured while nothing arrives.
    """

    nodes: int
    pods: int
    pairs: int
    waiting: int
    provision_seconds: float
    rest_seconds: float


@dataclass(frozen=True)
class Measured:
    """The plain pods of one run; `bound` others had got their volumes and nodes when it ended."""

    has_claims: bool
    drained: Drain
    bound: int
    rest_cpu_ms: float  # of the scheduler a second, while nothing arrives


def measure(sizes: Sizes) -> list[Measured]:
    """All runs, in alternating order, on a control plane that is removed afterwards."""
    with bench_plane() as plane, Progress("prebind") as progress:
        return uvloop.run(_measure(sizes, plane, progress))


def lines(found: Sequence[Measured]) -> Iterator[str]:
    """The figures for people."""
    without, beside = ([each for each in found if each.has_claims is has] for has in (False, True))
    for title, runs in (("without", without), ("beside pods that wait for volumes", beside)):
        rate, cpu, rest = (median(map(figure, runs)) for figure in (_rate, _cpu, _rest))
        yield (
            f"plain pods {title}: {rate:.0f} bound/s, {cpu:.2f} ms of the scheduler's CPU each; "
            f"while none arrive, {rest:.1f} ms a second"
        )
    rates = [_rate(one) / _rate(other) for one, other in zip(beside, without, strict=True)]
    yield f"bound/s, beside over without: {median(rates):.2f} ({min(rates):.2f} .. {max(rates):.2f})"
    share = share_of_waiting(found)
    yield (
        f"CPU time of waiting, over that of plain pods: {share:.1%}, "
        f"target <= {SHARE_WANTED:.0%} {'met' if share <= SHARE_WANTED else 'MISSED'}"
    )


def share_of_waiting(found: Sequence[Measured]) -> float:
    """CPU time a second that waiting costs, over what plain pods cost at the rate of their binds."""
    without, beside = ([each for each in found if each.has_claims is has] for has in (False, True))
    waiting = median(map(_rest, beside)) - median(map(_rest, without))
    return waiting / (median(map(_cpu, without)) * median(map(_rate, without)))


def _rate(run: Measured) -> float:
    return run.drained.pods_per_second


def _cpu(run: Measured) -> float:
    return run.drained.scheduler_cpu_ms


def _rest(run: Measured) -> float:
    return run.rest_cpu_ms


# -- runs ------------------------------------------------------------------------------------------------


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress) -> list[Measured]:
    found, scheduler, pids = [], eclectus(plane), plane_pids(plane)
    async with with_nodes(sizes.nodes, plane, progress) as load, slow_class(load):
        for pair, has_claims in alternating((False, True), sizes.pairs):
            title = f"{pair + 1}, {'beside' if has_claims else 'without'}"
            run = _Run(sizes, scheduler, pids, load, progress, title)
            found.append(await run.measured(pair, has_claims=has_claims))
            rate = f"{found[-1].drained.pods_per_second:.0f} pods/s"
            others = f"{found[-1].bound} of the {sizes.waiting} others bound at the end"
            print_run(f"{title}: {rate}, {others}", found[-1].drained)
    return found


@dataclass(frozen=True)
class _Run:
    """The plain pods of one run, and the pods that are there before them."""

    sizes: Sizes
    scheduler: SchedulerUnderTest
    plane_pids: Mapping[str, int]
    load: Load
    progress: Progress
    title: str

    def say(self, text: str) -> None:
        """Show how far it is."""
        self.progress.update(f"{self.title}: {text}")

    async def measured(self, pair: int, *, has_claims: bool) -> Measured:
        load, scheduler, pids = self.load, self.scheduler, self.plane_pids
        namespace = f"prebind-{pair}-{'beside' if has_claims else 'without'}"
        surroundings = self._waiting if has_claims else self._without_claims
        async with (
            load.namespace(f"{namespace}-others") as others,
            surroundings(f"{namespace}-others", others) as until_settled,
            load.namespace(namespace) as binds,
        ):
            pods = [pod(f"pod-{at:06}", ECLECTUS) for at in range(self.sizes.pods)]
            backlog = Backlog(namespace, pods, until_settled)
            drained = await drain(load, scheduler, pids, binds, backlog, pair=pair, say=self.say)
            return Measured(has_claims, drained, len(others.seen_at), until_settled.rest_cpu_ms)

    @asynccontextmanager
    async def _without_claims(self, namespace: str, binds: Binds) -> AsyncIterator["_Settled"]:
        """Settled: they are bound."""
        await self.load.create_pods(namespace, (pod(name, ECLECTUS) for name in self._names))
        yield _Settled(lambda pid: binds.wait_for(self.sizes.waiting, pid, self.say), self.sizes)

    @asynccontextmanager
    async def _waiting(self, namespace: str, binds: Binds) -> AsyncIterator["_Settled"]:
        """Settled: the scheduler has written a node on every claim."""
        load, path = self.load, claims_path(namespace)
        await load.send("POST", [(path, late_claim(name)) for name in self._names])
        await load.create_pods(namespace, (with_volume(name, ECLECTUS, ()) for name in self._names))
        provisioner = Provisioner(load, namespace, self.sizes.provision_seconds)
        task = asyncio.create_task(provisioner.run())
        try:
            yield _Settled(lambda pid: self._until_chosen(provisioner, pid), self.sizes)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task  # raises what was refused: then no volume was made
            await load.delete_protected([f"{path}/{name}" for name in self._names])
            await load.delete_protected([f"{VOLUMES_PATH}/{each}" for each in provisioner.volumes])

    async def _until_chosen(self, provisioner: Provisioner, pid: int) -> None:
        chosen: Callable[[], int] = lambda: len(provisioner.chosen)  # noqa: E731
        await reach(self.sizes.waiting, chosen, "given a node for their volume", pid, self.say)

    @property
    def _names(self) -> Iterator[str]:
        return (f"other-{at:03}" for at in range(self.sizes.waiting))


class _Settled:
    """Waits until the others are settled, and measures the scheduler's CPU time while nothing arrives."""

    def __init__(self, until_settled: UntilSettled, sizes: Sizes) -> None:
        self._until_settled, self._seconds = until_settled, sizes.rest_seconds
        self.rest_cpu_ms = nan  # a second

    async def __call__(self, pid: int) -> None:
        await self._until_settled(pid)
        await asyncio.sleep(SETTLE_SECONDS)
        before, since = cpu_seconds(pid), time.monotonic()
        await asyncio.sleep(self._seconds)
        self.rest_cpu_ms = (cpu_seconds(pid) - before) / (time.monotonic() - since) * 1000
