"""What all jobs are sure of, by time: what runs, until its end, and what their plans have still to start.

For `overhang: bounded`. While the sum of all bookings never exceeds the capacity, a task whose latest start
has come finds room: all that runs then, and all that must start then, is in the sum. So a task may start
before, and above its job's share, exactly if the sum stays within the capacity when its booking is moved to
the present: conservative backfilling (Feitelson, Weil, "Utilization and predictability in scheduling the IBM
SP2 with backfilling", IPPS 1998), in plans of which every task is as late as the job's deadline allows.

Theorem. Jobs come at one time to free nodes, few enough to be planned in one step, and every share holds a
task of each of its job's stages. Run times are as estimated, binds take none, no task fails, no share
shrinks, no limit of a pool keeps a task from starting, a task that fits the free room of all nodes together
fits one of them, and plans have every task by itself (not so above 64 tasks of a stage one after another, or
about 100,000 steps of a plan). Then no job ends after the end of its first plan, the time that its share
needs.

Proof. At each time (1) the sum of bookings does not exceed the capacity from then on, and (2) of each job
what has not started is booked after the expected ends of its parents, and ends by the deadline. At first
every plan is within its share, and shares together within the capacity. (1) and (2) stay true when

- a task starts as booked: its booking is the same, but for having begun. There is room, by (1);
- a task starts earlier: only if (1) stays true, and with an earlier end (2) does;
- a job is planned anew: the new plan is taken only if (1) stays true and it ends by the deadline, and the old
  one goes on otherwise (`PlannedJob.replan`). So no anomaly of list scheduling (Graham, 1969) delays it;
- a job ends, or deadlines move to earlier times: the latter only with such a plan.

By (1) and (2) every task starts by its latest start, and the job ends by its deadline, which never moves to a
later time.

Where the premises fail the theorem does too. A job that comes later finds what others hold above their
shares, and no pod is evicted. In a pool that has a maximum they may be in each other's way: what is booked
is room of the cluster. Another process does not know the old plans, and plans anew what remains by the
old deadlines. On several nodes what is free may be in parts.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.maths.numbers import Floats

FOREVER = 1e15  # seconds: until when that is held of which no end is known
SAME = 1e-4  # seconds: times that differ by less are one; no task is shorter than ten times that
TOLERANCE = 1e-9  # of the capacity


class Booking(NamedTuple):
    """Amounts by resource, from one time to another, seconds."""

    start: float
    end: float
    amounts: Sequence[float]


class Bookings:
    """The bookings of all, by name, and their sum over time. `capacity`: by resource."""

    def __init__(self, capacity: Sequence[float] = ()) -> None:
        self._most = np.array(capacity) * (1.0 + TOLERANCE) + TOLERANCE
        self._changes: dict[str, tuple[Floats, Floats]] = {}  # by name: times [n] and changes [n, resources]
        self._sum: tuple[Floats, Floats] | None = None  # edges, and what is booked from each on

    def set(self, name: str, bookings: Sequence[Booking], now: float) -> bool:
        """What this one books now, instead of what it booked before.

        Returns whether that changes the sum from now on. A start as booked does not.
        """
        before = self._changes.pop(name, None)
        after = self._as_changes(bookings) if bookings else None
        if after is not None:
            self._changes[name] = after
        self._sum = None
        parts = [(part[0], part[1] * sign) for part, sign in ((before, -1.0), (after, 1.0)) if part]
        if not parts:
            return False
        _, summed = _merged([np.maximum(times, now) for times, _ in parts], [each for _, each in parts])
        return bool((np.abs(summed) > TOLERANCE).any())

    def drop(self, name: str) -> bool:
        """It books nothing any more; whether it did."""
        self._sum = None
        return self._changes.pop(name, None) is not None

    def keep(self, names: Set[str]) -> bool:
        """Drop what all others have booked; whether there was any."""
        gone = self._changes.keys() - names
        for name in gone:
            self.drop(name)
        return bool(gone)

    def free_at(self, booking: Booking, moved: Booking | None = None) -> float:
        """When there may be room for a booking beside all others, seconds.

        Its start if there is; otherwise when the last of those that are in its way ends, inf for never.
        `moved`: the booking that it would replace.
        """
        edges, booked = self._summed()
        if not len(edges):
            return booking.start
        first, last = _parts(edges, booking)
        amounts = np.array(booking.amounts)
        used = booked[first:last] + amounts
        if moved is not None:
            start, end = (max(at - first, 0) for at in _parts(edges, moved))
            used[start:end] -= np.array(moved.amounts)
        too_much = ((used > self._most) & (amounts > 0.0)).any(axis=1).nonzero()[0]
        if not len(too_much):
            return booking.start
        after = first + int(too_much[-1]) + 1
        return float(edges[after]) if after < len(edges) and edges[after] < FOREVER else inf

    def allow(self, name: str, bookings: Sequence[Booking]) -> bool:
        """Whether there is room for these bookings instead of those of this name, where they are larger."""
        others = [each for key, each in self._changes.items() if key != name]
        own = self._changes.get(name)
        before = [] if own is None else [own]
        new = self._as_changes(bookings)
        edges = np.unique(np.concatenate([times for times, _ in (*others, *before, new)]))
        by_others, old, wanted = (_at(edges, each, len(self._most)) for each in (others, before, [new]))
        is_too_much = (by_others + wanted > self._most) & (wanted > old + TOLERANCE)
        # What is too much for less than SAME is two times that are one.
        return not is_too_much[:-1][np.diff(edges) > SAME].any()

    def _as_changes(self, bookings: Sequence[Booking]) -> tuple[Floats, Floats]:
        amounts = np.array([each.amounts for each in bookings]).reshape(len(bookings), len(self._most))
        times = np.array([each.start for each in bookings] + [each.end for each in bookings])
        return times, np.concatenate([amounts, -amounts])

    def _summed(self) -> tuple[Floats, Floats]:
        if self._sum is None:
            parts = self._changes.values()
            self._sum = _merged([times for times, _ in parts], [each for _, each in parts])
        return self._sum


def _merged(times: Sequence[Floats], changes: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Edges, of which none are the same time, and the sum of the changes up to each."""
    if not times:
        return np.zeros(0), np.zeros((0, 0))
    every = np.concatenate(times)
    order = np.argsort(every, kind="stable")
    every = every[order]
    firsts = np.flatnonzero(np.diff(every, prepend=-np.inf) > SAME)
    summed = np.add.reduceat(np.concatenate(changes)[order], firsts, axis=0).cumsum(axis=0)
    return every[firsts], summed


def _parts(edges: Floats, booking: Booking) -> tuple[int, int]:
    """The parts between edges in which a booking lies, the second index exclusive."""
    first = int(edges.searchsorted(booking.start + SAME, side="right")) - 1
    return max(first, 0), max(int(edges.searchsorted(booking.end - SAME, side="left")), 0)


def _at(edges: Floats, parts: Sequence[tuple[Floats, Floats]], resources: int) -> Floats:
    """The sum of some bookings from each edge on."""
    changes = np.zeros((len(edges), resources))
    for times, amounts in parts:
        np.add.at(changes, edges.searchsorted(times), amounts)
    return changes.cumsum(axis=0)
