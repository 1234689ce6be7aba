"""Preemption compared with kube-scheduler: pods a second that get their nodes by evicting others.

As in PreemptionAsync of kube-scheduler's own benchmark, every node is full of four pods of low priority, and
each preemptor needs the room of three. The victims have no kubelet and no grace period, so they are gone as
soon as they are deleted. Both schedulers get the same backlog, one after the other on one control plane.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvloop

from eclectus_bench.load import Load, Object, node_name, pod
from eclectus_bench.match import bench_plane, with_nodes
from eclectus_bench.schedulers import KUBE_SCHEDULER, SchedulerUnderTest, eclectus, kube_scheduler
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.usage import read

PODS_ON_A_NODE = 4
VICTIMS_OF_ONE = 3  # of each preemptor
LOW_CPU, HIGH_CPU = "900m", "3"  # of nodes with 4 cores
PRIORITY_CLASS = "bench-urgent"
STALL_SECONDS = 600.0  # without a bind for so long, a scheduler counts as failed
# kube-scheduler sometimes overlooks that a victim is gone, and looks at the pod again after 5 minutes.
LOOKS_AGAIN = "--pod-max-in-unschedulable-pods-duration=30s"
RATIO_WANTED = 2.0  # pods a second of Eclectus over those of kube-scheduler

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """Nodes, and pods that preempt."""

    nodes: int
    preemptors: int


@dataclass(frozen=True)
class Preempted:
    """One backlog of preemptors."""

    scheduler: str
    pods_per_second: float  # from the scheduler's start, when all of them wait, to the last bind
    victims: int
    scheduler_cpu_ms: float  # a preemptor, start-up included


def measure(sizes: Sizes) -> list[Preempted]:
    """Both schedulers in turn, on a control plane that is removed afterwards."""
    with bench_plane() as plane, Progress("preemption") as progress:
        return uvloop.run(_measure(sizes, plane, progress))


def lines(found: list[Preempted]) -> Iterator[str]:
    """The figures for people."""
    for each in found:
        yield (
            f"{each.scheduler}: {each.pods_per_second:.0f} preemptors/s, {each.victims} pods evicted, "
            f"{each.scheduler_cpu_ms:.1f} ms of the scheduler's CPU each"
        )
    rates = {each.scheduler: each.pods_per_second for each in found}
    ratio = rates.pop("eclectus") / rates[KUBE_SCHEDULER]
    verdict = "met" if ratio >= RATIO_WANTED else "MISSED"
    yield f"eclectus over kube-scheduler: {ratio:.2f}, target >= {RATIO_WANTED:g} {verdict}"


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress) -> list[Preempted]:
    async with with_nodes(sizes.nodes, plane, progress) as load:
        await load.create_priority_class(PRIORITY_CLASS, 1000)
        both = (kube_scheduler(plane, [LOOKS_AGAIN]), eclectus(plane))
        return [await _preempt(load, each, sizes, progress.update) for each in both]


async def _preempt(load: Load, scheduler: SchedulerUnderTest, sizes: Sizes, say: Say) -> Preempted:
    name = scheduler.name
    low_namespace, high_namespace = f"low-{name}", f"high-{name}"
    async with load.namespace(low_namespace), load.namespace(high_namespace) as binds:
        say(f"{name}: creating {sizes.nodes * PODS_ON_A_NODE} pods of low priority")
        await load.create_pods(low_namespace, _low(sizes.nodes))
        await load.create_pods(high_namespace, _high(sizes.preemptors, scheduler.scheduler_name))
        began = time.monotonic()
        with scheduler.running() as pid:
            # kube-scheduler may choose the victims of all pods before it binds the first one.
            await binds.wait_for(sizes.preemptors, pid, lambda text: say(f"{name}: {text}"), STALL_SECONDS)
            spent = read({"scheduler": pid}).cpu["scheduler"]
        left = await load.pods(low_namespace)
    return Preempted(
        scheduler=name,
        pods_per_second=sizes.preemptors / (max(binds.seen_at.values()) - began),
        victims=sizes.nodes * PODS_ON_A_NODE - left,
        scheduler_cpu_ms=spent / sizes.preemptors * 1000,
    )


def _low(nodes: int) -> Iterator[Object]:
    for at in range(nodes * PODS_ON_A_NODE):
        yield pod(f"low-{at:06}", "nobody", LOW_CPU, nodeName=node_name(at % nodes))


def _high(count: int, scheduler: str) -> Iterator[Object]:
    for at in range(count):
        yield pod(f"high-{at:06}", scheduler, HIGH_CPU, priorityClassName=PRIORITY_CLASS)
