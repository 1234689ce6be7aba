"""When waiting for a busy node is better than running on one with room, and for how many tasks.

Used by re-planning (policies/rosella/place/replan.py); the project's own. A task's cost on a node is

    cost = theta * wait + service

A node has c slots of rate r each, and `overflow` tasks must end before one more fits. The m-th further task
that waits for the node costs theta * max(overflow + m, 1) / (c r) + service. The number of tasks for which
this is less than the cost of the best node with room (`limit`) is the number of such m = 0, 1, ...:

    ceil(X - overflow) if X > 1, else 0,    X = (limit - service) c r / theta

in O(nodes), for any number of waiting tasks.

theta, the weight of a second of waiting, stands for what waiting costs other tasks. It is one step of policy
improvement from the policy that takes no node slower than the one with room. With M the pace of all faster
nodes, in tasks a second with all their slots, and lambda tasks arriving a second, these nodes would have the
load u = lambda / M, and a task that joins them delays others in proportion to 1 / (1 - u). So

    theta = 1 / (1 - c min(1, u)),    c = .85

c below 1 bounds theta by 1 / (1 - c) = 6.7. The less the faster nodes suffice for what arrives, the sooner a
node is taken. theta is rounded to a power of `STEP`, so that a ranking for one theta can be used for a while.
(Taking the node at once where u >= 1, as theory has it, had the worse mean: docs/results/rosella.md.)
"""

from __future__ import annotations

from functools import lru_cache
from math import log

import numpy as np

from eclectus.maths.numbers import Floats

CERTAINTY = 0.85  # c
STEP = 1.25  # within which rates and factors count as equal: learned rates are not more precise
LOG_STEP = log(STEP)
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


def weight_of_waiting(load_of_faster: float) -> float:
    """theta, given what arrives over the pace of all nodes faster than the one with room."""
    return float(STEP ** round(-log(1.0 - CERTAINTY * min(load_of_faster, 1.0)) / LOG_STEP))


def step_of(values: Floats) -> Floats:
    """The exponent of the power of STEP nearest to each of these positive values; whole numbers."""
    found: Floats = np.rint(np.log(values) / LOG_STEP)
    return found


def in_steps(values: Floats) -> Floats:
    """The powers of STEP nearest to these positive values."""
    return np.exp(LOG_STEP * step_of(values))


def in_steps_at(value: float) -> float:
    """The same of a single one."""
    return _power(round(log(value) / LOG_STEP))


@lru_cache(maxsize=4096)
def _power(step: int) -> float:
    return float(np.exp(LOG_STEP * step))
