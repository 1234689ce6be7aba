"""Runs workloads on one control plane: each by both schedulers, pair by pair, in alternating order."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from eclectus_bench import match
from eclectus_bench.drain import Backlog, Drain, drain
from eclectus_bench.load import Load
from eclectus_bench.match import PLANE, bench_plane, plane_pids, print_run, with_nodes
from eclectus_bench.schedulers import SchedulerUnderTest, eclectus, kube_scheduler
from eclectus_bench.workloads.site import Run, Site, Sizes
from eclectus_bench.workloads.table import Workload
from eclectus_e2e.errors import E2EError
from eclectus_e2e.pairs import alternating
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions


@dataclass(frozen=True)
class Measured:
    """The runs of one workload, in their order; `problem` says why there are not all of them."""

    workload: str
    drains: Sequence[Drain]
    problem: str = ""


def measure(workloads: Sequence[Workload], sizes: Sizes) -> list[Measured]:
    """Run them on a control plane of their own, and print each run as soon as it is known.

    A workload that fails is reported, and the others are run all the same.
    """
    with bench_plane(_plane(workloads)) as plane, Progress("workloads") as progress:
        return uvloop.run(_measure(workloads, sizes, plane, progress))


def profile(workload: Workload, sizes: Sizes) -> Path:
    """Profile one run by Eclectus alone with cProfile; returns the file with its time by function."""
    file = match.OUTPUT / f"profile-{workload.name}.txt"
    with bench_plane(_plane([workload])) as plane, Progress("profile") as progress:
        uvloop.run(_profile(workload, sizes, plane, progress, file))
    return file


def _plane(workloads: Sequence[Workload]) -> PlaneOptions:
    """It serves PodGroups where there are gangs."""
    return replace(PLANE, pod_groups=any(each.kube_scheduler_gates for each in workloads))


async def _profile(
    workload: Workload, sizes: Sizes, plane: ControlPlane, progress: Progress, file: Path
) -> None:
    scheduler = eclectus(plane, file)
    async with with_nodes(sizes.nodes, plane, progress) as load:
        site = _site(workload, sizes, (scheduler,), load, progress)
        async with workload.around_all(site):
            await _run(workload, site, scheduler, plane_pids(plane), pair=0)


async def _measure(
    workloads: Sequence[Workload], sizes: Sizes, plane: ControlPlane, progress: Progress
) -> list[Measured]:
    ours, found = eclectus(plane), list[Measured]()
    async with with_nodes(sizes.nodes, plane, progress) as load:
        for workload in workloads:
            drains, problem = list[Drain](), ""
            schedulers = (kube_scheduler(plane, workload.kube_scheduler_gates), ours)
            site = _site(workload, sizes, schedulers, load, progress)
            try:
                async with workload.around_all(site):
                    for pair, scheduler in alternating(schedulers, sizes.pairs):
                        drains.append(await _run(workload, site, scheduler, plane_pids(plane), pair=pair))
                        _print(workload, drains[-1])
            except* E2EError as problems:
                problem = "; ".join(dict.fromkeys(_texts(problems)))
                print(f"  {workload.name} is not measured: {problem}", file=sys.stderr, flush=True)
            found.append(Measured(workload.name, drains, problem))
    return found


def _print(workload: Workload, drained: Drain) -> None:
    rate = f"{drained.pods_per_second:.0f} pods/s"
    print_run(f"{workload.name} {drained.pair + 1}, {drained.scheduler}: {rate}", drained)


async def _run(
    workload: Workload, site: Site, scheduler: SchedulerUnderTest, pids: Mapping[str, int], *, pair: int
) -> Drain:
    names = [f"pod-{index:06}" for index in range(workload.count(site.sizes))]

    def say(text: str) -> None:
        site.say(f"{pair + 1}, {scheduler.name}: {text}")

    run = Run(site, _namespace(workload, pair, scheduler), scheduler.scheduler_name, names, say)
    pods = [site.pod_of(name, run.scheduler, site.namespaces) for name in names]
    async with site.load.namespace(run.namespace) as binds, workload.around_run(run) as until_settled:
        backlog = Backlog(run.namespace, pods, until_settled)
        return await drain(site.load, scheduler, pids, binds, backlog, pair=pair, say=say)


def _site(
    workload: Workload,
    sizes: Sizes,
    schedulers: Sequence[SchedulerUnderTest],
    load: Load,
    progress: Progress,
) -> Site:
    runs = [_namespace(workload, pair, each) for pair in range(sizes.pairs) for each in schedulers]

    def say(text: str) -> None:
        progress.update(f"{workload.name} {text}")

    return Site(load, sizes, workload.pod_of, (f"{workload.name}-standing", *runs), say)


def _namespace(workload: Workload, pair: int, scheduler: SchedulerUnderTest) -> str:
    return f"{workload.name}-{pair}-{scheduler.name}"


def _texts(problems: BaseExceptionGroup[BaseException]) -> Iterator[str]:
    """The text of each error, in whatever depth of groups."""
    for each in problems.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _texts(each)
        else:
            yield str(each)
