"""The comparison with kube-scheduler: both on one control plane, pair by pair, in alternating order.

Each backlog is drained once more by a scheduler that decides nothing (ceiling.py), for comparison.
"""

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from eclectus_bench.contest.reckoning import Played
from eclectus_bench.dags.reckoning import Run as Graphs
from eclectus_bench.drain import Backlog, Drain, drain
from eclectus_bench.load import Load, pod
from eclectus_bench.schedulers import SchedulerUnderTest, ceiling, eclectus, kube_scheduler
from eclectus_bench.stream import Stream, stream
from eclectus_e2e.pairs import alternating
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.usage import QUIET_CORES

OUTPUT = CHECKOUT / "build" / "bench"
# The nodes have no kubelets, so nothing may mark them as lost. Of the controllers only the one is needed that
# creates the ServiceAccount of a namespace; the others would watch every pod and change nothing.
PLANE = PlaneOptions(taint_nodes_by_condition=False, controllers="serviceaccount-controller")


@dataclass(frozen=True)
class Sizes:
    """What is run: `pairs` drains and as many streams, each by both schedulers."""

    nodes: int
    pods: int
    pairs: int
    stream_seconds: float
    place: str | None = None  # Eclectus' policy; None: the chart's

    @property
    def config(self) -> dict[str, Any]:
        """Values of the chart's `config`."""
        if self.place is None:
            return {}
        return {"profiles": [{"schedulerName": "eclectus", "place": {"policy": self.place}}]}


@dataclass(frozen=True)
class Result:
    """All runs, in their order."""

    drains: list[Drain]
    streams: list[Stream]


def run_match(sizes: Sizes) -> Result:
    """Start a control plane, run everything on it, and remove all but the logs."""
    with bench_plane() as plane, Progress("match") as progress:
        return uvloop.run(_run(sizes, plane, progress))


def profile(sizes: Sizes) -> Path:
    """Profile one drain by Eclectus alone with cProfile; returns the file with its time by function."""
    file = OUTPUT / "profile-eclectus.txt"
    with bench_plane() as plane, Progress("profile") as progress:
        uvloop.run(_profile(sizes, plane, progress, file))
    return file


@contextmanager
def bench_plane(options: PlaneOptions = PLANE) -> Iterator[ControlPlane]:
    """A control plane for a bench; its logs are kept."""
    with ControlPlane.started(OUTPUT / "cluster", options) as plane:
        try:
            yield plane
        finally:
            shutil.copytree(plane.directory / "logs", OUTPUT / "logs", dirs_exist_ok=True)


@asynccontextmanager
async def with_nodes(count: int, plane: ControlPlane, progress: Progress) -> AsyncIterator[Load]:
    """So many nodes on a control plane, and what creates the load there."""
    async with Api(read_access(plane.load_kubeconfig)) as api:
        load = Load(api)
        progress.update(f"creating {count} nodes")
        await load.create_nodes(count)
        yield load


async def _profile(sizes: Sizes, plane: ControlPlane, progress: Progress, file: Path) -> None:
    async with with_nodes(sizes.nodes, plane, progress) as load:
        await _drain(
            load,
            eclectus(plane, file, sizes.config),
            plane_pids(plane),
            sizes.pods,
            pair=0,
            progress=progress,
        )


async def _run(sizes: Sizes, plane: ControlPlane, progress: Progress) -> Result:
    schedulers = (kube_scheduler(plane), eclectus(plane, config=sizes.config))
    pids = plane_pids(plane)
    result = Result([], [])
    async with with_nodes(sizes.nodes, plane, progress) as load:
        for pair, scheduler in alternating((*schedulers, ceiling(plane)), sizes.pairs):
            drained = await _drain(load, scheduler, pids, sizes.pods, pair=pair, progress=progress)
            result.drains.append(drained)
            print_run(f"drain {pair + 1}, {scheduler.name}: {drained.pods_per_second:.0f} pods/s", drained)
        rate = half_load(result.drains)
        for pair, scheduler in alternating(schedulers, sizes.pairs):
            served = await stream(
                load, scheduler, pids, rate, sizes.stream_seconds, pair=pair, say=progress.update
            )
            result.streams.append(served)
            print_run(f"stream {pair + 1}, {scheduler.name}: p99 {served.p99_seconds * 1000:.0f} ms", served)
    return result


async def _drain(
    load: Load,
    scheduler: SchedulerUnderTest,
    pids: Mapping[str, int],
    count: int,
    *,
    pair: int,
    progress: Progress,
) -> Drain:
    namespace = f"drain-{pair}-{scheduler.name}"
    pods = [pod(f"pod-{index:06}", scheduler.scheduler_name) for index in range(count)]

    def say(text: str) -> None:
        progress.update(f"drain {pair + 1}, {scheduler.name}: {text}")

    async with load.namespace(namespace) as binds:
        return await drain(load, scheduler, pids, binds, Backlog(namespace, pods), pair=pair, say=say)


def half_load(drains: list[Drain]) -> float:
    """Half of the slower scheduler's median throughput, in pods a second."""
    names = {run.scheduler for run in drains}
    return min(median(run.pods_per_second for run in drains if run.scheduler == name) for name in names) / 2


def print_run(text: str, run: Drain | Stream | Played | Graphs) -> None:
    """Print a finished run, with a warning if other processes used CPU time."""
    cores = run.strangers_cores
    disturbed = f" (other processes used {cores:.1f} cores meanwhile)" if cores > QUIET_CORES else ""
    print(f"  {text}{disturbed}", flush=True)


def plane_pids(plane: ControlPlane) -> dict[str, int]:
    """The components whose CPU time is measured beside the scheduler's."""
    return {name: plane.pids[name] for name in ("kube-apiserver", "etcd", "kube-controller-manager")}
