"""When waiting for a busy node is better than running on one with room, and for how many.

A central queue leaves a slow node idle only while a fast one will be free much sooner. With

    cost = theta * wait + service

of c slots of rate r each, in which `over` more tasks must end before the next fits, the m-th further
task that waits for the node costs theta * max(over + m, 1) / (c r) + service. So the tasks for which that is
less than what the best node with room costs are as many as there are such m = 0, 1, …:

    ceil(X - over) if X > 1, else none,    X = (limit - service) c r / theta

O(nodes) for any number of waiting tasks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 10**9  # stands for any number: nodes with room that do no work are worse than any wait


def worth_waiting(theta: float, over: Floats, pace: Floats, service: Floats, limit: float) -> int:
    """How many tasks may wait for these busy nodes before a node with room is as good.

    `pace` is c r, tasks a second; `service` and `limit` in seconds, `limit` what the node with room costs.
    """
    better = service < limit
    reach = (limit - service[better]) * pace[better] / theta
    places = np.where(reach > 1.0, np.maximum(np.ceil(reach - over[better]), 0.0), 0.0)
    return int(min(places.sum(), MOST))
