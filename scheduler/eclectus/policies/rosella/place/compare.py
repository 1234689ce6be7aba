"""Three ways to compare nodes; the smaller key wins, a tie goes to the faster node.

For a node of k slots, each serving `rate` tasks a second, with q tasks running or meant for it:

    sq    q / k                              the paper's rule: shortest queue
    wait  max(0, q - k + 1) / (k rate idle)  time until a slot is free; 0 on every idle node
    sed   wait + 1 / rate                    shortest expected delay: until the task has ended

`idle` is the share of the node that background load leaves, 1 where none is known (live/load_signal.py).
With k = 1 and no such load they are q, q / mu and (q + 1) / mu. q - k + 1 is the overflow of the class.

Each is written once, for one node and for many: `at` is a row, `nodes` a class's numbers and `m` the
module maths/numbers.py; or `at` is an array of rows, `nodes` the class itself and `m` numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from eclectus.maths.numbers import Arithmetic


class Nodes(Protocol):
    """What keys are made of: a TaskClass, or its `numbers`."""

    @property
    def fits_now(self) -> Any:
        """Whether there is room now."""

    @property
    def overflow(self) -> Any:
        """The overflow."""

    @property
    def service_slots(self) -> Any:
        """Tasks that fit beside services."""

    @property
    def background_free(self) -> Any:
        """The share of a node that background load leaves."""


Key = Callable[[Arithmetic, Nodes, Any, Any], Any]
"""key(m, nodes, rate, at); `rate` is indexed by row as `nodes` is."""


def shortest_queue(m: Arithmetic, nodes: Nodes, rate: Any, at: Any) -> Any:
    """Tasks a slot; inf where services have left no slot."""
    del rate
    slots = nodes.service_slots[at]
    queue = m.maximum(nodes.overflow[at] + slots - 1.0, 0.0)
    return m.where(slots > 0, m.divide(queue, slots), inf)


def least_wait(m: Arithmetic, nodes: Nodes, rate: Any, at: Any) -> Any:
    """Seconds until one more task of the class fits; inf where it never will by waiting for tasks to end."""
    missing = m.where(nodes.fits_now[at], 0.0, m.maximum(nodes.overflow[at], 1.0))
    # Nothing takes no time even at speed 0, something takes for ever.
    return m.where(
        missing > 0, m.divide(missing, nodes.service_slots[at] * rate[at] * nodes.background_free[at]), 0.0
    )


def shortest_delay(m: Arithmetic, nodes: Nodes, rate: Any, at: Any) -> Any:
    """Seconds until the task would have ended."""
    return least_wait(m, nodes, rate, at) + m.divide(1.0, rate[at])


KEYS: dict[str, Key] = {"sq": shortest_queue, "wait": least_wait, "sed": shortest_delay}
