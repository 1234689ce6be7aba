"""Three ways to compare two nodes; the smaller key wins, a tie goes to the faster node.

For a node of k slots, each serving `rate` tasks a second, with q tasks running or meant for it:

    sq    q / k                              the paper's rule: shortest queue
    wait  max(0, q - k + 1) / (k rate)       time until a slot is free; 0 on every idle node
    sed   wait + 1 / rate                    shortest expected delay: until the task has ended

With k = 1 they are q, q / mu and (q + 1) / mu. q - k + 1 is the overflow of the task's class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eclectus.core.journal import Rows
from eclectus.feasibility.classes import Floats, TaskClass

Key = Callable[[TaskClass, Floats, Rows], Floats]


def shortest_queue(task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
    """Tasks a slot; inf where services have left no slot."""
    del rate
    slots = task_class.slots[rows]
    return np.where(slots > 0, task_class.queue(rows) / slots, np.inf)


def least_wait(task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
    """Seconds until one more task of the class fits; inf where it never will by waiting for tasks to end."""
    missing = np.where(task_class.open[rows], 0.0, np.maximum(task_class.over[rows], 1.0))
    return _over(missing, task_class.slots[rows] * rate[rows])


def shortest_delay(task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
    """Seconds until the task would have ended."""
    return least_wait(task_class, rate, rows) + _over(np.ones(len(rows)), rate[rows])


KEYS: dict[str, Key] = {"sq": shortest_queue, "wait": least_wait, "sed": shortest_delay}


def _over(amount: Floats, speed: Floats) -> Floats:
    """amount / speed; nothing takes no time even at speed 0, something takes for ever."""
    return np.where(amount > 0, amount / speed, 0.0)
