"""By how much longer a task counts as running on nodes that others need, who can run on few.

The prices are those of `place: phoenix` (accounts/node_prices.py; Phoenix, ICDCS 2017). A task compares the
price of each node with the least among its own nodes: what its own constraints demand adds the same to all of
these, so only what others want is left, and nothing changes for a task that has nowhere else to go.

    factor = 1 + min(price - least price, MAX_SURCHARGE)

Tasks with preferences have no such factor: what they prefer is part of the price of the nodes that they
prefer, and would push them away from these.
"""

from __future__ import annotations

import numpy as np

from eclectus.framework import Floats, TaskClass, View

MAX_SURCHARGE = 3.0  # so no tenant's pods can make a node count as more than four times as slow for others


class ScarcityFactors:
    """Factors by class, computed once for each epoch of the prices and shape of the nodes."""

    def of(self, view: View, task_class: TaskClass) -> Floats | None:
        """By row, 1 and more; None if it is 1 everywhere. Shape [capacity]."""
        prices = view.node_prices()
        key = (prices.epoch, view.cluster.shape.head, view.cluster.service_changes)
        known: tuple[object, Floats | None] | None = task_class.derived.get(self)
        if known is None or known[0] != key:
            known = task_class.derived[self] = (key, _factor(task_class, prices.price))
        return known[1]


def _factor(task_class: TaskClass, price: Floats) -> Floats | None:
    rows = task_class.waitable_rows
    if task_class.spec.preferences or not len(rows):
        return None
    least = float(price[rows].min())
    if float(price[rows].max()) == least:
        return None
    return 1.0 + np.clip(price - least, 0.0, MAX_SURCHARGE)
