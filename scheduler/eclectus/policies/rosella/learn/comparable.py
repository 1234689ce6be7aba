"""With which ended tasks a running one may be compared: those of the same workload and the same requests.

Pods of one image that ask for different resources may run for seconds or for hours. A task says nothing of
its node by its silence before one with the same requests has ended anywhere. Where a workload has had
several requests, the expected time of a task is that of its own kind, if that is longer.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf

MOST_SHAPES = 16  # of a workload: pods may ask for anything, and each shape counts all its samples


class EndedShapes:
    """Weight and time of the ended tasks of one namespace, by shape."""

    def __init__(self) -> None:
        # workload -> requests -> weight, mean seconds
        self._ended: dict[int, dict[Hashable, list[float]]] = {}

    def add(self, workload: int, requests: Hashable, weight: float, seconds: float) -> None:
        """A task has ended after so many seconds. Beyond the bound, the shape of least weight is dropped."""
        shapes = self._ended.setdefault(workload, {})
        ended = shapes.setdefault(requests, [0.0, 0.0])
        ended[0] += weight
        ended[1] += weight / ended[0] * (seconds - ended[1])
        if len(shapes) > MOST_SHAPES:
            del shapes[min((each for each in shapes if each != requests), key=lambda each: shapes[each][0])]

    def forget(self, workload: int) -> None:
        """No task of this workload has ended."""
        self._ended.pop(workload, None)

    def fade(self, share: float) -> None:
        """Multiply all weights by this."""
        for shapes in self._ended.values():
            for ended in shapes.values():
                ended[0] *= share

    def mixed(self) -> list[int]:
        """The workloads of which tasks with different requests have ended."""
        return [workload for workload, shapes in self._ended.items() if len(shapes) > 1]

    def pace(self, workload: int, requests: Hashable) -> float | None:
        """The most tasks a second that are expected of such tasks; None if none of them has ended.

        inf where all ended tasks of the workload had these requests: its rate says how long one takes.
        """
        shapes = self._ended.get(workload, {})
        ended = shapes.get(requests)
        if ended is None:
            return None
        return inf if len(shapes) == 1 else 1.0 / ended[1]
