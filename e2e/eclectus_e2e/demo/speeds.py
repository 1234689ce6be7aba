"""Learned speeds against the true ones, and how many samples a change of speed takes. Pure.

A learned rate is in tasks a second in one slot, of one workload on one node. Over all its workloads a node
has one speed, fitted as rate[node, workload] = speed[node] / size[workload] in logarithms, each rate
weighted by its samples. Only ratios between nodes mean anything, so the scale that fits the truth best (the
median ratio) is divided out; then a node counts as learned if its relative error is at most a third.
"""

from collections.abc import Mapping, Sequence
from math import floor, log

import msgspec
import numpy as np

from eclectus.maths.service_rates import CLIP
from eclectus.policies.rosella import RosellaLearn

TOLERANCE = 1 / 3  # relative error up to which a speed counts as learned
PREDICTION_FACTOR = 1.5  # learning may take so many times what is predicted
_SWEEPS = 50  # alternations of the fit; it gains a digit in two or three


class LearnedRate(msgspec.Struct, frozen=True):
    """One learned rate, as in the scheduler's /speeds."""

    node: str
    workload: str
    rate: float  # tasks a second in one slot
    samples: int
    state: str = "live"  # of the node


class SpeedsPage(msgspec.Struct, frozen=True):
    """A page of /speeds; `metadata` has the name `continue` where there are more."""

    items: list[LearnedRate]
    metadata: dict[str, str]


class NodeSpeed(msgspec.Struct, frozen=True):
    """One node: its true speed, the learned one on the same scale (None: none), and the number of samples."""

    node: str
    true: float
    learned: float | None
    samples: int

    @property
    def error(self) -> float | None:
        """Relative error: -0.1 is a tenth too slow. None without a learned speed, or for a frozen node."""
        return None if self.learned is None or not self.true else self.learned / self.true - 1

    @property
    def within_third(self) -> bool:
        """Whether the speed counts as learned."""
        return self.error is not None and abs(self.error) <= TOLERANCE


def compare_speeds(rates: Sequence[LearnedRate], true: Mapping[str, float]) -> list[NodeSpeed]:
    """Every node of `true` (name to speed), in its order, with its learned speed."""
    known = [one for one in rates if one.node in true and one.rate > 0]
    fitted = _fitted(known)
    ratios = [fitted[name] / true[name] for name in fitted if true[name]]
    scale = float(np.median(ratios)) if ratios else 1.0
    samples = {name: sum(one.samples for one in known if one.node == name) for name in fitted}
    return [
        NodeSpeed(name, speed, fitted[name] / scale if name in fitted else None, samples.get(name, 0))
        for name, speed in true.items()
    ]


def without_class_factors(
    rates: Sequence[LearnedRate], factors: Mapping[str, Mapping[str, float]]
) -> list[LearnedRate]:
    """The rates divided by the class factors of their nodes (node: class: factor), so that one speed fits."""
    return [
        msgspec.structs.replace(one, rate=one.rate / factors.get(one.node, {}).get(one.workload, 1.0))
        for one in rates
    ]


def learned_share(nodes: Sequence[NodeSpeed]) -> float:
    """Share of the nodes that are learned within a third, 0..1."""
    return sum(node.within_third for node in nodes) / len(nodes)


def errors_by_speed(nodes: Sequence[NodeSpeed]) -> dict[str, float | None]:
    """True speed: mean absolute relative error; None where no node of that speed has a learned one."""
    groups: dict[str, float | None] = {}
    for speed in sorted({node.true for node in nodes}):
        errors = [abs(node.error) for node in nodes if node.true == speed and node.error is not None]
        groups[f"{speed:g}"] = float(np.mean(errors)) if errors else None
    return groups


def samples_until_alarm(learn: RosellaLearn, classes: int) -> int:
    """Samples that the change detector needs after a shift of more than two standard deviations.

    `classes` is the number of classes that a node runs. Each sample then adds 2 - slack to the CUSUM, which
    must exceed its threshold; for all work of a node together that is ln(classes) higher.
    """
    return floor((learn.alarm_threshold + log(classes)) / (CLIP - learn.alarm_slack)) + 1


def _fitted(rates: Sequence[LearnedRate]) -> dict[str, float]:
    """Node: speed on an arbitrary scale, by alternating weighted means."""
    nodes = sorted({one.node for one in rates})
    workloads = sorted({one.workload for one in rates})
    rate, weight = np.zeros((len(nodes), len(workloads))), np.zeros((len(nodes), len(workloads)))
    for one in rates:
        at = nodes.index(one.node), workloads.index(one.workload)
        rate[at], weight[at] = np.log(one.rate), one.samples
    speed, size = np.zeros(len(nodes)), np.zeros(len(workloads))
    for _ in range(_SWEEPS if rates else 0):
        size = np.average(speed[:, None] - rate, axis=0, weights=weight)
        speed = np.average(rate + size, axis=1, weights=weight)
    return dict(zip(nodes, np.exp(speed).tolist(), strict=True))
