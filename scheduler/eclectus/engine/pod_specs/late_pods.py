"""Pods whose specs are completed later, because their namespace has used up what its pods may cost now.

What a pod asks of nodes may depend on thousands of objects of its namespace, as on Services that select it,
and one event may concern every pod of a cluster: a product that neither the number of events nor that of pods
bounds. So there are two bounds, each by namespace; pods of other namespaces are not delayed.

Fuel: comparisons of a pod with what Services require and of its terms with other pods are counted. Each
namespace has a share of those of a step. Where it is used up, further pods are completed in the next, which
is due at once.

Terms: a pod carries the terms of others that match it, also of pods that wait (cluster/alike_pods.py). 500
pods with 8 terms about all namespaces would have every pod of the cluster carry 4,000, though they fit
nowhere. Beyond TERMS_MOST different ones, pods with further terms wait until some of the others are bound or
gone. Where those find no room, they change places with them, so that each has its turn.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

from eclectus.cluster.alike_pods import held_weights
from eclectus.cluster.memo import unfile
from eclectus.model.objects import PodAffinityTerm, Task

PODS_MOST = 1_000  # of each kind that are completed, or seen again, in one step
COMPARISONS_MOST = 100_000  # in one step: 30 ms
OF_ONE_NAMESPACE_MOST = 20_000
FEW = 500  # a namespace that has spent less goes on until twice as much is spent in all


class Fuel:
    """The comparisons of this step, by namespace."""

    def __init__(self) -> None:
        self._spent = Counter[str]()
        self.spent: Mapping[str, int] = self._spent
        self._left = COMPARISONS_MOST

    def renew(self) -> None:
        """End a step."""
        self._spent.clear()
        self._left = COMPARISONS_MOST

    def spend(self, namespace: str, comparisons: int) -> None:
        """Count comparisons that a pod of this namespace has cost."""
        if comparisons:
            self._spent[namespace] += comparisons
            self._left -= comparisons

    def lasts(self, namespace: str) -> bool:
        """Whether another pod of this namespace may be completed in this step."""
        spent = self._spent.get(namespace, 0)
        if spent < FEW:
            return self._left > -COMPARISONS_MOST
        return spent < OF_ONE_NAMESPACE_MOST and self._left > 0


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
            unfile(self._left, namespace, uid)

    def take(self, lasts: Callable[[str], bool] = lambda _: True) -> Iterator[str]:
        """Remove and yield the pods of this step, of each namespace while it `lasts`; PODS_MOST at most."""
        left = PODS_MOST
        for namespace in list(self._left):
            uids, before = list(self._left[namespace])[:left] if left else (), left
            for uid in uids:
                if not lasts(namespace):
                    break
                self.discard(uid)
                left -= 1
                yield uid
            if left < before and namespace in self._left:  # whose turn did not come is first next time
                self._left[namespace] = self._left.pop(namespace)


TERMS_MOST = 256  # different ones, of the pods of one namespace that wait

Terms = frozenset[PodAffinityTerm]


def _terms_of(task: Task) -> Terms:
    return frozenset((*task.anti_affinity_terms, *held_weights(task.spec)))


class WaitingTerms:
    """The terms of pods that wait and are completed, by namespace."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, Terms]] = {}
        self.pods: Mapping[str, tuple[str, Terms]] = self._of  # uid -> namespace and terms
        self._counts: dict[str, Counter[PodAffinityTerm]] = {}  # by namespace

    def set(self, task: Task) -> None:
        """The pod waits with these terms."""
        self.discard(task.uid)
        terms = _terms_of(task)
        if terms:
            self._of[task.uid] = task.namespace, terms
            self._counts.setdefault(task.namespace, Counter()).update(terms)

    def discard(self, uid: str) -> str:
        """The pod waits no more; its namespace, which may have further terms now, empty if it had none."""
        namespace, terms = self._of.pop(uid, ("", Terms()))
        if terms:
            self._counts[namespace] -= Counter(terms)  # without those that are zero now
            if not self._counts[namespace]:
                del self._counts[namespace]
        return namespace

    def has_room_for(self, task: Task) -> bool:
        """Whether the pod may wait with its terms: its namespace has few, or it has none that is new."""
        counts = self._counts.get(task.namespace, Counter())
        return len(counts) < TERMS_MOST or _terms_of(task) <= counts.keys()

    def pods_of(self, namespace: str) -> list[str]:
        """The uids of the first pods of a namespace that wait with terms, PODS_MOST at most."""
        return list(islice((uid for uid, (each, _) in self._of.items() if each == namespace), PODS_MOST))


