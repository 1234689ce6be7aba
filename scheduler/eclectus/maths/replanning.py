"""Re-planning: for how many tasks waiting is better than a node with room, and what a task is worth.

Used by re-planning (policies/rosella/replan.py); the project's own. A task's cost on a node is

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
(Taking the node at once where u >= 1, as theory has it, had the worse mean: docs/results/rosella-rules.md.)
"""

from functools import lru_cache
from math import log

import numpy as np

from eclectus.maths.numbers import Floats, sum_of_products

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


# What a task of each class is worth, and how much is lost where a node serves one class instead of another.
#
# Used by re-planning; the project's own. `pace[i, j]` is what a node of group j does of class i, tasks a
# second with all its slots, 0 where the class may not run. The least load under which all work is done is
#
#     rho = least r with  sum_j x_ij nodes_j pace_ij >= arrivals_i,   sum_i x_ij <= r,   x >= 0
#
# x_ij being the share of its time that group j spends on class i. Its dual gives each class a worth w_i, the
# worth of a task, and each node the worth y_j of what it can do in a second:
#
#     rho = greatest  sum_i arrivals_i w_i / sum_j nodes_j y_j,   y_j = max_i w_i pace_ij
#
# A node that serves class i instead of what it is best used for loses the share 1 - w_i pace_ij / y_j of what
# it could do: the disadvantage of class i there. Where all nodes rank all classes alike (related machines) it
# is 0 everywhere, and no node is kept for anything.
#
# The worths are found by iteration, so that a few steps from the last result suffice: each group's time is
# shared among the classes in proportion to (w_i pace_ij)^SHARPNESS, and the worth of a class of which too
# little would be done rises until all have the same ratio of arrivals to what would be done. That ratio is
# the load of each class: rho where they share nodes, within a few per cent; where two classes share none,
# each has its own.

SQUARINGS = 3  # from a value to its power SHARPNESS: seven times as fast as `**`
SHARPNESS = 2.0**SQUARINGS  # a node worth 10 % more to one class than to another spends twice the time on it
MAX_WORTH = 1e6  # of a class, relative to that of its share of an average node: where others cannot help out
TINY = float(np.finfo(float).tiny)
NOTICEABLE = 2.0  # less than a twofold disadvantage is within the errors of learned rates


def plain_worth(pace: Floats, nodes: Floats) -> Floats:
    """The worth of a task as if all nodes were for its class: exact for related machines; shape [classes].

    `pace` [classes, groups] with a positive number for each class; `nodes` [groups], how many there are.
    """
    worth: Floats = 1.0 / sum_of_products(pace, nodes)
    return worth


def improved_worth(
    worth: Floats, pace: Floats, nodes: Floats, arrivals: Floats, steps: int
) -> tuple[Floats, Floats]:
    """The worth of a task after `steps` more steps, and the load of each class; shape [classes] each.

    `arrivals` [classes], tasks a second, all positive.
    """
    plain = plain_worth(pace, nodes)
    ratio = arrivals / _done(worth, pace, nodes)
    for _ in range(steps):
        change = (ratio / ratio.max()) ** (1.0 / (1.0 + SHARPNESS))
        worth = np.clip(worth * change / plain, 1.0 / MAX_WORTH, MAX_WORTH) * plain
        worth /= (worth / plain).max()
        ratio = arrivals / _done(worth, pace, nodes)
    return worth, ratio


def _done(worth: Floats, pace: Floats, nodes: Floats) -> Floats:
    """Tasks a second of each class, if nodes share their time by what it is worth."""
    # In place: new arrays of this size would cost more than the arithmetic.
    share = _use(worth, pace)
    for _ in range(SQUARINGS):
        np.square(share, out=share)
    total = np.maximum(share.sum(axis=0), 1.0)
    share *= pace
    share /= total
    done: Floats = sum_of_products(share, nodes)
    return np.maximum(done, TINY)


def _use(worth: Floats, pace: Floats) -> Floats:
    """What each group does for each class, over the most that it could do, 0..1, shape [classes, groups]."""
    value = worth[:, None] * pace
    value /= np.maximum(value.max(axis=0), TINY)
    return value


def disadvantage(worth: Floats, pace: Floats) -> Floats:
    """The share that is lost where a group serves a class, 0..1, shape [classes, groups].

    Relative to the groups that the class is best for: the iteration leaves a rare class a worth below that at
    which a node would serve it. Only what exceeds a twofold disadvantage counts, from 0 there towards 1. 0
    where the class may not run, which needs no price.
    """
    kept = _use(worth, pace)
    kept /= kept.max(axis=1, keepdims=True)
    kept *= NOTICEABLE
    counted: Floats = np.maximum(0.0, 1.0 - kept)
    counted[pace <= 0.0] = 0.0
    return counted
