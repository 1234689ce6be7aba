"""Small clusters, and the nodes on which a class fits."""

from __future__ import annotations

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Node, Spec, Taint

ROOM = (("cpu", 4000), ("memory", 2**34), ("pods", 10))


def cluster_of(*nodes: Node) -> Cluster:
    """A cluster of these nodes."""
    cluster = Cluster(rows=4)
    for node in nodes:
        cluster.set_node(node)
    return cluster


def node(name: str = "n", taints: tuple[Taint, ...] = (), unschedulable: bool = False, **labels: str) -> Node:
    """A node with 4 cores, 16 GiB and room for 10 pods."""
    return Node(name, ROOM, tuple(sorted(labels.items())), taints, unschedulable)


def runs_on(cluster: Cluster, spec: Spec) -> set[str]:
    """Names of the nodes on which the class fits now."""
    return {cluster.names[row] for row in TaskClass(cluster, spec, "w").fits_now_rows}
