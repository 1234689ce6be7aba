"""A second look at what ran where, from the journal alone: room and hard constraints. Pure.

It shares no code with the scheduler nor with the fake kubelet's own admission, so that a mistake has to
be made three times to pass.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.testbed.kubelet.journal import Entry
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount


def overcommitted_moments(
    entries: Iterable[Entry], arrivals: Mapping[str, Arrival], nodes: Sequence[NodeSpec]
) -> int:
    """How many pods began to run on a node whose cores or GPUs were all taken."""
    by_node: dict[str, list[tuple[float, int, int, int]]] = defaultdict(list)
    for entry in entries:
        if entry.started:
            kind = arrivals[entry.name].kind
            # At the same instant ends come before beginnings: sorted by sign.
            by_node[entry.node].append((entry.finished, -1, -kind.cpu_millicores, -kind.gpus))
            by_node[entry.node].append((entry.started, +1, kind.cpu_millicores, kind.gpus))
    return sum(_beyond(sorted(by_node[node.name]), node.allocatable) for node in nodes)


def violated(
    entries: Iterable[Entry], arrivals: Mapping[str, Arrival], labels: Mapping[str, Mapping[str, str]]
) -> int:
    """How many pods ran on a node that their hard wish excludes."""
    wishes = ((entry.node, arrivals[entry.name].constraint) for entry in entries if entry.started)
    return sum(wish is not None and wish.is_hard and not wish.met_by(labels[node]) for node, wish in wishes)


def _beyond(moments: Iterable[tuple[float, int, int, int]], allocatable: Mapping[str, str]) -> int:
    millicores = amount("cpu", allocatable["cpu"])
    gpus = amount("nvidia.com/gpu", allocatable.get("nvidia.com/gpu", "0"))
    used_millicores = used_gpus = count = 0
    for _, sign, cpu, gpu in moments:
        used_millicores, used_gpus = used_millicores + cpu, used_gpus + gpu
        count += sign > 0 and (used_millicores > millicores or used_gpus > gpus)
    return count
