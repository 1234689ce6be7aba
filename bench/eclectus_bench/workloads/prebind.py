"""What pods that wait for their volumes cost the others: plain pods with and without a hundred of them.

Their claims wait for a first consumer: the scheduler writes the chosen node on the claim, and binds the pod
when a provisioner, played here, has bound the claim (PreBind of VolumeBinding; it may take 600 s). The plain
pods arrive when all the others wait. In every second run these have no claims, and are bound already.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

import msgspec
import uvloop

from eclectus.kube.storage.translate import SELECTED_NODE
from eclectus_bench.drain import Backlog, Drain, UntilSettled, drain
from eclectus_bench.load import DELETE_NOW, Binds, Load, Object, pod, reach
from eclectus_bench.match import bench_plane, plane_pids, print_run, with_nodes
from eclectus_bench.schedulers import ECLECTUS, SchedulerUnderTest, eclectus
from eclectus_bench.workloads.pods import with_volume
from eclectus_bench.workloads.storage import MODES, SIZE, VOLUMES_PATH, bound_volume
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane

CLASS, CLASSES_PATH = "bench-slow", "/apis/storage.k8s.io/v1/storageclasses"
RATIO_WANTED = 0.95  # plain pods a second beside those that wait, over those without


@dataclass(frozen=True)
class Sizes:
    """`waiting`: pods with a claim each, for which the provisioner takes `provision_seconds`."""

    nodes: int
    pods: int
    pairs: int
    waiting: int
    provision_seconds: float


@dataclass(frozen=True)
class Measured:
    """The plain pods of one run; `bound` others had got their volumes and nodes when it ended."""

    has_claims: bool
    drained: Drain
    bound: int


def measure(sizes: Sizes) -> list[Measured]:
    """All runs, in alternating order, on a control plane that is removed afterwards."""
    with bench_plane() as plane, Progress("prebind") as progress:
        return uvloop.run(_measure(sizes, plane, progress))


def lines(found: Sequence[Measured]) -> Iterator[str]:
    """The figures for people."""
    without, beside = ([each.drained for each in found if each.has_claims is has] for has in (False, True))
    for title, drains in (("without", without), ("beside pods that wait for volumes", beside)):
        rate, cpu = (median(getattr(each, field) for each in drains) for field in _FIELDS)
        yield f"plain pods {title}: {rate:.0f} bound/s, {cpu:.2f} ms of the scheduler's CPU each"
    rates, cpus = ([_ratio(*pair, field) for pair in zip(without, beside, strict=True)] for field in _FIELDS)
    ratio = median(rates)
    yield (
        f"beside over without: {ratio:.2f} ({min(rates):.2f} .. {max(rates):.2f}), "
        f"target >= {RATIO_WANTED:g} {'met' if ratio >= RATIO_WANTED else 'MISSED'}; "
        f"CPU {median(cpus):.2f} ({min(cpus):.2f} .. {max(cpus):.2f})"
    )


_FIELDS = ("pods_per_second", "scheduler_cpu_ms")


def _ratio(without: Drain, beside: Drain, field: str) -> float:
    return float(getattr(beside, field) / getattr(without, field))


# -- runs ------------------------------------------------------------------------------------------------


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress) -> list[Measured]:
    found, scheduler, pids = [], eclectus(plane), plane_pids(plane)
    async with with_nodes(sizes.nodes, plane, progress) as load, _slow_class(load):
        for pair in range(sizes.pairs):
            # Each pair begins with the other kind, so that etcd's growing history affects both.
            for has_claims in (False, True) if pair % 2 == 0 else (True, False):
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
            return Measured(has_claims, drained, len(others.seen_at))

    @asynccontextmanager
    async def _without_claims(self, namespace: str, binds: Binds) -> AsyncIterator[UntilSettled]:
        """Settled: they are bound."""
        await self.load.create_pods(namespace, (pod(name, ECLECTUS) for name in self._names))
        yield lambda pid: binds.wait_for(self.sizes.waiting, pid, self.say)

    @asynccontextmanager
    async def _waiting(self, namespace: str, binds: Binds) -> AsyncIterator[UntilSettled]:
        """Settled: the scheduler has written a node on every claim."""
        load, path = self.load, _claims_path(namespace)
        await load.send("POST", [(path, _claim(name)) for name in self._names])
        await load.create_pods(namespace, (with_volume(name, ECLECTUS, ()) for name in self._names))
        provisioner = _Provisioner(load, namespace, self.sizes.provision_seconds)
        task = asyncio.create_task(provisioner.run())
        try:
            yield lambda pid: self._until_chosen(provisioner, pid)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await load.delete_protected([f"{path}/{name}" for name in self._names])
            await load.delete_protected([f"{VOLUMES_PATH}/{each}" for each in provisioner.volumes])

    async def _until_chosen(self, provisioner: "_Provisioner", pid: int) -> None:
        chosen: Callable[[], int] = lambda: len(provisioner.chosen)  # noqa: E731
        await reach(self.sizes.waiting, chosen, "given a node for their volume", pid, self.say)

    @property
    def _names(self) -> Iterator[str]:
        return (f"other-{at:03}" for at in range(self.sizes.waiting))


# -- the provisioner -------------------------------------------------------------------------------------


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    annotations: dict[str, str] = {}


class _Claim(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Provisioner:
    """Makes a volume for each claim of a namespace, some seconds after a node was written on it."""

    def __init__(self, load: Load, namespace: str, seconds: float) -> None:
        self._load, self._namespace, self._seconds = load, namespace, seconds
        self.chosen: set[str] = set()  # claims with a node
        self.volumes: list[str] = []

    async def run(self) -> None:
        """Watch until cancelled. Raises an ExceptionGroup with the ApiError of a request that is refused."""
        async with asyncio.TaskGroup() as group:
            async for change in self._load.api.changes(_claims_path(self._namespace), _Claim):
                for each in change.items if change.kind != "deleted" else ():
                    if SELECTED_NODE in each.metadata.annotations and each.metadata.name not in self.chosen:
                        self.chosen.add(each.metadata.name)
                        group.create_task(self._provision(each.metadata.name))

    async def _provision(self, claim: str) -> None:
        await asyncio.sleep(self._seconds)
        volume = bound_volume(self._namespace, claim, storageClassName=CLASS)
        name = volume["metadata"]["name"]
        await self._load.send("POST", [(VOLUMES_PATH, volume)])
        self.volumes.append(name)
        is_bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": is_bound, "spec": {"volumeName": name}}
        await self._load.send("PATCH", [(f"{_claims_path(self._namespace)}/{claim}", patch)])


@asynccontextmanager
async def _slow_class(load: Load) -> AsyncIterator[None]:
    """The StorageClass of the claims, whose provisioner is played here."""
    body = {"metadata": {"name": CLASS}, "provisioner": "bench.example/slow"}
    await load.send("POST", [(CLASSES_PATH, body | {"volumeBindingMode": "WaitForFirstConsumer"})])
    try:
        yield
    finally:
        await load.send("DELETE", [(f"{CLASSES_PATH}/{CLASS}", DELETE_NOW)])


def _claim(name: str) -> Object:
    requests = {"requests": {"storage": SIZE}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"storageClassName": CLASS, "accessModes": MODES, "resources": requests},
    }


def _claims_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