class LatePods:
    """Pods as they were seen last, until they are completed."""

    def __init__(self) -> None:
        self.fuel = Fuel()
        self.terms = WaitingTerms()
        self._tasks: dict[str, Task] = {}  # by uid
        self._turns = NamespaceTurns()  # of those that wait for fuel
        self._crowded: dict[str, dict[str, None]] = {}  # uids of the others by namespace
        self.crowded: Collection[str] = self._crowded.keys()  # namespaces
        self._freed: dict[str, None] = {}  # namespaces of which crowded pods may have their turn
        self.tasks: Mapping[str, Task] = self._tasks

    @property
    def are_due(self) -> bool:
        """Whether some are to be completed in the next step."""
        return bool(self._turns or self._freed)

    def must_wait(self, task: Task) -> bool:
        """Whether a pod that was seen may not be completed now."""
        if task.deleting:
            return False
        namespace = task.namespace
        if (self._tasks or self.fuel.spent) and (
            task.uid in self._tasks or self._turns.has_some_of(namespace) or not self.fuel.lasts(namespace)
        ):
            return True
        return task.has_terms and not self.terms.has_room_for(task)

    def add(self, task: Task) -> None:
        """Keep the pod until its turn."""
        is_known = task.uid in self._tasks
        self._tasks[task.uid] = task
        if is_known:
            return
        if task.has_terms and not self.terms.has_room_for(task):
            self.step_back(task)
        else:
            self._turns.add(task.namespace, task.uid)

    def step_back(self, task: Task) -> None:
        """Put a pod that was completed behind all that wait because of their terms."""
        self._tasks[task.uid] = task
        self._crowded.setdefault(task.namespace, {})[task.uid] = None

    def discard(self, uid: str) -> None:
        """The pod is bound or gone: it need not be completed, and its terms make room for others."""
        task = self._tasks.pop(uid, None)
        if task is not None:
            self._turns.discard(uid)
            self._leave_crowd(task)
        namespace = self.terms.discard(uid)
        if namespace in self._crowded:
            self._freed[namespace] = None

    def take(self) -> Iterator[Task]:
        """The pods whose turn it is, each at once: `terms` has those of one when the next is asked for."""
        for uid in self._turns.take(self.fuel.lasts):
            task = self._tasks.pop(uid)
            if task.has_terms and not self.terms.has_room_for(task):
                self.step_back(task)
            else:
                yield task
        freed, self._freed = self._freed, {}
        for namespace in freed:
            yield from self._take_crowded(namespace)

    def _take_crowded(self, namespace: str) -> Iterator[Task]:
        """Those that wait because of their terms, as many as may have them now; PODS_MOST at most."""
        for uid in list(islice(self._crowded.get(namespace, ()), PODS_MOST)):
            task = self._tasks[uid]
            if not self.terms.has_room_for(task):
                return
            if not self.fuel.lasts(namespace):
                break
            del self._tasks[uid]
            self._leave_crowd(task)
            yield task
        if namespace in self._crowded:
            self._freed[namespace] = None

    def _leave_crowd(self, task: Task) -> None:
        if task.uid in self._crowded.get(task.namespace, ()):
            unfile(self._crowded, task.namespace, task.uid)
