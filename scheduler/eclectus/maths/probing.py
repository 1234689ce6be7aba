"""How many probes to send, and where: Rosella's benchmark dispatcher, for the operator and the simulator.

Q. Wu, Z. Liu, "Rosella", 2020: probes are a Poisson stream of rate

    clamp(c0 (mu_bar - lambda), floor, cap)          tasks/s for all nodes together

each sent to a node drawn uniformly from all nodes, dead ones included, and never in proportion to speed:
only a probe can bring back a node that gets no work. The workload of a probe is drawn by the shares of
recent tasks.

Departure: the paper's "t ~ Poisson(0.1 (mu_bar - lambda))" is a number of events, not a time. Here the gaps
are exponential with that rate.

In plain Python, because the operator's image has no numpy.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf
from random import Random
from typing import TypeVar

Node = TypeVar("Node")


def probe_rate(capacity: float, arrivals: float, share: float, least: float, most: float) -> float:
    """Probes a second, from `least` to `most`; `capacity` is mu_bar, `arrivals` lambda, `share` c0."""
    return min(max(share * (capacity - arrivals), least), most)


def gap_seconds(rng: Random, rate: float) -> float:
    """A random time to the next probe; inf at rate 0."""
    return rng.expovariate(rate) if rate > 0 else inf


def draw_target(rng: Random, nodes: Sequence[Node], shares: Sequence[float]) -> tuple[Node, int] | None:
    """Node and workload of a probe: the node uniform, the workload, by its place in `shares`, by its share.

    None without nodes, or where all shares are 0.
    """
    until = [*accumulate(shares)]
    if not nodes or not until or not until[-1] > 0:
        return None
    workload = bisect_right(until, rng.random() * until[-1])
    return nodes[rng.randrange(len(nodes))], min(workload, len(shares) - 1)
