"""The table of workloads. Another one is a line here, and a pod or surroundings where it needs its own.

The wanted ratios are of pods bound a second, Eclectus over kube-scheduler, from so many nodes on: what
kube-scheduler spends on a pod grows with the nodes.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from eclectus_bench.drain import UntilSettled
from eclectus_bench.workloads import gangs, pods, storage, surroundings
from eclectus_bench.workloads.site import PodOf, Run, Site, Sizes

LARGE, VERY_LARGE = 5_000, 15_000  # nodes
CPU_MOST = 0.5  # wanted: the scheduler's CPU time a pod, Eclectus over kube-scheduler…
MEMORY_MOST = 1.0  # …and its peak memory


@dataclass(frozen=True)
class Workload:
    """One row. `wanted`: (nodes, least ratio with so many or more), in order."""

    name: str
    title: str
    wanted: tuple[tuple[int, float], ...]
    pods_a_run: int = 2_000  # measured
    pod_of: PodOf = pods.basic
    one_a_node: bool = False  # each pod, standing or measured, needs a node of its own
    around_all: Callable[[Site], AbstractAsyncContextManager[None]] = surroundings.nothing_more
    around_run: Callable[[Run], AbstractAsyncContextManager[UntilSettled | None]] = surroundings.no_others

    kube_scheduler_gates: tuple[str, ...] = ()  # arguments, for PodGroups; the API server serves them then

    def ratio_least(self, nodes: int) -> float | None:
        """The wanted ratio with so many nodes; None on smaller clusters, for which nothing is wanted."""
        found = [ratio for least, ratio in self.wanted if nodes >= least]
        return found[-1] if found else None

    def count(self, sizes: Sizes) -> int:
        """How many pods are measured in a run."""
        wanted = sizes.pods or self.pods_a_run
        return min(wanted, sizes.nodes - sizes.standing_pods) if self.one_a_node else wanted


WORKLOADS = (
    Workload("basic", "pods without rules", ((LARGE, 1.8), (VERY_LARGE, 3.0))),
    Workload("spread", "topology spread by zone", ((LARGE, 3.5),), pod_of=pods.spread_by_zone),
    Workload(
        "spread-nodes",
        "topology spread by zone and by node",
        ((LARGE, 3.5),),
        pod_of=pods.spread_by_zone_and_node,
    ),
    Workload(
        "affinity",
        "required pod affinity by zone, many matching pods there",
        ((LARGE, 7.0),),
        pods_a_run=1_000,
        pod_of=pods.near,
        around_all=surroundings.standing_pods,
    ),
    Workload(
        "anti-affinity",
        "required anti-affinity by node, many matching pods there",
        ((LARGE, 10.0),),
        pods_a_run=1_000,
        pod_of=pods.apart,
        one_a_node=True,
        around_all=surroundings.standing_pods,
    ),
    Workload(
        "preferred",
        "preferred anti-affinity by node",
        ((LARGE, 4.0),),
        pods_a_run=1_000,
        pod_of=pods.rather_apart,
    ),
    Workload(
        "unschedulable",
        "pods without rules, beside many that no node can run",
        ((LARGE, 1.5),),
        around_run=surroundings.unschedulable_pods,
    ),
    Workload(
        "gated",
        "pods without rules, beside many that are gated",
        ((LARGE, 1.5),),
        around_run=surroundings.gated_pods,
    ),
    Workload(
        "churn",
        "pods without rules while nodes and pods come and go",
        ((LARGE, 1.5),),
        around_all=surroundings.urgent_class,
        around_run=surroundings.churn,
    ),
    Workload(
        "volumes",
        "pods with a bound volume of a CSI driver each",
        ((LARGE, 1.5),),
        pods_a_run=1_000,
        pod_of=pods.with_volume,
        around_all=storage.attach_limits,
        around_run=storage.bound_claims,
    ),
    Workload(
        "gangs",
        "pods that start together, in PodGroups of three",
        ((LARGE, 1.5),),
        pods_a_run=1_000 * gangs.MEMBERS,
        pod_of=gangs.member,
        around_run=gangs.pod_groups,
        kube_scheduler_gates=gangs.KUBE_SCHEDULER_GATES,
    ),
)
