"""Plays the contest: each run has a control plane of its own, one contestant, a burst, then the tenants."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import uvloop

from eclectus_bench.contest.contestants import CONTESTANTS, Contestant
from eclectus_bench.contest.plan import BURST_CPU, BURST_WORK_SECONDS, PODS, Sizes, Tenant, job
from eclectus_bench.contest.reckoning import PLANE, SCHEDULERS, Played, PodRun
from eclectus_bench.load import IN_FLIGHT, Load
from eclectus_bench.match import OUTPUT, bench_plane
from eclectus_e2e.errors import StartError
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord
from eclectus_e2e.usage import Reading, cores_of_others, read, spent_seconds

# What Jobs need, and no more; the fake kubelet's nodes are never lost.
# Kueue v0.17 is made for Kubernetes up to 1.35: with these features, on since 1.36, the API server refuses
# that it restores the template of a Job it has stopped while pods of that still end, and it has to try again.
OPTIONS = PlaneOptions(
    taint_nodes_by_condition=False,
    controllers="serviceaccount-controller,job-controller",
    disabled_features=(
        "MutablePodResourcesForSuspendedJobs",
        "MutableSchedulingDirectivesForSuspendedJobs",
    ),
    routes_to_endpoints=False,  # Kueue's webhooks are on loopback
)
BURST = "burst"  # how the names of its Jobs begin
STALL_SECONDS = 60.0  # without an end of a pod of the burst for so long, the contestant counts as failed
_POLL_SECONDS = 0.2
Say = Callable[[str], None]


def play(sizes: Sizes) -> Iterator[Played]:
    """All runs, each as soon as it is over; the contestants take turns to begin."""
    for pair in range(sizes.pairs):
        first = pair % len(CONTESTANTS)
        for contestant in CONTESTANTS[first:] + CONTESTANTS[:first]:
            with Progress(f"tenants {pair + 1}, {contestant.name}") as progress:
                yield _play(contestant, sizes, pair, progress.update)


def _play(contestant: Contestant, sizes: Sizes, pair: int, say: Say) -> Played:
    say("starting a control plane")
    with (
        bench_plane(OPTIONS) as plane,
        handle.started(plane.directory, plane.kubeconfig, sizes.node_specs()) as kubelet,
    ):
        uvloop.run(_create_namespaces(plane, sizes))
        say("starting the contestant")
        with contestant.running(plane, sizes):
            return uvloop.run(_Contest(contestant, sizes, plane, kubelet, say).run(pair))


async def _create_namespaces(plane: ControlPlane, sizes: Sizes) -> None:
    async with Api(read_access(plane.kubeconfig)) as api:
        for tenant in sizes.tenants:
            await Load(api).create_namespace(tenant.name)


class _Contest:
    """One run on a control plane where the contestant runs."""

    def __init__(
        self,
        contestant: Contestant,
        sizes: Sizes,
        plane: ControlPlane,
        kubelet: KubeletControl,
        say: Say,
    ) -> None:
        self._contestant, self._sizes, self._plane = contestant, sizes, plane
        self._kubelet, self._say = kubelet, say
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def run(self, pair: int) -> Played:
        async with Api(read_access(self._plane.kubeconfig)) as api:
            burst = await self._burst(api)
            before, began = self._read(), time.time()
            submitted = await self._tenants(api, began)
            after = self._read()
        pods = self._ended(began)
        sizes, spent = self._sizes, partial(spent_seconds, before, after)
        return Played(
            contestant=self._contestant.name,
            pair=pair,
            tenants=tuple(each.name for each in sizes.tenants),
            slots=sizes.slots,
            minimum=sizes.minimum,
            measured_from=sizes.measured_from,
            ends=sizes.ends,
            pods_of_a_job=PODS,
            submitted=submitted,
            pods=pods,
            burst_starts=burst,
            cpu_seconds={name: spent(name) for name in before.cpu if name in (*PLANE, *SCHEDULERS)},
            strangers_cores=cores_of_others(before, after),
        )

    async def _burst(self, api: Api) -> list[float]:
        """Jobs that all have room at once; when each pod started, seconds after the first was submitted."""
        tenant, jobs, began = self._sizes.tenants[0].name, self._sizes.burst, time.time()
        async with asyncio.TaskGroup() as group:
            for number in range(jobs):
                name = f"{BURST}-{number:04d}"
                group.create_task(self._submit(api, tenant, name, BURST_WORK_SECONDS, BURST_CPU))
        count, ended, moved_at = PODS * jobs, 0, time.monotonic()
        while ended < count:
            now = self._kubelet.counters().finished
            if now > ended:
                ended, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STALL_SECONDS:
                raise StartError(
                    f"{self._contestant.name}: {ended} of {count} pods ran, and no more for"
                    f" {STALL_SECONDS:g} s; see {OUTPUT / 'logs'}"
                )
            self._say(f"burst: {ended} of {count} pods have run")
            await asyncio.sleep(_POLL_SECONDS)
        return [each.started - began for each in self._kubelet.pod_times()]

    async def _tenants(self, api: Api, began: float) -> dict[str, list[float]]:
        """Submit what the tenants have, to the end of the contest; when each Job was."""
        tenants, ends = self._sizes.tenants, self._sizes.ends
        async with asyncio.TaskGroup() as group:
            found = {each.name: group.create_task(self._tenant(api, each, began)) for each in tenants}
            while (at := time.time() - began) < ends:
                self._say(f"second {at:.0f} of {ends:.0f}")
                await asyncio.sleep(min(1.0, ends - at))
        return {name: sorted(task.result()) for name, task in found.items()}

    async def _tenant(self, api: Api, tenant: Tenant, began: float) -> list[float]:
        sent = list[asyncio.Task[float]]()
        async with asyncio.TaskGroup() as group:
            for number, due in enumerate(tenant.arrivals(self._sizes.ends)):
                await asyncio.sleep(max(0.0, began + due - time.time()))
                name = f"{tenant.name}-{number:05d}"
                sent.append(group.create_task(self._submit(api, tenant.name, name, tenant.work)))
        return [each.result() - began for each in sent]

    async def _submit(self, api: Api, tenant: str, name: str, work_seconds: float, cpu: str = "1") -> float:
        body = job(name, self._contestant.scheduler, self._contestant.labels, work_seconds, cpu)
        async with self._in_flight:
            at = time.time()
            await api.request("POST", f"/apis/batch/v1/namespaces/{tenant}/jobs", body)
        return at

    def _ended(self, began: float) -> list[PodRun]:
        """The pods of the tenants, after those that still run have been ended with their nodes."""
        names = [each.name for each in self._sizes.node_specs()]
        self._kubelet.kill(*names)
        self._kubelet.recover(*names)
        found = self._kubelet.pod_times()
        return [_pod_run(each, began) for each in found if not each.name.startswith(BURST)]

    def _read(self) -> Reading:
        pids = {each.name: each.pid for each in processes.recorded(self._plane.directory)}
        return read(pids | {"bench": os.getpid()})


def _pod_run(record: PodRecord, began: float) -> PodRun:
    succeeded = record.outcome == "succeeded"
    return PodRun(record.namespace, record.started - began, record.finished - began, succeeded)
