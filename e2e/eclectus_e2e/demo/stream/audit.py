"""An independent check of what ran where: over-commits and violated hard constraints. Pure.

It reads only the times that the fake kubelet recorded, and shares no code with the scheduler or with the
kubelet's admission, so a mistake has to be made three times to pass.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord
from eclectus_e2e.testbed.kubelet.quantities import amount


def count_overcommits(
    entries: Iterable[PodRecord], arrivals: Mapping[str, Arrival], nodes: Sequence[NodeSpec]
) -> int:
    """How many pods started on a node that had too few free cores or GPUs."""
    by_node: dict[str, list[tuple[float, int, int, int]]] = defaultdict(list)
    for entry in entries:
        if entry.started:
            kind = arrivals[entry.name].kind
            # At the same instant ends come before starts: sorted by sign.
            by_node[entry.node].append((entry.finished, -1, -kind.cpu_millicores, -kind.gpus))
            by_node[entry.node].append((entry.started, +1, kind.cpu_millicores, kind.gpus))
    return sum(_overcommits(sorted(by_node[node.name]), node.allocatable) for node in nodes)


def count_violations(
    entries: Iterable[PodRecord], arrivals: Mapping[str, Arrival], labels: Mapping[str, Mapping[str, str]]
) -> int:
    """How many pods ran on a node that their hard constraint excludes; `labels` by node."""
    ran = ((entry.node, arrivals[entry.name].constraint) for entry in entries if entry.started)
    return sum(one is not None and one.is_hard and not one.met_by(labels[node]) for node, one in ran)


def _overcommits(moments: Iterable[tuple[float, int, int, int]], allocatable: Mapping[str, str]) -> int:
    """Starts beyond a node's size, in sorted (time, sign, millicores, GPUs)."""
    millicores = amount("cpu", allocatable["cpu"])
    gpus = amount("nvidia.com/gpu", allocatable.get("nvidia.com/gpu", "0"))
    used_millicores = used_gpus = count = 0
    for _, sign, cpu, gpu in moments:
        used_millicores, used_gpus = used_millicores + cpu, used_gpus + gpu
        count += sign > 0 and (used_millicores > millicores or used_gpus > gpus)
    return count
