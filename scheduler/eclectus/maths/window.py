"""How many samples, and when a node counts as too slow to wait for: Rosella's window and cut-off.

Q. Wu, Z. Liu, "Rosella", 2020, the performance learner; corrected and capped as in rosella.md 5.2, 5.3.
With n nodes, lambda the arrival rate of tasks and mu_bar what all nodes together can surely do:

    alpha  = lambda / mu_bar, clamped to .05 .. .98          load
    eps    = .3 (1 - alpha)                                  relative error aimed at
    L      = min(cap, ceil(c1 ln(n) (1 + C^2) / eps^2))      samples; C: coefficient of variation of times
    mu*    = c0 (mu_bar - lambda) / n                        slower nodes count as dead, tasks/s
    T_cut  = (1 + e_cut) L / mu*                             in which a node as slow as mu* ends L tasks
    e_cut  = max(eps, (v + sqrt(v^2 + 4 v)) / 2),   v = 2 x ln(n) / L

mu* is also the rate at which an idle node is sent probes, so T_cut is the time in which it should have
ended L of them. Giving up all nodes slower than mu* costs at most the share c0 of the spare capacity.
The margin e_cut solves e^2 / (1 + e) = v: Chernoff's bound then says that an idle but healthy node, its
probes arriving by chance, is cut off with a chance of at most n^-x. The paper's margin, eps alone, would
cut off a third of them at 90 % load once L is capped (rosella.md 5.3), and uncapped L takes weeks to fill.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_LOAD, MAX_LOAD = 0.05, 0.98
LENGTH_FACTOR = (
    2.0  # c1: a chance of about n^(-c1/2) to cut off each of n healthy idle nodes (rosella.md 5.3)
)
MIN_LENGTH = 8
MIN_NODES = 20  # fewer nodes ask for no less certainty: n^-x would be no small chance


def load_ratio(arrivals: float, capacity: float) -> float:
    """alpha; both tasks/s. Nothing known of the capacity counts as full load, the cautious end."""
    share = arrivals / capacity if capacity > 0 else MAX_LOAD
    return min(max(share, MIN_LOAD), MAX_LOAD)


def error_aimed(load: float) -> float:
    """eps."""
    return 0.3 * (1.0 - load)


def window_length(nodes: int, error: float, variation: float, *, most: int) -> int:
    """L, from LENGTH_LEAST to `most`, which goes first; `variation` is C^2."""
    wanted = LENGTH_FACTOR * log(max(nodes, 2)) * (1.0 + variation) / error**2
    return min(most, max(MIN_LENGTH, ceil(min(wanted, float(most)))))


def cut_off_rate(capacity: float, load: float, nodes: int, share: float) -> float:
    """mu*, above 0 because the load is clamped; in the unit of the capacity. `share` is c0."""
    return share * capacity * (1.0 - load) / max(nodes, 1)


def cut_margin(samples: Floats, nodes: int, certainty: float, error: float) -> Floats:
    """e_cut for windows of so many samples; inf without any. `certainty` is x."""
    with np.errstate(divide="ignore"):
        v = 2.0 * unlikelihood(nodes, certainty) / samples
    return np.maximum(error, (v + np.sqrt(v * v + 4.0 * v)) / 2.0)


def cut_seconds(samples: Floats, rate: float, margin: Floats) -> Floats:
    """T_cut."""
    return (1.0 + margin) * samples / rate


def unlikelihood(nodes: int, certainty: float) -> float:
    """x ln(n): the logarithm of how unlikely a thing must be before a node is judged by it."""
    return certainty * log(max(nodes, MIN_NODES))
