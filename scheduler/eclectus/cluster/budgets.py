"""PodDisruptionBudgets: how many more of which pods may be disrupted.

The budget's controller lowers `disruptionsAllowed` some time after a pod was deleted. Until it has, each
eviction that is under way is counted here, so that a second one does not spend the same allowance.

Who may write budgets and pods in one namespace can make thousands of both, and pods compared with budgets are
their product. So a budget is filed under a label that it asks for, few of those that select a pod count, and
what a step compares is bounded. So are, in the same count, the pods that a step looks at as victims.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from eclectus.cluster.memo import Memo, unfile
from eclectus.model.objects import Budget, Pairs, Task, selects

BUDGETS_MOST = 32  # of one pod: the eviction of a pod with more counts as violating one
COMPARISONS_MOST = 200_000  # in one step, of pods with budgets and of pods as victims: a fifth of a second

_Key = tuple[str, str]  # namespace, name
_Place = tuple[str, str, str]  # namespace, key and value of a label; key and value are empty for any labels


class Budgets:
    """The budgets of all namespaces.

    `changes` grows when what they allow has changed, `generation` when they may allow more than before.
    `compared`: how many were compared with pods since `renew`, the first one of each pod aside, and what
    `charge` has added.
    """

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}
        self._filed: dict[_Place, dict[str, None]] = {}  # names; of budgets with a selector
        self._spent: Counter[_Key] = Counter()  # evictions that the last seen status does not count yet
        self._of = Memo(self._matching)  # (namespace, labels) -> keys of the budgets
        self.generation = self.changes = self.compared = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))

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
            if before is not None:
                self._unfile(before)
            for place in _places(budget):
                self._filed.setdefault(place, {})[budget.name] = None
            self._of.clear()
        if before is not None:  # a new budget allows nothing that was not allowed without it
            self.generation += 1

    def remove(self, namespace: str, name: str) -> None:
        """A budget no longer exists; no error if it never did."""
        in_namespace = self._by_namespace.get(namespace, {})
        before = in_namespace.pop(name, None)
        if before is None:
            return
        self._unfile(before)
        if not in_namespace:
            del self._by_namespace[namespace]
        self._spent.pop((namespace, name), None)
        self._of.clear()
        self.generation += 1
        self.changes += 1

    def _unfile(self, budget: Budget) -> None:
        for place in _places(budget):
            unfile(self._filed, place, budget.name)

    def spend(self, pod: Task) -> None:
        """The pod is being evicted."""
        keys = self._keys(pod) if self._by_namespace else []
        if keys:
            self._spent.update(keys)
            self.changes += 1

    def renew(self) -> None:
        """A step begins to look for victims."""
        self.compared = 0

    def charge(self, comparisons: int) -> None:
        """A search for victims has cost as much as so many comparisons with budgets."""
        self.compared += comparisons

    @property
    def has_compared_enough(self) -> bool:
        """Whether no more victims are to be looked for in this step."""
        return self.compared >= COMPARISONS_MOST

    def applies_to(self, pod: Task) -> bool:
        """Whether the pod has a budget."""
        return bool(self._by_namespace) and bool(self._keys(pod))

    def violated_by(self, pods: Iterable[Task]) -> list[bool]:
        """Whether the eviction of each pod violates a budget, if they are evicted in this order."""
        left: dict[_Key, int] = {}
        violates = []
        for pod in pods:
            keys = self._keys(pod) if self._by_namespace else ()
            self.compared += max(len(keys) - 1, 0)
            for key in keys:
                left[key] = left.get(key, self._by_namespace[key[0]][key[1]].allowed - self._spent[key]) - 1
            violates.append(len(keys) > BUDGETS_MOST or any(left[key] < 0 for key in keys))
        return violates

    def _keys(self, pod: Task) -> list[_Key]:
        keys = self._of[pod.namespace, pod.labels]
        return [key for key in keys if pod.name not in self._by_namespace[key[0]][key[1]].disrupted]

    def _matching(self, kind: tuple[str, Pairs]) -> tuple[_Key, ...]:
        """As in kube-scheduler's preemption, an empty selector and a pod without labels match nothing."""
        namespace, labels = kind
        names = islice(self._selecting(namespace, labels), BUDGETS_MOST + 1)
        return tuple((namespace, name) for name in names)

    def _selecting(self, namespace: str, labels: Pairs) -> Iterator[str]:
        there, values = self._by_namespace.get(namespace, {}), dict(labels)
        places = ((namespace, *label) for label in (*labels, ("", ""))) if labels else ()
        for place in places:
            for name in self._filed.get(place, ()):
                self.compared += 1
                if selects(there[name].selector, values):
                    yield name


def _places(budget: Budget) -> list[_Place]:
    """Where a budget is filed: under the values that its first `In` allows, or for pods with any labels."""
    if not budget.selector:
        return []
    asked = next((each for each in budget.selector if each.op == "In"), None)
    labels = [("", "")] if asked is None else [(asked.key, value) for value in dict.fromkeys(asked.values)]
    return [(budget.namespace, *label) for label in labels]
