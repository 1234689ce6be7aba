"""What many Pools cost: a backlog drained by Eclectus in a thousand Pools, and the same without any."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

import uvloop

from eclectus.api.names import API_VERSION, POOL_LABEL, POOLS_PATH
from eclectus_bench.drain import Backlog, Drain, drain
from eclectus_bench.load import DELETE_NOW, Load, Object, pod
from eclectus_bench.match import bench_plane, plane_pids, print_run, with_nodes
from eclectus_bench.schedulers import eclectus
from eclectus_e2e.pairs import alternating, ratio_interval
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane

LEAST = 0.9  # of the pods a second without Pools
PROFILE = {"schedulerName": "eclectus", "order": {"policy": "pools"}, "place": {"policy": "rosella"}}
GROUPS, TEAMS = 9, 10  # below each department, below each group: only teams have pods


@dataclass(frozen=True)
class Sizes:
    """What is run: `pairs` drains with and without Pools; each department is of a hundred."""

    nodes: int
    pods: int
    departments: int
    pairs: int


@dataclass(frozen=True)
class Pair:
    """A drain in Pools, and one without."""

    pooled: Drain
    plain: Drain

    @property
    def ratio(self) -> float:
        """Pods a second in Pools over those without."""
        return self.pooled.pods_per_second / self.plain.pods_per_second


def tree(departments: int, namespace: str) -> list[Object]:
    """Pools of three levels; those of the third are open to pods of the namespace."""
    return [_pool(name, parent, namespace) for name, parent in _names(departments)]


def teams(departments: int) -> list[str]:
    """The names of the Pools that may have pods."""
    return [name for name, _ in _names(departments) if name.count("-") == 3]


def _names(departments: int) -> Iterator[tuple[str, str]]:
    """Name and parent of each Pool."""
    for department in range(departments):
        yield (top := f"pool-{department}"), ""
        for group in range(GROUPS):
            yield (middle := f"{top}-{group}"), top
            yield from ((f"{middle}-{team}", middle) for team in range(TEAMS))


def _pool(name: str, parent: str, namespace: str) -> Object:
    spec: Object = {"weight": 1, "namespaces": {"names": [namespace]}}
    if parent:
        spec["parent"] = parent
    return {"apiVersion": API_VERSION, "kind": "Pool", "metadata": {"name": name}, "spec": spec}


def measure(sizes: Sizes) -> list[Pair]:
    """Run all pairs on a control plane of their own, and print each run as soon as it is over."""
    with bench_plane() as plane, Progress("pools") as progress:
        return uvloop.run(_measure(sizes, plane, progress))


def lines(pairs: Sequence[Pair]) -> Iterator[str]:
    """Medians, the ratio with its interval, and whether it is what is wanted."""
    ratio = ratio_interval([each.ratio for each in pairs])
    kept = "met" if ratio.mean >= LEAST else "missed"
    yield (
        f"pods bound a second: {median(each.pooled.pods_per_second for each in pairs):.0f} in Pools,"
        f" {median(each.plain.pods_per_second for each in pairs):.0f} without;"
        f" ratio {ratio.text()} of {ratio.pairs} pairs, target >= {LEAST:g} {kept}"
    )
    yield (
        f"scheduler's CPU a pod, ms: {median(each.pooled.scheduler_cpu_ms for each in pairs):.2f} in Pools,"
        f" {median(each.plain.scheduler_cpu_ms for each in pairs):.2f} without"
    )


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress) -> list[Pair]:
    scheduler, found = eclectus(plane, config={"profiles": [PROFILE]}), list[Drain]()
    async with with_nodes(sizes.nodes, plane, progress) as load:
        for pair, kind in alternating(("pooled", "plain"), sizes.pairs):
            departments = sizes.departments if kind == "pooled" else 0
            namespace = f"drain-{pair}-{kind}"
            backlog = Backlog(namespace, _pods(sizes.pods, scheduler.scheduler_name, teams(departments)))
            async with load.namespace(namespace) as binds, _with_pools(load, tree(departments, namespace)):
                pids, say = plane_pids(plane), progress.update
                run = await drain(load, scheduler, pids, binds, backlog, pair=pair, say=say)
            print_run(f"{kind} {pair + 1}: {run.pods_per_second:.0f} pods/s", run)
            found.append(run)
    pairs = zip(found[::2], found[1::2], strict=True)
    return [Pair(*(each if at % 2 == 0 else each[::-1])) for at, each in enumerate(pairs)]


def _pods(count: int, scheduler: str, names: Sequence[str]) -> list[Object]:
    """Pods, in these Pools in turn, if there are any."""
    pods = [pod(f"pod-{index:06}", scheduler) for index in range(count)]
    for index, each in enumerate(pods if names else ()):
        each["metadata"]["labels"][POOL_LABEL] = names[index % len(names)]
    return pods


@asynccontextmanager
async def _with_pools(load: Load, pools: Sequence[Object]) -> AsyncIterator[None]:
    await load.send("POST", [(POOLS_PATH, each) for each in pools])
    yield
    await load.send("DELETE", [(f"{POOLS_PATH}/{each['metadata']['name']}", DELETE_NOW) for each in pools])
