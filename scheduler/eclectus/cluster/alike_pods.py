"""The pods on nodes by what rules about other pods read of them: namespace, labels, terms about others.

Pods of one template are one group, with the number of its pods on each row. So a rule compares groups with a
selector, not pods, and follows a log of pods that have come and left: a pod costs each rule that is used
again one entry, and a rule that is not used nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eclectus.cluster.changelog import EntryLog
from eclectus.cluster.memo import unfile
from eclectus.cluster.pod_terms import HeldTerms
from eclectus.model.objects import Pairs, PodAffinityTerm, Selector, Spec, Task, WeightedTerm, selects

MAX_CHANGES = 16_384  # pods that come or leave; a reader that is further behind counts all groups again
MAX_KEYS = 256  # labels by which groups are filed; any pod may ask for any label

Terms = tuple[PodAffinityTerm, ...]
GroupKey = tuple[str, Pairs, Terms, Terms, tuple[WeightedTerm, ...], bool, bool]


class AlikePods:
    """The pods that no rule about other pods can tell apart.

    `terms`: of their required anti-affinity. `weights`: of the terms by which they attract others or, below
    0, rather keep them away. `is_terminating`: being deleted. `is_nominated`: pending, with room held for
    them. `pods`: row -> how many of them are there.
    """

    __slots__ = (
        "is_nominated",
        "is_terminating",
        "labels",
        "namespace",
        "pods",
        "serial",
        "terms",
        "weights",
    )

    def __init__(self, key: GroupKey, weights: Mapping[PodAffinityTerm, int], serial: int) -> None:
        self.namespace, labels, self.terms, _, _, self.is_terminating, self.is_nominated = key
        self.weights = weights
        self.labels = dict(labels)
        self.serial = serial  # another one for every group ever made
        self.pods: dict[int, int] = {}


Groups = dict[AlikePods, None]  # as an ordered set
Change = tuple[AlikePods, int, int]
"""A group, a row, and 1 for a pod that has come there or -1 for one that has left."""


class AlikePodGroups:
    """All groups with a pod on a node, and the terms of their pods.

    `terms`: of required anti-affinity. `preferences`: by which pods attract others or rather keep them away.
    """

    def __init__(self, terms: HeldTerms, preferences: HeldTerms) -> None:
        self._terms = terms
        self._preferences = preferences
        self._groups: dict[GroupKey, AlikePods] = {}
        self._in_namespace: dict[str, Groups] = {}
        self._with_term: dict[PodAffinityTerm, Groups] = {}
        self._with_preference: dict[PodAffinityTerm, Groups] = {}
        # Label -> value -> groups; of the labels that selectors have asked for, the last one at the end.
        self._by_label: dict[str, dict[str, Groups]] = {}
        self._serial = 0
        self.changes = EntryLog[Change](MAX_CHANGES)

    def __len__(self) -> int:
        return len(self._groups)

    def copy(self, terms: HeldTerms, preferences: HeldTerms) -> AlikePodGroups:
        """The same pods on the same rows, which come and leave here alone; O(groups).

        The terms are held anew, in these two.
        """
        found = AlikePodGroups(terms, preferences)
        for key, group in self._groups.items():
            found.add(key, group.weights).pods.update(group.pods)
        return found

    def hold(self, row: int, task: Task, *, is_nominated: bool) -> None:
        """A pod has come to the row."""
        key = _key(task, is_nominated)
        group = self._groups.get(key)
        if group is None:
            group = self.add(key, held_weights(task.spec))
        group.pods[row] = group.pods.get(row, 0) + 1
        self.changes.record((group, row, 1))

    def release(self, row: int, task: Task, *, is_nominated: bool) -> None:
        """A pod has left the row; both arguments are those of `hold`."""
        key = _key(task, is_nominated)
        group = self._groups[key]
        group.pods[row] -= 1
        if not group.pods[row]:
            del group.pods[row]
        if not group.pods:
            self._drop(key, group)
        self.changes.record((group, row, -1))

    def of_pod(self, task: Task) -> AlikePods:
        """The group of a pod that is held; of one that is not bound, as nominated if there are such pods."""
        if not task.node and (found := self._groups.get(_key(task, True))) is not None:
            return found
        return self._groups[_key(task, False)]

    def matching(self, namespaces: Iterable[str] | None, selector: Selector) -> Iterator[AlikePods]:
        """The groups in these namespaces (None: in all) whose labels the selector selects, each once."""
        wanted = None if namespaces is None else frozenset(namespaces)
        for group in self._candidates(wanted, selector):
            if (wanted is None or group.namespace in wanted) and selects(selector, group.labels):
                yield group

    def with_term(self, term: PodAffinityTerm) -> Iterable[AlikePods]:
        """The groups whose pods have this required anti-affinity term."""
        return self._with_term.get(term, ())

    def with_preference(self, term: PodAffinityTerm) -> Iterable[AlikePods]:
        """The groups whose pods attract by this term, or rather keep away."""
        return self._with_preference.get(term, ())

    def _candidates(self, namespaces: frozenset[str] | None, selector: Selector) -> Iterator[AlikePods]:
        """Groups among which are all that match: with a value that an `In` asks for, or of the namespaces."""
        asked = next((each for each in selector if each.op == "In"), None)
        if asked is not None:
            filed = self._filed(asked.key)
            for value in dict.fromkeys(asked.values):
                yield from filed.get(value, ())
        elif namespaces is None:
            yield from self._groups.values()
        else:
            for namespace in sorted(namespaces):
                yield from self._in_namespace.get(namespace, ())

    def _filed(self, key: str) -> Mapping[str, Groups]:
        """The groups by their values of a label; made when a selector asks for it for the first time."""
        found = self._by_label.pop(key, None)
        if found is None:
            found = {}
            for group in self._groups.values():
                if (value := group.labels.get(key)) is not None:
                    found.setdefault(value, {})[group] = None
            if len(self._by_label) >= MAX_KEYS:
                del self._by_label[next(iter(self._by_label))]
        self._by_label[key] = found
        return found

    def add(self, key: GroupKey, weights: Mapping[PodAffinityTerm, int]) -> AlikePods:
        """A group that there is not yet, still without pods."""
        self._serial += 1
        group = self._groups[key] = AlikePods(key, weights, self._serial)
        self._in_namespace.setdefault(group.namespace, {})[group] = None
        for term in group.terms:
            self._terms.hold(term)
            self._with_term.setdefault(term, {})[group] = None
        for term in group.weights:
            self._preferences.hold(term)
            self._with_preference.setdefault(term, {})[group] = None
        for label, filed in self._by_label.items():
            if (value := group.labels.get(label)) is not None:
                filed.setdefault(value, {})[group] = None
        return group

    def _drop(self, key: GroupKey, group: AlikePods) -> None:
        del self._groups[key]
        unfile(self._in_namespace, group.namespace, group)
        for term in group.terms:
            self._terms.release(term)
        for term in dict.fromkeys(group.terms):
            unfile(self._with_term, term, group)
        for term in group.weights:
            self._preferences.release(term)
            unfile(self._with_preference, term, group)
        for label, filed in self._by_label.items():
            if (value := group.labels.get(label)) is not None:
                unfile(filed, value, group)


REQUIRED_AFFINITY_WEIGHT = 1  # kube-scheduler's hardPodAffinityWeight


def held_weights(spec: Spec) -> dict[PodAffinityTerm, int]:
    """By which terms a pod on a node attracts pods that match them, with what weight; below 0: keeps away.

    Preferred terms with their weight, and those of required pod affinity, as in InterPodAffinity's score.
    """
    weights = dict.fromkeys(spec.affinity_terms, REQUIRED_AFFINITY_WEIGHT)
    for each in spec.preferred_terms:
        weights[each.term] = weights.get(each.term, 0) + each.weight
    return weights


def _key(task: Task, is_nominated: bool) -> GroupKey:
    spec = task.spec
    own = task.anti_affinity_terms, spec.affinity_terms, spec.preferred_terms
    return task.namespace, task.labels, *own, task.deleting, is_nominated
