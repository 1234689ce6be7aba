"""How long a task waits for the nodes that it prefers, by what its work gains there, as learned.

Rates say how much faster the class of work runs on preferred nodes than on the one at hand. Without a gain
nothing waits: a preference then only chooses among nodes with room.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from eclectus.framework import Floats, Rows, Task, TaskClass, View
from eclectus.maths.negotiation import relaxes

MAX_WAITING = 64  # tasks of a class that wait for preferred nodes; each is asked about in every cycle
CHANGES = 256  # of usage, with which rates of single nodes change, until the nodes are looked at again

Position = tuple[int, int, int, int]


class _Preferred(NamedTuple):
    """The nodes of a class that meet its preferences best."""

    known_at: Position  # in the changes of what it was computed from
    score: float
    slots: float
    service_seconds: float
    others_seconds: float  # mean run time on the other nodes of the class


class PreferredNodes:
    """Computes the nodes once for each class and change of rates, labels or services. O(nodes) then."""

    def waits_until(self, view: View, task: Task, task_class: TaskClass, row: int, ahead: int) -> float:
        """When the task takes this row, the best with room, at the latest, seconds; -inf: at once.

        `ahead`: tasks of its class that wait for preferred nodes before it.
        """
        if task.spec.long_running or ahead >= MAX_WAITING:
            return -inf
        preferred = self._of(view, task_class)
        is_preferred = task_class.scalars.preference_score[row] >= preferred.score
        if is_preferred or preferred.service_seconds == inf:
            return -inf
        service_seconds = preferred.service_seconds
        # The mean of many nodes is known better than the rate of one, and a node that only seems to be slow
        # must not keep the task waiting.
        rate = float(view.speeds(task_class).rate[row])
        elsewhere_seconds = min(1.0 / rate if rate else inf, preferred.others_seconds)
        # All preferred slots are busy: one of them is free after a mean service time over their number.
        wait_seconds = (ahead + 1) * service_seconds / preferred.slots
        since = view.deferred_since.get(task.uid)
        is_relaxed = relaxes(
            wait_seconds,
            service_seconds,
            elsewhere_seconds=elsewhere_seconds,
            is_waiting=since is not None,
        )
        # Other classes may come first, so what is gained bounds the wait, whatever was expected.
        gained_seconds = elsewhere_seconds - service_seconds
        return -inf if is_relaxed else (view.now if since is None else since) + gained_seconds

    def _of(self, view: View, task_class: TaskClass) -> _Preferred:
        speeds, cluster = view.speeds(task_class), view.cluster
        known_at = (
            speeds.epoch,
            cluster.shape.head,
            cluster.service_changes,
            cluster.usage.head // CHANGES,
        )
        found: _Preferred | None = task_class.derived.get(self)
        if found is None or found.known_at != known_at:
            found = task_class.derived[self] = _preferred(task_class, speeds.rate, known_at)
        return found


def _preferred(task_class: TaskClass, rate: Floats, known_at: Position) -> _Preferred:
    rows = task_class.waitable_rows
    score = task_class.preference_score[rows]
    best = float(score.max(initial=0.0))
    preferred, others = rows[score == best], rows[score < best]
    slots = float(task_class.service_slots[preferred].sum())
    seconds, others_seconds = (_mean_seconds(task_class, rate, each) for each in (preferred, others))
    return _Preferred(known_at, best, slots, seconds, others_seconds)


def _mean_seconds(task_class: TaskClass, rate: Floats, rows: Rows) -> float:
    """The mean run time on these rows, each slot at work; inf without a slot."""
    slots = task_class.service_slots[rows]
    pace = float((slots * rate[rows]).sum())
    return float(slots.sum()) / pace if pace else inf
