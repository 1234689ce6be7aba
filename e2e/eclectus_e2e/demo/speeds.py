"""What was learned of the nodes against the truth. Pure.

A learned rate is tasks a second in one slot, of one workload on one node. Over all its workloads a node
has one speed, fitted as rate[node, workload] = speed[node] / size[workload] in logarithms, each cell
weighing as many as its samples. Only ratios mean anything, so the one scale that fits the truth best
(the median ratio) is divided out; then a node counts as learned if its speed is within a third.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

TOLERANCE = 1 / 3
_SWEEPS = 50  # alternations of the fit; it gains a digit in two or three


class LearnedRate(msgspec.Struct, frozen=True):
    """One learned rate, as the scheduler's /speeds says it."""

    node: str
    workload: str
    rate: float  # tasks a second in one slot
    samples: int
    state: str = "live"  # of the node


class NodeSpeed(msgspec.Struct, frozen=True):
    """One node: the truth, what was learned of it on the same scale (None: nothing), from how much."""

    node: str
    true: float
    learned: float | None
    samples: int

    @property
    def error(self) -> float | None:
        """Relative error: -0.1 is a tenth too slow. None where nothing is known, or nothing moves."""
        return None if self.learned is None or not self.true else self.learned / self.true - 1

    @property
    def within_third(self) -> bool:
        """Whether it is learned."""
        return self.error is not None and abs(self.error) <= TOLERANCE


def compare_speeds(cells: Sequence[LearnedRate], true: Mapping[str, float]) -> list[NodeSpeed]:
    """Every node of `true` (name to speed), in its order, with what the cells say of it."""
    known = [cell for cell in cells if cell.node in true and cell.rate > 0]
    fitted = _fitted(known)
    ratios = [fitted[name] / true[name] for name in fitted if true[name]]
    scale = float(np.median(ratios)) if ratios else 1.0
    samples = {name: sum(cell.samples for cell in known if cell.node == name) for name in fitted}
    return [
        NodeSpeed(name, speed, fitted[name] / scale if name in fitted else None, samples.get(name, 0))
        for name, speed in true.items()
    ]


def without_class_factors(
    cells: Sequence[LearnedRate], factors: Mapping[str, Mapping[str, float]]
) -> list[LearnedRate]:
    """The cells as they would be if each node were as good at all work as at most; `factors` by node."""
    return [
        msgspec.structs.replace(cell, rate=cell.rate / factors.get(cell.node, {}).get(cell.workload, 1.0))
        for cell in cells
    ]


def learned_share(nodes: Sequence[NodeSpeed]) -> float:
    """Share of the nodes learned within a third, 0..1."""
    return sum(node.within_third for node in nodes) / len(nodes)


def errors_by_speed(nodes: Sequence[NodeSpeed]) -> dict[str, float | None]:
    """True speed: mean absolute relative error of what was learned; None where nothing was."""
    groups: dict[str, float | None] = {}
    for speed in sorted({node.true for node in nodes}):
        errors = [abs(node.error) for node in nodes if node.true == speed and node.error is not None]
        groups[f"{speed:g}"] = float(np.mean(errors)) if errors else None
    return groups


def _fitted(cells: Sequence[LearnedRate]) -> dict[str, float]:
    """Node: speed on an arbitrary scale."""
    nodes = sorted({cell.node for cell in cells})
    workloads = sorted({cell.workload for cell in cells})
    rate, weight = np.zeros((len(nodes), len(workloads))), np.zeros((len(nodes), len(workloads)))
    for cell in cells:
        at = nodes.index(cell.node), workloads.index(cell.workload)
        rate[at], weight[at] = np.log(cell.rate), cell.samples
    speed, size = np.zeros(len(nodes)), np.zeros(len(workloads))
    for _ in range(_SWEEPS if cells else 0):
        size = np.average(speed[:, None] - rate, axis=0, weights=weight)
        speed = np.average(rate + size, axis=1, weights=weight)
    return dict(zip(nodes, np.exp(speed).tolist(), strict=True))
