"""Common changes: many nodes change speed at about the same time, and what is known of others is in doubt.

Q. Wu, Z. Liu, "Rosella", 2020, ask how soon a scheduler recovers then. An alarm (maths/cusum.py) needs ends
of tasks on the node itself. Of a node that became faster there are none: it was slow, so nothing is sent
there while its old speed is believed, although others are full. But where every third node has changed
within a short time, the rest have probably changed as well: their samples from before are dropped, and they
count as typical until they have new ones, as after a start.

Only alarms over all workloads of a node count, since those over one may be a change of that workload alone.
With a false alarm of a node in about 1,500 samples, about one node in a hundred has one within the time
that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHARE, LEAST_NODES = 1.0 / 3.0, 3  # of the nodes with samples, and in any case so many
SAMPLES_PER_NODE = 16  # how long an alarm counts; a fourfold change is detected after 10 to 12
ROWS_AT_ONCE = 128  # of which samples are dropped at a fit: those of 5,000 nodes would take a second


class _Alarm(NamedTuple):
    sample: int  # the number of the sample that raised it
    since: float  # when the node changed


class CommonChanges:
    """The newest alarms of one namespace by node, and the rows of which older samples are to be dropped."""

    def __init__(self) -> None:
        self.samples = 0  # taken so far, of all nodes
        self._alarms: dict[int, _Alarm] = {}
        self._outdated: dict[int, float] = {}

    def alarm(self, row: int, since: float, known: NDArray[np.intp]) -> bool:
        """Count an alarm of a whole node; whether it makes a common change. `known`: the rows with samples.

        The nodes that have raised an alarm are judged by their own.
        """
        first = self.samples - SAMPLES_PER_NODE * len(known)
        self._alarms = {each: alarm for each, alarm in self._alarms.items() if alarm.sample > first}
        self._alarms[row] = _Alarm(self.samples, since)
        if len(self._alarms) < max(LEAST_NODES, SHARE * len(known)):
            return False
        at = max(alarm.since for alarm in self._alarms.values())
        self._outdated = {each: at for each in known.tolist() if each not in self._alarms}
        self._alarms.clear()
        return True

    def take_outdated(self) -> Iterator[tuple[int, float]]:
        """The next rows of which samples from before the given time are to be dropped."""
        for row in list(islice(self._outdated, ROWS_AT_ONCE)):
            yield row, self._outdated.pop(row)

    def forget(self, row: int) -> None:
        """The node of this row is gone, or its samples are."""
        self._alarms.pop(row, None)
        self._outdated.pop(row, None)
