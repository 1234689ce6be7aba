"""When running pods are looked at: those that are due, of each namespace in turn.

So who has many pods that have opted in has his own looked at more seldom, and nobody else's. Of a namespace
those come first that are due for longest. Turns follow from due times alone: a namespace of which a pod was
left for later is among the first the next time, since nothing of it is due for longer.
"""

from math import inf

from eclectus.cluster.due_times import DueTimes


class Looks:
    """Pods by uid, and when each is due, seconds."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, DueTimes[str]] = {}
        self._turns = DueTimes[str]()  # namespaces, by their first pods

    def set(self, namespace: str, uid: str, when: float) -> None:
        """Make a pod due at this time, instead of the time at which it was."""
        found = self._by_namespace.get(namespace)
        if found is None:
            found = self._by_namespace[namespace] = DueTimes[str]()
        found.set(uid, when)
        self._turns.set(namespace, found.next_due())

    def discard(self, namespace: str, uid: str) -> None:
        """Forget a pod."""
        found = self._by_namespace.get(namespace)
        if found is not None and found.discard(uid):
            self._renew(namespace, found)

    def next_due(self) -> float:
        """When the first one is due, seconds; inf for never."""
        return self._turns.next_due()

    def take(self, now: float, most: int) -> list[str]:
        """Take out so many of the pods that are due: one of each namespace, then another one of each."""
        waiting, taken = self._turns.take_due(now), list[str]()
        served = list(waiting)
        while waiting and len(taken) < most:
            waiting = waiting[: most - len(taken)]
            taken += [self._by_namespace[each].take()[1] for each in waiting]
            waiting = [each for each in waiting if self._by_namespace[each].next_due() <= now]
        for namespace in served:
            self._renew(namespace, self._by_namespace[namespace])
        return taken

    def _renew(self, namespace: str, of_it: DueTimes[str]) -> None:
        first = of_it.next_due()
        if first < inf:
            self._turns.set(namespace, first)
        else:
            self._turns.discard(namespace)
            del self._by_namespace[namespace]
