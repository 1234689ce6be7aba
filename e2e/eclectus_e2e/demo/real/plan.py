"""What the act on real nodes does: who has which quota, before and after they change, and what is sent."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from eclectus_e2e.testbed.realnodes.command import SHARES
from eclectus_e2e.testbed.realnodes.pace import timed_units

CORE_SECONDS = 2.0  # of a pod and of a probe
SYSTEM = "system"  # the node of the product's own pods, which takes no part
SCHEDULER_NAMES = {"eclectus": "eclectus", "kube-scheduler": "default-scheduler"}  # and what pods call them


def _swapped() -> dict[str, float]:
    """Each fast node changes places with a slow one: four times as fast, or as slow, which alarms find."""
    slowest, slow, fast, fastest = sorted(SHARES, key=SHARES.__getitem__)
    pairs = {slowest: fast, fast: slowest, slow: fastest, fastest: slow}
    return {name: SHARES[other] for name, other in pairs.items()}


@dataclass(frozen=True)
class Plan:
    """One performance. Quotas are shares of one core, told to no scheduler."""

    seed: int = 1
    quotas: Mapping[str, float] = field(default_factory=lambda: dict(SHARES))
    changed: Mapping[str, float] = field(default_factory=_swapped)
    load: float = 0.5  # of what the nodes were seen to do when they do nothing but work
    seconds: float = 90.0  # of each stream
    # Of the benchmark in each pod and probe: much beside the half second in which a container starts and its
    # end is told, which no quota shortens.
    units: int = field(default_factory=lambda: timed_units(CORE_SECONDS))

    def arrivals(self, capacity: float) -> list[float]:
        """Poisson: seconds from the stream's begin, the same for every stream."""
        gaps = random.Random(self.seed)
        at, found = gaps.expovariate(self.load * capacity), []
        while at < self.seconds:
            found.append(at)
            at += gaps.expovariate(self.load * capacity)
        return found
