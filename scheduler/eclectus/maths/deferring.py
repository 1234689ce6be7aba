"""When waiting for a busy node is better than running on one with room, and for how many.

A central queue leaves a slow node idle only while a fast one will be free much sooner. With

    cost = theta * wait + service

of c slots of rate r each, in which `over` more tasks must end before the next fits, the m-th further
task that waits for the node costs theta * max(over + m, 1) / (c r) + service. So the tasks for which that is
less than what the best node with room costs are as many as there are such m = 0, 1, …:

    ceil(X - over) if X > 1, else none,    X = (limit - service) c r / theta

O(nodes) for any number of waiting tasks.

What a second of waiting weighs, theta, is what it costs everybody: the fuller the nodes, the longer others
wait for whom a slow node stands idle; and the more slots a node has, the sooner one of them is free, so the
shorter are the waits that are weighed. Found by measurement (docs/placement.md):

    theta = min(4, 1 + .5 c^.6 (a / (1 - a))^.8)            c slots a node, a the load, at most .98

in steps of a tenth, so that what is kept for one theta serves for a while. It stops at 4, though alike nodes
of many slots would do better with more: where each node is good at other work, whoever takes what is
free takes what it is bad at, so that less is done, the load grows and theta with it. With two kinds of work
queues grow without end at three quarters of what can be done if theta is 10, and do not if it is 4.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_LOAD = 0.98
MAX_THETA = 4.0
STEP = 1.1
UNLIMITED = 10**9  # stands for any number: nodes with room that do no work are worse than any wait


def worth_waiting(theta: float, over: Floats, pace: Floats, service: Floats, limit: float) -> int:
    """How many tasks may wait for these busy nodes before a node with room is as good.

    `pace` is c r, tasks a second; `service` and `limit` in seconds, `limit` what the node with room costs.
    """
    better = service < limit
    reach = (limit - service[better]) * pace[better] / theta
    places = np.where(reach > 1.0, np.maximum(np.ceil(reach - over[better]), 0.0), 0.0)
    return int(min(places.sum(), UNLIMITED))


def weight_of_waiting(load: float, slots: float) -> float:
    """theta, a power of STEP up to THETA_MOST."""
    load = min(load, MAX_LOAD)
    theta = 1.0 + 0.5 * slots**0.6 * (load / (1.0 - load)) ** 0.8
    return min(float(STEP ** round(log(theta, STEP))), MAX_THETA)


def pace_in_use(queue: Floats, slots: Floats, rate: Floats) -> float:
    """The share of what all nodes can do that is in use, 0..1; in the mean over time it is the load.

    `queue` counts running tasks and those meant for the node. Nothing that can be done counts as full.
    """
    pace = float(slots @ rate)
    return float(np.clip(queue, 0.0, slots) @ rate) / pace if pace > 0 else 1.0
