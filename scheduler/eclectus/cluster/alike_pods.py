"""The pods on nodes by what rules about other pods read of them: namespace, labels, terms about others.

Pods of one template are one group, with the number of its pods on each row. So a rule compares groups with a
selector, not pods, and follows a log of pods that have come and left: a pod costs each rule that is used
again one entry, and a rule that is not used nothing.

Terms of other pods concern a pod too, required anti-affinity and what pods prefer: Kubernetes calls this the
symmetry of (anti-)affinity. A pod must not be placed in the topology domain of an existing pod whose required
anti-affinity term matches it, and a preferred term that matches it, or one of required pod affinity, speaks
for the domain or against it. Terms are few and shared by all replicas of a workload, so they are kept once
each. A pending pod carries the terms that match it in its spec (`Spec.matched_terms`,
`Spec.matched_preferences`); pods that match none, nearly all, cost nothing. The terms of pending pods count
too: such a pod may be placed in the same scheduling cycle as one that it keeps away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from eclectus.cluster.changelog import EntryLog
from eclectus.cluster.memo import unfile
from eclectus.cluster.resources import PODS
from eclectus.model.objects import (
    Pairs,
    PodAffinityTerm,
    Requirement,
    Selector,
    Spec,
    Task,
    WeightedTerm,
    selects,
)

FEW_NAMESPACES = 16  # a term that names more is filed for all

Place = tuple[str | None, str, str | None]
"""Namespace (None: every one), key of a label (empty: any labels), value (None: any)."""


class TermIndex:
    """A set of terms; `matching` is what it is for.

    A pod with ten thousand terms must not cost every pod that arrives ten thousand comparisons. So each term
    is filed under the namespaces and one label of the pods that it can match, or under the key alone for
    `Exists`, and an arriving pod is compared only with the terms filed under its own labels. Selectors that
    ask for no label (`NotIn`, `DoesNotExist`, none at all) match nearly every pod, and are compared with
    each. Equal selectors are compared once. A term that names many namespaces is filed once, for all.
    """

    def __init__(self) -> None:
        self.compared = 0  # selectors with labels of pods, and terms with namespaces, ever; written here only
        # place -> selector -> the terms with it; dicts as ordered sets
        self._filed: dict[Place, dict[Selector, dict[PodAffinityTerm, None]]] = {}
        self._places: dict[PodAffinityTerm, tuple[Place, ...]] = {}

    def add(self, term: PodAffinityTerm) -> None:
        """A term that is not in the set."""
        self._places[term] = places = self._narrowest(term)
        for place in places:
            self._filed.setdefault(place, {}).setdefault(term.selector, {})[term] = None

    def discard(self, term: PodAffinityTerm) -> None:
        """Remove a term that is in the set."""
        for place in self._places.pop(term):
            selectors = self._filed[place]
            unfile(selectors, term.selector, term)
            if not selectors:
                del self._filed[place]

    def matching(self, namespace: str, labels: Pairs) -> Iterator[PodAffinityTerm]:
        """The terms that match a pod with this namespace and these labels, each once."""
        pod_labels = dict(labels)
        known: dict[Selector, bool] = {}  # a term filed for a namespace and one for all may ask the same
        for place in _places_of(namespace, labels):
            for selector, terms in self._filed.get(place, {}).items():
                if selector not in known:
                    self.compared += 1
                    known[selector] = selects(selector, pod_labels)
                if known[selector]:
                    self.compared += len(terms)
                    covering = (each for each in terms if each.covers(namespace))
                    yield from covering if place[0] is None else terms

    def _narrowest(self, term: PodAffinityTerm) -> tuple[Place, ...]:
        """Where to file a term: where the fewest selectors are, among its requirements that allow it."""
        choices = [places for each in term.selector if (places := _places_for(term, each)) is not None]
        if not choices:
            return tuple((namespace, "", None) for namespace in _namespaces(term))
        return min(choices, key=lambda places: sum(len(self._filed.get(place, {})) for place in places))


def _places_of(namespace: str, labels: Pairs) -> Iterator[Place]:
    for each in (namespace, None):
        yield each, "", None
        for key, value in labels:
            yield each, key, value
            yield each, key, None


def _places_for(term: PodAffinityTerm, requirement: Requirement) -> tuple[Place, ...] | None:
    """Where a pod must look that meets the requirement; None if a pod meets it without the label."""
    if requirement.op not in ("In", "Exists"):
        return None
    values: tuple[str | None, ...] = (None,)
    if requirement.op == "In":
        values = tuple(dict.fromkeys(requirement.values))
    return tuple((each, requirement.key, value) for each in _namespaces(term) for value in values)


def _namespaces(term: PodAffinityTerm) -> tuple[str | None, ...]:
    if term.namespaces is None or len(term.namespaces) > FEW_NAMESPACES:
        return (None,)
    return tuple(dict.fromkeys(term.namespaces))


class HeldTerms:
    """Every distinct term of one kind that a pod on a node or a pending pod has."""

    def __init__(self) -> None:
        self._holders: dict[PodAffinityTerm, int] = {}  # groups of pods on nodes, and pending pods
        self._index = TermIndex()
        self._order: dict[PodAffinityTerm, str] = {}  # by which terms are sorted: one pod may have thousands
        self._changed: dict[PodAffinityTerm, None] = {}  # since `take_changed`, as an ordered set
        # Written here only.
        self.generation = 0  # grows when a term appears: pending pods must be matched again
        self.version = 0  # grows when a term appears or vanishes

    def __len__(self) -> int:
        return len(self._holders)

    def __contains__(self, term: PodAffinityTerm) -> bool:
        return term in self._holders

    def hold(self, term: PodAffinityTerm) -> None:
        """There is one more with this term."""
        if term not in self._holders:
            self._holders[term], self._order[term] = 0, repr(term)
            self._index.add(term)
            self._changed[term] = None
            self.generation += 1
            self.version += 1
        self._holders[term] += 1

    def release(self, term: PodAffinityTerm) -> None:
        """There is one less with this term."""
        self._holders[term] -= 1
        if not self._holders[term]:
            del self._holders[term], self._order[term]
            self._index.discard(term)
            self._changed[term] = None
            self.version += 1

    @property
    def compared(self) -> int:
        """How often `matching` has compared a term with a pod."""
        return self._index.compared

    def take_changed(self) -> Collection[PodAffinityTerm]:
        """The terms that have appeared or vanished since the last call; some of them perhaps both."""
        changed, self._changed = self._changed, {}
        return changed

    def matching(self, namespace: str, labels: Pairs) -> tuple[PodAffinityTerm, ...]:
        """The terms that match a pod with this namespace and these labels, in a fixed order."""
        return self.in_order(self._index.matching(namespace, labels)) if self._holders else ()

    def in_order(self, terms: Iterable[PodAffinityTerm]) -> tuple[PodAffinityTerm, ...]:
        """Terms that there are, in the order in which a spec has them."""
        return tuple(sorted(terms, key=self._order.__getitem__))


MAX_CHANGES = 16_384  # pods that come or leave; a reader that is further behind counts all groups again
MAX_CURSORS = 8  # since which changes are kept by group
MAX_KEYS = 256  # labels by which groups are filed; any pod may ask for any label

Terms = tuple[PodAffinityTerm, ...]
HeldOfQuota = tuple[tuple[tuple[str, str], int], ...]
"""By pool and resource, what a pod holds of it, where its pools have quotas by node."""
GroupKey = tuple[str, Pairs, Terms, Terms, tuple[WeightedTerm, ...], bool, bool, HeldOfQuota]


class AlikePods(Struct, eq=False):
    """The pods that no rule about other pods can tell apart.

    `terms`: of their required anti-affinity. `weights`: of the terms by which they attract others or, below
    0, rather keep them away. `is_terminating`: being deleted. `is_nominated`: pending, with room held for
    them. `of_quota`: what each holds, by pool and resource. `pods`: row -> how many of them are there.
    """

    namespace: str
    labels: Mapping[str, str]
    terms: Terms
    weights: Mapping[PodAffinityTerm, int]
    serial: int  # another one for every group ever made
    is_terminating: bool
    is_nominated: bool
    of_quota: Mapping[tuple[str, str], int]
    pods: dict[int, int] = field(default_factory=dict)


Groups = dict[AlikePods, None]  # as an ordered set
Change = tuple[AlikePods, int, int]
"""A group, a row, and 1 for a pod that has come there or -1 for one that has left."""


class AlikePodGroups:
    """All groups with a pod on a node, and the terms of their pods.

    `terms`: of required anti-affinity. `preferences`: by which pods attract others or rather keep them away.
    `compared`: how often a group was compared with what a rule asks for.
    """

    def __init__(self, terms: HeldTerms, preferences: HeldTerms) -> None:
        self._terms = terms
        self._preferences = preferences
        self._groups: dict[GroupKey, AlikePods] = {}
        self._in_namespace: dict[str, Groups] = {}
        self.with_term: dict[PodAffinityTerm, Groups] = {}  # of required anti-affinity
        self.with_preference: dict[PodAffinityTerm, Groups] = {}  # by which pods attract, or keep away
        self.of_quota: dict[tuple[str, str], Groups] = {}  # by pool and resource
        # Label -> value -> groups; of the labels that selectors have asked for, the last one at the end.
        self._by_label: dict[str, dict[str, Groups]] = {}
        self._serial = self.compared = 0
        self.changes = EntryLog[Change](MAX_CHANGES)
        self._grouped: dict[int, dict[AlikePods, list[tuple[int, int]]]] = {}  # by cursor
        self._grouped_until = 0

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

    def changes_since(self, cursor: int) -> Mapping[AlikePods, Sequence[tuple[int, int]]] | None:
        """By group, the rows and directions of its changes since `cursor`; None if too far back.

        Counts of many rules read the same changes, and most rules count few groups: so they are grouped once.
        """
        if self._grouped_until != self.changes.head or len(self._grouped) >= MAX_CURSORS:
            self._grouped, self._grouped_until = {}, self.changes.head
        found = self._grouped.get(cursor)
        if found is None and (entries := self.changes.entries_since(cursor)) is not None:
            found = self._grouped[cursor] = {}
            for group, row, times in entries:
                found.setdefault(group, []).append((row, times))
        return found

    def of_pod(self, task: Task) -> AlikePods:
        """The group of a pod that is held; of one that is not bound, as nominated if there are such pods."""
        if not task.node and (found := self._groups.get(_key(task, True))) is not None:
            return found
        return self._groups[_key(task, False)]

    def matching(self, namespaces: Iterable[str] | None, selector: Selector) -> Iterator[AlikePods]:
        """The groups in these namespaces (None: in all) whose labels the selector selects, each once."""
        wanted = None if namespaces is None else frozenset(namespaces)
        for group in self._candidates(wanted, selector):
            self.compared += 1
            if (wanted is None or group.namespace in wanted) and selects(selector, group.labels):
                yield group

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
        namespace, labels, terms, _, _, terminating, nominated, of_quota = key
        group = AlikePods(
            namespace, dict(labels), terms, weights, self._serial, terminating, nominated, dict(of_quota)
        )
        self._groups[key] = group
        self._in_namespace.setdefault(group.namespace, {})[group] = None
        for term in group.terms:
            self._terms.hold(term)
            self.with_term.setdefault(term, {})[group] = None
        for term in group.weights:
            self._preferences.hold(term)
            self.with_preference.setdefault(term, {})[group] = None
        for quota in group.of_quota:
            self.of_quota.setdefault(quota, {})[group] = None
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
            unfile(self.with_term, term, group)
        for term in group.weights:
            self._preferences.release(term)
            unfile(self.with_preference, term, group)
        for quota in group.of_quota:
            unfile(self.of_quota, quota, group)
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
    of_quota = _held_of_quota(task) if spec.quotas else ()
    return task.namespace, task.labels, *own, task.deleting, is_nominated, of_quota


def _held_of_quota(task: Task) -> HeldOfQuota:
    held = {**dict(task.holding), PODS: 1}
    quotas = dict.fromkeys((each.pool, each.resource) for each in task.spec.quotas)
    return tuple((quota, held.get(quota[1], 0)) for quota in quotas)
