"""Batches of pods that few nodes may run, beside single pods that any node may run. Pure.

Each kind of scarce node has a Poisson stream of batches of its own, as of jobs that bring all their pods at
once. The pods of a batch are of one class and have the same hard constraint. Single pods are one Poisson
stream; some of them prefer nodes.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eclectus_e2e.demo.workload.arrivals import Arrival, Mix, NodeConstraint, WorkClass, poisson_arrivals


@dataclass(frozen=True)
class ScarceKind:
    """What the pods of a batch demand, and the share of all pods that come in such batches."""

    constraint: NodeConstraint
    share: float
    gpus: int = 0  # of each pod


@dataclass(frozen=True)
class BatchMix:
    """`free` are the single pods' classes and preferences; batches have its classes in the same shares."""

    free: Mix
    scarce: Sequence[ScarceKind]
    batch: int  # pods


def batch_arrivals(seed: int, per_second: float, seconds: float, mix: BatchMix) -> list[Arrival]:
    """Every arrival of the first `seconds`, in order; `per_second` counts the pods of batches too."""
    free_share = 1.0 - sum(kind.share for kind in mix.scarce)
    found = poisson_arrivals(seed, free_share * per_second, seconds, mix.free)
    for kind in mix.scarce:
        found += _batches(seed, kind.share * per_second / mix.batch, seconds, mix, kind)
    found.sort(key=lambda one: one.at_seconds)
    return [replace(one, number=number) for number, one in enumerate(found)]


def _batches(seed: int, per_second: float, seconds: float, mix: BatchMix, kind: ScarceKind) -> list[Arrival]:
    """The batches of one kind, with random numbers of its own: another kind's rate does not change them."""
    rng = random.Random(f"{seed} {kind.constraint.text}")
    shares = [each.share for each in mix.free.classes]
    found: list[Arrival] = []
    at = rng.expovariate(per_second)
    while at < seconds:
        (drawn,) = rng.choices(mix.free.classes, shares)
        found += [_pod(rng, at, replace(drawn, gpus=kind.gpus), kind.constraint) for _ in range(mix.batch)]
        at += rng.expovariate(per_second)
    return found


def _pod(rng: random.Random, at_seconds: float, kind: WorkClass, constraint: NodeConstraint) -> Arrival:
    """A pod of a batch; its number is given once all pods are sorted."""
    work = rng.gammavariate(kind.shape, kind.work_seconds / kind.shape)
    return Arrival(0, at_seconds, kind, work, constraint)
