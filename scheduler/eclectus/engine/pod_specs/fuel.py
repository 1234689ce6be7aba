"""Fuel: what the specs of pending pods may cost in one step, for all and for each namespace.

What a pod asks of nodes may depend on thousands of objects of its namespace, as on Services that select it,
and one event may concern every pod of a cluster. The product has no bound that the number of events or of
pods gives. So comparisons are counted: they are the fuel of a step, of which each namespace has a share.
Where that is used up, further pods of the namespace are completed in the next step, which is due at once;
pods of other namespaces are not delayed. A count and no time, so equal events give equal commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

PODS_MOST = 1_000  # that are seen again in one step
COMPARISONS_MOST = 100_000  # in one step: about half a second
OF_ONE_NAMESPACE_MOST = 20_000
FEW = 500  # a namespace that has spent less goes on, whatever others have spent


class Fuel:
    """The comparisons of this step, by namespace."""

    def __init__(self) -> None:
        self._spent = Counter[str]()
        self.spent: Mapping[str, int] = self._spent
        self._left = COMPARISONS_MOST

    def renew(self) -> None:
        """Begin a step."""
        if self._spent:
            self._spent.clear()
            self._left = COMPARISONS_MOST

    def spend(self, namespace: str, comparisons: int) -> None:
        """Count comparisons that a pod of this namespace has cost."""
        self._spent[namespace] += comparisons
        self._left -= comparisons

    def lasts(self, namespace: str) -> bool:
        """Whether another pod of this namespace may be completed in this step."""
        spent = self._spent.get(namespace, 0)
        return spent < FEW or (spent < OF_ONE_NAMESPACE_MOST and self._left > 0)


def _always(namespace: str) -> bool:
    return True


class NamespaceTurns:
    """Uids of pods that are still to be seen: of one namespace in their order, of several in turn."""

    def __init__(self) -> None:
        self._left: dict[str, dict[str, None]] = {}  # uids by namespace; that which had a turn is last
        self._namespaces: dict[str, str] = {}  # by uid

    def __len__(self) -> int:
        return len(self._namespaces)

    def has_some_of(self, namespace: str) -> bool:
        """Whether there is a pod of this namespace."""
        return namespace in self._left

    def add(self, namespace: str, uid: str) -> None:
        """Add a pod; one that is there already keeps its place."""
        self._namespaces[uid] = namespace
        self._left.setdefault(namespace, {})[uid] = None

    def discard(self, uid: str) -> None:
        """Remove a pod; no error if it is not there."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            uids = self._left[namespace]
            del uids[uid]
            if not uids:
                del self._left[namespace]

    def take(self, lasts: Callable[[str], bool] = _always) -> Iterator[str]:
        """Remove and yield the pods of this step, of each namespace while it `lasts`; PODS_MOST at most."""
        left = PODS_MOST
        for namespace in list(self._left):
            uids = list(self._left[namespace])[:left] if left else ()
            for uid in uids:
                if not lasts(namespace):
                    break
                self.discard(uid)
                left -= 1
                yield uid
            if uids and namespace in self._left:
                self._left[namespace] = self._left.pop(namespace)
