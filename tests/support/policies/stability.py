"""The load of a system whose nodes are fast for some classes and slow for others, by a linear program.

    rho = least r with  sum_i x_ic rate_ic >= arrivals_c for all c,   sum_c x_ic <= r for all i,   x >= 0

x_ic is the share of node i's time spent on class c. Below 1 the system can be stable, above 1 it cannot be
under any policy. Solved in its dual, for which the simplex method can start at zero:

    greatest  sum_c arrivals_c y_c   with   rate_ic y_c <= w_i,   sum_i w_i <= 1,   y, w >= 0

`balance` checks that primal and dual agree, which proves that the result is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EXACT, PROVEN = 1e-11, 1e-7


@dataclass(frozen=True)
class Balance:
    """The optimal use of all nodes."""

    load: float  # rho
    shares: Floats  # x, shape [nodes, classes]


def balance(rate: Floats, arrivals: Floats) -> Balance:
    """rho and x; `rate` in tasks/s of the whole node, shape [nodes, classes], `arrivals` in tasks/s."""
    nodes, classes = rate.shape
    cells = [(i, c) for i in range(nodes) for c in range(classes)]
    matrix, bound = np.zeros((len(cells) + 1, classes + nodes)), np.zeros(len(cells) + 1)
    for at, (i, c) in enumerate(cells):
        matrix[at, c], matrix[at, classes + i] = rate[i, c], -1.0
    matrix[-1, classes:], bound[-1] = 1.0, 1.0
    gain = np.concatenate([arrivals, np.zeros(nodes)])
    found, prices = _maximum(gain, matrix, bound)
    shares = prices[:-1].reshape(nodes, classes)
    load, scale = float(gain @ found), float(arrivals.max())
    assert (matrix @ found <= bound + PROVEN).all(), "the prices violate a constraint"
    assert (shares >= -EXACT * load).all(), "a share is negative"
    assert ((shares * rate).sum(axis=0) >= arrivals - PROVEN * scale).all(), "some work is not served"
    assert (shares.sum(axis=1) <= load * (1 + PROVEN)).all(), "the load of a node exceeds rho"
    return Balance(load, shares)


def _maximum(gain: Floats, matrix: Floats, bound: Floats) -> tuple[Floats, Floats]:
    """Maximises gain x under matrix x <= bound, x >= 0; x and row prices. Revised simplex, Bland's rule."""
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
