"""Pods whose specs are completed later, because their namespace has used up what its pods may cost now.

There are two bounds, each by namespace: the fuel of a step (fuel.py), and how many different terms about
other pods the pods that wait may have. A pod carries the terms of others that match it, also of pods that
wait (cluster/pod_terms.py): 500 pods with 8 terms about all namespaces would have every pod of the cluster
carry 4,000, though they fit nowhere. Beyond the bound, pods with further terms wait until some of the others
are bound or gone. Where those find no room, they change places with them, so that each has its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from eclectus.cluster.alike_pods import held_weights
from eclectus.engine.pod_specs.fuel import Fuel, NamespaceTurns
from eclectus.model.objects import PodAffinityTerm, Task

TERMS_MOST = 256  # different ones, of the pods of one namespace that wait

Terms = frozenset[PodAffinityTerm]


def has_terms(task: Task) -> bool:
    """Whether a pod has terms about other pods, required or preferred; nearly none has."""
    spec = task.spec
    required = task.anti_affinity_terms or spec.affinity_terms or spec.own_anti_affinity
    return bool(required or spec.preferred_terms)


def _terms_of(task: Task) -> Terms:
    return frozenset((*task.anti_affinity_terms, *held_weights(task.spec)))


class WaitingTerms:
    """The terms of pods that wait and are completed, by namespace."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, Terms]] = {}  # uid -> namespace and terms
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
            counts = self._counts[namespace]
            counts.subtract(terms)
            for term in terms:
                if not counts[term]:
                    del counts[term]
            if not counts:
                del self._counts[namespace]
        return namespace

    def has_room_for(self, task: Task) -> bool:
        """Whether the pod may wait with its terms: its namespace has few, or it has none that is new."""
        counts = self._counts.get(task.namespace, Counter())
        return len(counts) < TERMS_MOST or _terms_of(task) <= counts.keys()

    def pods_of(self, namespace: str) -> list[str]:
        """The uids of the pods of a namespace that wait with terms."""
        return [uid for uid, (each, _) in self._of.items() if each == namespace]


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
        return has_terms(task) and not self.terms.has_room_for(task)

    def add(self, task: Task) -> None:
        """Keep the pod until its turn."""
        is_known = task.uid in self._tasks
        self._tasks[task.uid] = task
        if is_known:
            return
        if has_terms(task) and not self.terms.has_room_for(task):
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
            if has_terms(task) and not self.terms.has_room_for(task):
                self.step_back(task)
            else:
                yield task
        freed, self._freed = self._freed, {}
        for namespace in freed:
            yield from self._take_crowded(namespace)

    def _take_crowded(self, namespace: str) -> Iterator[Task]:
        """The first of those that wait because of their terms, as many as may have them now."""
        for uid in list(self._crowded.get(namespace, ())):
            task = self._tasks[uid]
            if not self.terms.has_room_for(task):
                return
            if not self.fuel.lasts(namespace):
                self._freed[namespace] = None
                return
            del self._tasks[uid]
            self._leave_crowd(task)
            yield task

    def _leave_crowd(self, task: Task) -> None:
        crowd = self._crowded.get(task.namespace, {})
        crowd.pop(task.uid, None)
        if not crowd:
            self._crowded.pop(task.namespace, None)
