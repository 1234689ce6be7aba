"""PodDisruptionBudgets: how many more of which pods may be disrupted.

The budget's controller lowers `disruptionsAllowed` some time after a pod was deleted. Until it has, each
eviction that is under way is counted here, so that a second one does not spend the same allowance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from eclectus.cluster.memo import Memo
from eclectus.model.objects import Budget, Pairs, Task, selects

_Key = tuple[str, str]  # namespace, name


class Budgets:
    """The budgets of all namespaces.

    `changes` grows when what they allow has changed, `generation` when they may allow more than before.
    """

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}
        self._spent: Counter[_Key] = Counter()  # evictions that the last seen status does not count yet
        self._of = Memo(self._matching)  # (namespace, labels) -> keys of the budgets
        self.generation = self.changes = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))

    # -- changes -------------------------------------------------------------------------------

    def set(self, budget: Budget) -> None:
        """A budget exists, as given, and its status counts the evictions so far.

        Also when it allows as many as before: the eviction of a pod that was not ready changes nothing there.
        """
        in_namespace = self._by_namespace.setdefault(budget.namespace, {})
        before = in_namespace.get(budget.name)
        if not self._spent.pop((budget.namespace, budget.name), 0) and before == budget:
            return
        in_namespace[budget.name] = budget
        self.changes += 1
        if before is None or before.selector != budget.selector:
            self._of.clear()
        if before is not None:  # a new budget allows nothing that was not allowed without it
            self.generation += 1

    def remove(self, namespace: str, name: str) -> None:
        """A budget no longer exists; no error if it never did."""
        in_namespace = self._by_namespace.get(namespace, {})
        if in_namespace.pop(name, None) is None:
            return
        if not in_namespace:
            del self._by_namespace[namespace]
        self._spent.pop((namespace, name), None)
        self._of.clear()
        self.generation += 1
        self.changes += 1

    def spend(self, pod: Task) -> None:
        """The pod is being evicted."""
        keys = self._keys(pod) if self._by_namespace else []
        if keys:
            self._spent.update(keys)
            self.changes += 1

    # -- reading -------------------------------------------------------------------------------

    def applies_to(self, pod: Task) -> bool:
        """Whether the pod has a budget."""
        return bool(self._by_namespace) and bool(self._keys(pod))

    def violated_by(self, pods: Iterable[Task]) -> list[bool]:
        """Whether the eviction of each pod violates a budget, if they are evicted in this order."""
        left: dict[_Key, int] = {}
        violates = []
        for pod in pods:
            keys = self._keys(pod) if self._by_namespace else ()
            for key in keys:
                left[key] = left.get(key, self._allowed(key)) - 1
            violates.append(any(left[key] < 0 for key in keys))
        return violates

    def _allowed(self, key: _Key) -> int:
        return self._by_namespace[key[0]][key[1]].allowed - self._spent[key]

    def _keys(self, pod: Task) -> list[_Key]:
        keys = self._of[pod.namespace, pod.labels]
        return [key for key in keys if pod.name not in self._by_namespace[key[0]][key[1]].disrupted]

    def _matching(self, kind: tuple[str, Pairs]) -> tuple[_Key, ...]:
        """As in kube-scheduler's preemption, an empty selector and a pod without labels match nothing."""
        namespace, labels = kind
        found = self._by_namespace.get(namespace, {}).values() if labels else ()
        values = dict(labels)
        return tuple(
            (namespace, each.name) for each in found if each.selector and selects(each.selector, values)
        )
