"""What the act on real nodes does: who has which quota, before and after they change, and what is sent."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from eclectus_e2e.testbed.realnodes.benchmark_units import units_of_core_seconds
from eclectus_e2e.testbed.realnodes.command import CPU_SHARES

CORE_SECONDS = 2.0  # of a pod and of a probe
SYSTEM = "system"  # the node of the product's own pods, which takes no part
SCHEDULERS = {"eclectus": "eclectus", "kube-scheduler": "default-scheduler"}  # and what pods call them


def _traded() -> dict[str, float]:
    """Each fast node changes places with a slow one: four times as fast, or as slow, which alarms find."""
    slowest, slow, fast, fastest = sorted(CPU_SHARES, key=CPU_SHARES.__getitem__)
    pairs = {slowest: fast, fast: slowest, slow: fastest, fastest: slow}
    return {name: CPU_SHARES[other] for name, other in pairs.items()}


@dataclass(frozen=True)
class Plan:
    """One performance. Quotas are shares of one core, told to no scheduler."""

    seed: int = 1
    quotas: Mapping[str, float] = field(default_factory=lambda: dict(CPU_SHARES))
    changed: Mapping[str, float] = field(default_factory=_traded)
    load: float = 0.5  # of what the nodes were seen to do when they do nothing but work
    seconds: float = 90.0  # of each stream
    # Of the benchmark in each pod and probe: much beside the half second in which a container starts and its
    # end is told, which no quota shortens.
    units: int = field(default_factory=lambda: units_of_core_seconds(CORE_SECONDS))

    def arrivals(self, capacity: float) -> list[float]:
        """Poisson: seconds from the stream's begin, the same for every stream."""
        gaps = random.Random(self.seed)
        at, found = gaps.expovariate(self.load * capacity), []
        while at < self.seconds:
            found.append(at)
            at += gaps.expovariate(self.load * capacity)
        return found
