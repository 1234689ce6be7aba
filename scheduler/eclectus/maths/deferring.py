"""When waiting for a busy node is better than running on one with room, and for how many tasks.

Used by re-planning (policies/rosella/place/replan.py); the project's own. A task's cost on a node is

    cost = theta * wait + service

A node has c slots of rate r each, and `overflow` tasks must end before one more fits. The m-th further task
that waits for the node costs theta * max(overflow + m, 1) / (c r) + service. The number of tasks for which
this is less than the cost of the best node with room (`limit`) is the number of such m = 0, 1, ...:

    ceil(X - overflow) if X > 1, else 0,    X = (limit - service) c r / theta

in O(nodes), for any number of waiting tasks.

theta, the weight of a second of waiting, stands for what waiting costs other tasks. The higher the load,
the longer others wait while a slow node stays idle. The more slots a node has, the sooner one of them is
free, and the shorter are the waits that are weighed. Fitted to measurements (docs/placement.md):

    theta = min(4, 1 + .5 c^.6 (a / (1 - a))^.8)            c slots per node, a the load, at most .98

in steps of a tenth, so that a ranking for one theta can be used for a while. The bound of 4 is for nodes
that are good at different workloads. There, a task that takes any free node often takes one that it is slow
on, so less work is done, and load and theta rise further: with two workloads, queues grow without end at
three quarters of the capacity if theta is 10, and do not if it is 4. Equal nodes with many slots would do
better with more.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.products import sum_of_products

Floats = NDArray[np.float64]

MAX_LOAD = 0.98
MAX_THETA = 4.0
STEP = 1.1
UNLIMITED = 10**9  # if nodes with room have speed 0, waiting is better for any number of tasks


def worth_waiting(theta: float, overflow: Floats, pace: Floats, service: Floats, limit: float) -> int:
    """The number of tasks for which waiting for one of these busy nodes is better than a node with room.

    `pace` is c r, tasks a second. `service` and `limit` in seconds; `limit` is the cost of the node with
    room.
    """
    better = service < limit
    reach = (limit - service[better]) * pace[better] / theta
    tasks = np.where(reach > 1.0, np.maximum(np.ceil(reach - overflow[better]), 0.0), 0.0)
    return int(min(tasks.sum(), UNLIMITED))


def weight_of_waiting(load: float, slots: float) -> float:
    """theta, rounded to a power of STEP, at most MAX_THETA."""
    load = min(load, MAX_LOAD)
    theta = 1.0 + 0.5 * slots**0.6 * (load / (1.0 - load)) ** 0.8
    return min(float(STEP ** round(log(theta, STEP))), MAX_THETA)


def pace_in_use(queue: Floats, slots: Floats, rate: Floats) -> float:
    """The share of the nodes' service capacity in use, 0..1; its mean over time is the load.

    `queue`: tasks running or queued at each node. 1 if there is no capacity.
    """
    pace = float(sum_of_products(slots, rate))
    in_use = np.clip(queue, 0.0, slots)
    return float(sum_of_products(in_use, rate)) / pace if pace > 0 else 1.0
