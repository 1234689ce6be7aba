"""How many probes to send, and where: Rosella's benchmark dispatcher.

Q. Wu, Z. Liu, "Rosella", 2020, as corrected in rosella.md 5.1 and 6: probes are a Poisson stream of rate

    clamp(c0 (mu_bar - lambda), floor, cap)          tasks/s for all nodes together

each to a node drawn uniformly from all of them, those that count as dead among them, never in proportion
to speed: only a probe can bring back a node that gets no work. The work of a probe is that of recent
tasks, in their proportions.

Departure: the paper's "t ~ Poisson(0.1 (mu_bar - lambda))" is a number of events, not a time; gaps are
exponential with that rate.
"""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
from numpy.typing import NDArray


def probe_rate(capacity: float, arrivals: float, share: float, least: float, most: float) -> float:
    """Probes a second; `capacity` is mu_bar, `share` c0."""
    return min(max(share * (capacity - arrivals), least), most)


def gap_seconds(rng: Random, rate: float) -> float:
    """The time to the next probe; inf where none is to be sent."""
    return rng.expovariate(rate) if rate > 0 else inf


def draw_cell(rng: Random, rows: NDArray[np.intp], shares: NDArray[np.float64]) -> tuple[int, int] | None:
    """The row and the workload of a probe: a uniform one of `rows`, one by its share; None without either."""
    total = shares.sum()
    if not len(rows) or not total > 0:
        return None
    workload = int(np.searchsorted(np.cumsum(shares), rng.random() * total, side="right"))
    return int(rows[rng.randrange(len(rows))]), min(workload, len(shares) - 1)
