"""The match: both schedulers on one control plane, in alternating order, pair by pair."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uvloop

from eclectus_bench.drain import Drain, drain
from eclectus_bench.load import Load
from eclectus_bench.schedulers import SchedulerUnderTest, eclectus, kube_scheduler
from eclectus_bench.stream import Stream, stream
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet.api import Api, read_access

OUTPUT = CHECKOUT / "build" / "bench"
QUIET_CORES = 0.2  # what a machine does by itself
# Nodes without kubelets: nobody may mark them lost. Of the controllers a run needs the one that gives a
# namespace its ServiceAccount; the others would watch every pod and change nothing.
PLANE = PlaneOptions(taint_nodes_by_condition=False, controllers="serviceaccount-controller")


@dataclass(frozen=True)
class Sizes:
    """What is run. `pairs` drains and as many streams, each by both schedulers."""

    nodes: int
    pods: int
    pairs: int
    stream_seconds: float


@dataclass(frozen=True)
class Result:
    """All runs, in the order in which they were run."""

    drains: list[Drain]
    streams: list[Stream]


def run_match(course: Sizes) -> Result:
    """Start a control plane, run everything on it, leave nothing behind but logs."""
    with _plane() as plane, Progress("match") as progress:
        return uvloop.run(_play(course, plane, progress))


def profile(course: Sizes) -> Path:
    """One drain by Eclectus alone, under cProfile; the file that says where its time went."""
    file = OUTPUT / "profile-eclectus.txt"
    with _plane() as plane, Progress("profile") as progress:
        uvloop.run(_profile(course, plane, progress, file))
    return file


@contextmanager
def _plane() -> Iterator[ControlPlane]:
    with ControlPlane.started(OUTPUT / "cluster", PLANE) as plane:
        try:
            yield plane
        finally:
            shutil.copytree(plane.directory / "logs", OUTPUT / "logs", dirs_exist_ok=True)


@asynccontextmanager
async def _nodes(course: Sizes, plane: ControlPlane, progress: Progress) -> AsyncIterator[Load]:
    async with Api(read_access(plane.kubeconfig)) as api:
        load = Load(api)
        progress.say(f"creating {course.nodes} nodes")
        await load.create_nodes(course.nodes)
        yield load


async def _profile(course: Sizes, plane: ControlPlane, progress: Progress, file: Path) -> None:
    async with _nodes(course, plane, progress) as load:
        await drain(load, eclectus(plane, file), _pids(plane), course.pods, pair=0, say=progress.say)


async def _play(course: Sizes, plane: ControlPlane, progress: Progress) -> Result:
    players, pids = (kube_scheduler(plane), eclectus(plane)), _pids(plane)
    result = Result([], [])
    async with _nodes(course, plane, progress) as load:
        for pair, player in _turns(players, course.pairs):
            drained = await drain(load, player, pids, course.pods, pair=pair, say=progress.say)
            result.drains.append(drained)
            _tell(f"drain {pair + 1}, {player.name}: {drained.pods_per_second:.0f} pods/s", drained)
        rate = half_load(result.drains)
        for pair, player in _turns(players, course.pairs):
            served = await stream(
                load, player, pids, rate, course.stream_seconds, pair=pair, say=progress.say
            )
            result.streams.append(served)
            _tell(f"stream {pair + 1}, {player.name}: p99 {served.p99_seconds * 1000:.0f} ms", served)
    return result


def half_load(drains: list[Drain]) -> float:
    """Half of the slower one's median pace, pods a second."""
    names = {run.scheduler for run in drains}
    return min(median(run.pods_per_second for run in drains if run.scheduler == name) for name in names) / 2


def _tell(text: str, run: Drain | Stream) -> None:
    """A finished run, with a word of warning where other programs were at work."""
    cores = run.strangers_cores
    disturbed = f" (other processes used {cores:.1f} cores meanwhile)" if cores > QUIET_CORES else ""
    print(f"  {text}{disturbed}", flush=True)


def _pids(plane: ControlPlane) -> dict[str, int]:
    return {name: plane.pids[name] for name in ("kube-apiserver", "etcd", "kube-controller-manager")}


def _turns(
    players: tuple[SchedulerUnderTest, SchedulerUnderTest], pairs: int
) -> Iterator[tuple[int, SchedulerUnderTest]]:
    """Who begins changes with every pair: what wears on (etcd's history, caches) wears on both."""
    for pair in range(pairs):
        yield from ((pair, player) for player in (players if pair % 2 == 0 else players[::-1]))
