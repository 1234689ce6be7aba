"""When the Relieve policies are asked about which class: at once, later again, or not at all.

A class is asked about when no node has room for its tasks, whether they are refused or wait for a busy node;
when tasks join it; and when a pod of it loses its nomination. While nothing helps it is asked about again
after a growing time, and when a disruption budget allows more.
"""

from __future__ import annotations

from math import inf

from eclectus.model.reservation import ClassKey

RefusedKey = tuple[str, ClassKey]  # profile, class

FIRST_SECONDS = 1.0  # until a class for which nothing could be done is asked about again, doubled each time…
MOST_SECONDS = 30.0  # …up to this: the period of kube-scheduler's own rechecks


class ReliefSchedule:
    """Due times of classes for whose tasks no node has room."""

    def __init__(self) -> None:
        self._due: dict[RefusedKey, float] = {}
        self._wait: dict[RefusedKey, float] = {}  # of classes that were asked about in vain, seconds

    def next_due(self) -> float:
        """When the first class is due, seconds; inf for never."""
        return min(self._due.values(), default=inf)

    def add(self, key: RefusedKey) -> None:
        """The class is due."""
        self._due[key] = -inf

    def add_waiting(self, key: RefusedKey) -> None:
        """The class is due unless it was asked about in vain: tasks of it wait for busy nodes."""
        if key not in self._wait:
            self.add(key)

    def take_due(self, now: float) -> list[RefusedKey]:
        """Take out the classes that are due, in the order in which they became so."""
        due = [key for key, at in self._due.items() if at <= now]
        for key in due:
            del self._due[key]
        return due

    def helped(self, key: RefusedKey) -> None:
        """All refused tasks of the class are nominated now."""
        self._wait.pop(key, None)

    def ask_again(self, key: RefusedKey, now: float) -> None:
        """Nothing could be done for some tasks of the class."""
        wait = self._wait[key] = min(2 * self._wait.get(key, FIRST_SECONDS / 2), MOST_SECONDS)
        self._due.setdefault(key, now + wait)

    def expedite(self, now: float) -> None:
        """Evictions may have become allowed: no class waits for longer than after its first refusal."""
        for key, at in self._due.items():
            self._due[key] = min(at, now + FIRST_SECONDS)
        self._wait.clear()

    def discard(self, key: RefusedKey) -> None:
        """No task of the class is refused any more."""
        self._due.pop(key, None)
        self._wait.pop(key, None)
