"""How many probes to send, and where: Rosella's benchmark dispatcher.

Q. Wu, Z. Liu, "Rosella", 2020: probes are a Poisson stream of rate

    clamp(c0 (mu_bar - lambda), floor, cap)          tasks/s for all nodes together

each sent to a node drawn uniformly from all nodes, dead ones included, and never in proportion to speed:
only a probe can bring back a node that gets no work. The workload of a probe is drawn by the shares of
recent tasks.

Departure: the paper's "t ~ Poisson(0.1 (mu_bar - lambda))" is a number of events, not a time. Here the gaps
are exponential with that rate.
"""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
from numpy.typing import NDArray


def probe_rate(capacity: float, arrivals: float, share: float, least: float, most: float) -> float:
    """Probes a second, from `least` to `most`; `capacity` is mu_bar, `arrivals` lambda, `share` c0."""
    return min(max(share * (capacity - arrivals), least), most)


def gap_seconds(rng: Random, rate: float) -> float:
    """A random time to the next probe; inf at rate 0."""
    return rng.expovariate(rate) if rate > 0 else inf


def draw_cell(rng: Random, rows: NDArray[np.intp], shares: NDArray[np.float64]) -> tuple[int, int] | None:
    """Row and workload of a probe: the row uniform, the workload by its share; None if there is no choice."""
    total = shares.sum()
    if not len(rows) or not total > 0:
        return None
    workload = int(np.searchsorted(np.cumsum(shares), rng.random() * total, side="right"))
    return int(rows[rng.randrange(len(rows))]), min(workload, len(shares) - 1)
