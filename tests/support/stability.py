"""How loaded a system is whose nodes are fast for some work and slow for other: the matrix of rosella.md 9.4.

    rho = least r with  sum_i x_ic rate_ic >= arrivals_c for all c,   sum_c x_ic <= r for all i,   x >= 0

x_ic is the share of node i's time spent on work c. Below 1 there is a way to serve everything, above 1 there
is none, whatever the policy. Solved in its dual, whose simplex can start at nought:

    greatest  sum_c arrivals_c y_c   with   rate_ic y_c <= w_i,   sum_i w_i <= 1,   y, w >= 0

The two agree, and `balance` checks that they do: each answer carries the proof that it is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EXACT, PROVEN = 1e-11, 1e-7


@dataclass(frozen=True)
class Balance:
    """The best use of all nodes."""

    load: float  # rho
    shares: Floats  # x, shape [nodes, kinds of work]


def balance(rate: Floats, arrivals: Floats) -> Balance:
    """rho and x; `rate` in tasks/s of the whole node, shape [nodes, kinds of work], `arrivals` in tasks/s."""
    nodes, kinds = rate.shape
    cells = [(i, c) for i in range(nodes) for c in range(kinds)]
    matrix, bound = np.zeros((len(cells) + 1, kinds + nodes)), np.zeros(len(cells) + 1)
    for at, (i, c) in enumerate(cells):
        matrix[at, c], matrix[at, kinds + i] = rate[i, c], -1.0
    matrix[-1, kinds:], bound[-1] = 1.0, 1.0
    gain = np.concatenate([arrivals, np.zeros(nodes)])
    found, prices = _greatest(gain, matrix, bound)
    shares = prices[:-1].reshape(nodes, kinds)
    load, scale = float(gain @ found), float(arrivals.max())
    assert (matrix @ found <= bound + PROVEN).all(), "the prices break a rule"
    assert (shares >= -EXACT * load).all(), "a node would spend less than no time on some work"
    assert ((shares * rate).sum(axis=0) >= arrivals - PROVEN * scale).all(), "work is left undone"
    assert (shares.sum(axis=1) <= load * (1 + PROVEN)).all(), "a node is loaded more than is said"
    return Balance(load, shares)


def _greatest(gain: Floats, matrix: Floats, bound: Floats) -> tuple[Floats, Floats]:
    """Greatest gain x, matrix x <= bound, x >= 0; x and row prices. The revised simplex, by Bland's rule."""
    rows, columns = matrix.shape
    every, gains = np.hstack([matrix, np.eye(rows)]), np.concatenate([gain, np.zeros(rows)])
    basis = list(range(columns, columns + rows))
    while True:
        prices = np.linalg.solve(every[:, basis].T, gains[basis])
        entering = np.flatnonzero(prices @ every - gains < -EXACT * gain.max())
        values = np.linalg.solve(every[:, basis], bound)
        if not entering.size:
            found = np.zeros(columns + rows)
            found[basis] = values
            return found[:columns], prices
        column = int(entering[0])
        change = np.linalg.solve(every[:, basis], every[:, column])
        usable = np.flatnonzero(change > EXACT)
        steps = np.maximum(values[usable], 0.0) / change[usable]
        ties = usable[steps <= steps.min() + EXACT * EXACT]
        basis[min(ties.tolist(), key=basis.__getitem__)] = column
