"""What the experiment on real nodes does: the quotas before and after their change, and the stream."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER, SCHEDULERS
from eclectus_e2e.testbed.realnodes.benchmark_units import units_of_core_seconds
from eclectus_e2e.testbed.realnodes.command import CPU_SHARES

OVERHEAD_SECONDS = 480.0  # of a run without the streams; depends on when probes learn the quotas
CORE_SECONDS = 2.0  # of a pod and of a probe
SYSTEM = "system"  # the node of scheduler and operator, which takes no other pods
SCHEDULER_NAMES = {name: SCHEDULERS[name].scheduler_name for name in (ECLECTUS, KUBE_SCHEDULER)}


def _swapped() -> dict[str, float]:
    """Each fast node changes quotas with a slow one: a factor of four, which raises alarms."""
    slowest, slow, fast, fastest = sorted(CPU_SHARES, key=CPU_SHARES.__getitem__)
    pairs = {slowest: fast, fast: slowest, slow: fastest, fastest: slow}
    return {name: CPU_SHARES[other] for name, other in pairs.items()}


@dataclass(frozen=True)
class Plan:
    """Quotas are shares of one core; no scheduler knows them."""

    seed: int = 1
    quotas: Mapping[str, float] = field(default_factory=lambda: dict(CPU_SHARES))
    changed: Mapping[str, float] = field(default_factory=_swapped)
    load: float = 0.5  # of the rate that the nodes reached while they ran only probes
    seconds: float = 90.0  # of each stream
    # Units of the benchmark in each pod and probe: much more work than the half second in which a container
    # starts and its end is seen, which no quota shortens.
    units: int = field(default_factory=lambda: units_of_core_seconds(CORE_SECONDS))

    def arrivals(self, capacity: float) -> list[float]:
        """Poisson arrivals at `load` of `capacity` pods a second, in seconds; the same for every stream."""
        gaps = random.Random(self.seed)
        at, found = gaps.expovariate(self.load * capacity), []
        while at < self.seconds:
            found.append(at)
            at += gaps.expovariate(self.load * capacity)
        return found

    def __str__(self) -> str:
        changes = ", ".join(
            f"{node} {quota:g} to {self.changed[node]:g}" for node, quota in self.quotas.items()
        )
        return "\n".join(
            [
                f"Real nodes: {len(self.quotas)} kubelets, hidden CPU quotas, seed {self.seed}, "
                f"about {round((OVERHEAD_SECONDS + 4 * self.seconds) / 60)} min",
                f"  probes learn the quotas; then a stream of {self.seconds:.0f} s goes to each of "
                f"{', '.join(SCHEDULER_NAMES)}",
                f"  the same again with changed quotas: {changes}",
                "  pods that start beside a probe, and the same pods without one",
            ]
        )
