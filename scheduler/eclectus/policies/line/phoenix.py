"""Phoenix's node queues: short tasks whose constraints are contended go first, within Eagle's limits.

Thinakaran, Gunasekaran, Sharma, Kandemir, Das, "Phoenix: A Constraint-aware Scheduler for Heterogeneous
Datacenters", ICDCS 2017: Eagle, whose queues are reordered by a Constraint Resource Vector (CRV), the demand
for nodes with certain properties over their supply. While nodes are busy and a constraint is contended, the
reservation with the highest ratio goes first, of equal ones that with the least remaining work; otherwise the
queue is Eagle's (`srpt`). Limits on overtaking and long tasks at the head are Eagle's in both cases. Use it
with `place: {policy: eagle}`.

The order takes from some what it gives to others: pods without constraints wait longer.

The paper's formulas and thresholds are not public. What is chosen here, beside the departures of `srpt`:
- ratios are those of whole sets of constraints (`maths/contention.py`), smoothed over heartbeats;
- pods without constraints have the ratio 0;
- messages take no time, so ratios are those of the last heartbeat at every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from eclectus.framework import Reservation, Setting, View
from eclectus.policies.shared.contended_classes import ContendedClasses
from eclectus.policies.shared.hybrids import OvertakingLine, Rank


@dataclass(eq=False)
class ContendedFirst(OvertakingLine):
    """The most contended constraints first, then the shortest remaining work, with a limit on overtaking."""

    heartbeat: Annotated[
        float,
        Setting(
            "time between two measurements of demand and supply",
            unit="s",
            why="the monitor interval of Eagle's published commands",
            least=0.1,
        ),
    ] = 5.0
    busy: Annotated[
        float,
        Setting(
            "utilisation up to which queues stay in Eagle's order",
            why="as in the public simulator; below it hardly anything waits",
            least=0,
            most=1,
        ),
    ] = 0.8
    contended: Annotated[
        float,
        Setting(
            "tasks that wait for a free slot of their constraints up to which queues stay in Eagle's order",
            why="with less there is a slot for everybody",
            least=0,
        ),
    ] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._classes = ContendedClasses(self.heartbeat)

    def rank(self, view: View, reservation: Reservation, remaining_seconds: float) -> Rank:
        """By contention where the queues are reordered; by remaining work where they are not, or at a tie."""
        classes = self._classes
        classes.refresh(view)
        if classes.utilisation <= self.busy or classes.highest <= self.contended:
            return (0.0, remaining_seconds)
        return (-classes.ratios.get(reservation.class_key, 0.0), remaining_seconds)
