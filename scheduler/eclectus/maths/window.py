"""How many samples to keep, and when a node counts as too slow to use: Rosella's window and cut-off.

Q. Wu, Z. Liu, "Rosella", 2020, the performance learner, with a cap and corrections. With n nodes, lambda the
arrival rate of tasks and mu_bar the guaranteed capacity of all nodes together:

    alpha  = lambda / mu_bar, clamped to .05 .. .98          load
    eps    = .3 (1 - alpha)                                  target relative error
    L      = min(cap, ceil(c1 ln(n) (1 + C^2) / eps^2))      samples; C: coefficient of variation of times
    mu*    = c0 (mu_bar - lambda) / n                        slower nodes count as dead, tasks/s
    T_cut  = (1 + e_cut) L / mu*                             time in which a node of speed mu* ends L tasks
    e_cut  = max(eps, (v + sqrt(v^2 + 4 v)) / 2),   v = 2 x ln(n) / L

mu* is also the rate at which an idle node is sent probes, so T_cut is the time in which it should have
ended L of them. Not using any node slower than mu* costs at most the share c0 of the spare capacity. The
margin e_cut solves e^2 / (1 + e) = v: by Chernoff's bound an idle but healthy node, whose probes arrive at
random, is then cut off with probability at most n^-x. With the paper's margin, eps alone, a third of them
would be cut off at 90 % load once L is capped; without a cap L takes weeks to fill (docs/rosella.md,
departures).
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from eclectus.maths.numbers import Floats

MIN_LOAD, MAX_LOAD = 0.05, 0.98
LENGTH_FACTOR = 2.0  # c1: each of n healthy idle nodes is cut off with probability of about n^(-c1/2)
MIN_LENGTH = 8
MIN_NODES = 20  # counted at least: for fewer nodes n^-x would not be a small probability


def load_ratio(arrivals: float, capacity: float) -> float:
    """alpha, from rates in tasks/s. An unknown capacity (0) counts as full load, to be cautious."""
    share = arrivals / capacity if capacity > 0 else MAX_LOAD
    return min(max(share, MIN_LOAD), MAX_LOAD)


def error_aimed(load: float) -> float:
    """eps, the target relative error of rates."""
    return 0.3 * (1.0 - load)


def window_length(nodes: int, error: float, variation: float, *, most: int) -> int:
    """L, from MIN_LENGTH to `most`; `most` takes precedence. `variation` is C^2."""
    wanted = LENGTH_FACTOR * log(max(nodes, 2)) * (1.0 + variation) / error**2
    return min(most, max(MIN_LENGTH, ceil(min(wanted, float(most)))))


def cut_off_rate(capacity: float, load: float, nodes: int, share: float) -> float:
    """mu*, in the unit of the capacity; above 0, because the load is clamped. `share` is c0."""
    return share * capacity * (1.0 - load) / max(nodes, 1)


def cut_margin(samples: Floats, nodes: int, certainty: float, error: float) -> Floats:
    """e_cut for windows of these numbers of samples; inf for 0. `certainty` is x, `error` eps."""
    with np.errstate(divide="ignore"):
        v = 2.0 * unlikelihood(nodes, certainty) / samples
    return np.maximum(error, (v + np.sqrt(v * v + 4.0 * v)) / 2.0)


def cut_seconds(samples: Floats, rate: float, margin: Floats) -> Floats:
    """T_cut, seconds."""
    return (1.0 + margin) * samples / rate


def unlikelihood(nodes: int, certainty: float) -> float:
    """x ln(n): minus the logarithm of the probability n^-x of judging a healthy node wrongly."""
    return certainty * log(max(nodes, MIN_NODES))
