"""How long pods have waited, and which of them have waited for too long beside room.

A pod is old once it has waited for half of the profile's limit. The classes of old pods are checked eight
times within the limit, and a class is overdue if a node had room for it at three checks in succession. So a
pod that waits beside room is found within 7/8 of the limit. Room that comes and goes does not count: after a
backlog longer than the limit any node would otherwise be taken, also one on which the class runs badly, and
the backlog would not end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf

from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey

OLD_SHARE = 0.5  # of the limit
CHECKS = 8  # within the limit
CHECKS_WITH_ROOM = 3
CLASSES_MOST = 256  # checked in one step: some 10 ms on 5,000 nodes


class ProfileWaits:
    """The pods of a profile that wait in class queues and node queues, by age, and when they are checked."""

    def __init__(self, limit: float) -> None:
        self._limit = limit  # seconds
        # Of pods that are not old: since when they wait, seconds, in this order. Most are discarded, and
        # taking the first one out of a plain dict again and again would scan the entries deleted before it.
        self._new: OrderedDict[str, tuple[float, ClassKey]] = OrderedDict()
        self._old: dict[ClassKey, dict[str, None]] = {}  # uids, eldest first
        self._class_of: dict[str, ClassKey] = {}  # of old pods
        self._with_room: dict[ClassKey, int] = {}  # checks in succession
        self._to_check: list[ClassKey] = []  # what is left of a check of more classes than a step bears
        self._check_at = inf

    def __bool__(self) -> bool:
        return bool(self._new or self._old)

    def next_due(self) -> float:
        """When `check` is to be called, seconds; inf for never."""
        if self._old:
            return self._check_at
        return next(iter(self._new.values()))[0] + OLD_SHARE * self._limit if self._new else inf

    def add(self, uid: str, class_key: ClassKey, now: float) -> float:
        """The pod waits; no effect if that is known. Returns when it will be old, seconds."""
        if uid not in self._class_of:
            self._new.setdefault(uid, (now, class_key))
        return now + OLD_SHARE * self._limit

    def discard(self, uid: str) -> None:
        """The pod does not wait; no error if it did not."""
        if self._new.pop(uid, None) is not None:
            return
        class_key = self._class_of.pop(uid, None)
        if class_key is not None:
            del self._old[class_key][uid]
            if not self._old[class_key]:
                del self._old[class_key]
                self._with_room.pop(class_key, None)
                self._to_check = self._to_check if self._old else []

    def of_class(self, class_key: ClassKey) -> Sequence[str]:
        """The old pods of a class, the eldest first."""
        return tuple(self._old.get(class_key, ()))

    def check(self, now: float, has_room: Callable[[ClassKey], bool]) -> list[ClassKey]:
        """Check some classes, in turn; those of them that are overdue.

        `has_room`: whether a node has room for a task of the class.
        """
        while self._new and next(iter(self._new.values()))[0] + OLD_SHARE * self._limit <= now:
            uid, (_, class_key) = self._new.popitem(last=False)
            self._old.setdefault(class_key, {})[uid] = None
            self._class_of[uid] = class_key
        keys = self._to_check or list(self._old)
        self._to_check = keys[CLASSES_MOST:]
        self._check_at = now if self._to_check else now + self._limit / CHECKS
        return [key for key in keys[:CLASSES_MOST] if key in self._old and self._is_overdue(key, has_room)]

    def _is_overdue(self, key: ClassKey, has_room: Callable[[ClassKey], bool]) -> bool:
        checks = self._with_room[key] = self._with_room.get(key, 0) + 1 if has_room(key) else 0
        return checks >= CHECKS_WITH_ROOM


class WaitingTimes:
    """The waits of each profile that has a limit. `limits`: by profile, seconds or None.

    `next_due`: pods need not be checked before this time, seconds; inf while none waits. It is exact after
    `due`, and may be too early after pods have been discarded: a step for nothing costs less than the exact
    time in every step.
    """

    def __init__(self, limits: Mapping[str, float | None]) -> None:
        self._waits = {name: ProfileWaits(limit) for name, limit in limits.items() if limit is not None}
        self.next_due = inf

    def due(self, now: float) -> Iterator[ProfileWaits]:
        """Those that are to be checked; the caller checks each before it takes the next."""
        for waits in self._waits.values():
            if waits.next_due() <= now:
                yield waits
        self.next_due = min((waits.next_due() for waits in self._waits.values()), default=inf)

    def add(self, task: Task, now: float) -> None:
        """The pod waits; no effect if that is known."""
        waits = self._waits.get(task.profile)
        if waits is not None:
            due = waits.add(task.uid, (task.spec, task.workload), now)
            if due < self.next_due:
                self.next_due = due

    def discard(self, uid: str) -> None:
        """The pod does not wait; no error if it did not."""
        for waits in self._waits.values():  # it may have had another profile
            waits.discard(uid)
        if not any(self._waits.values()):
            self.next_due = inf
