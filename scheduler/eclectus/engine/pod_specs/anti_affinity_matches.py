"""Which terms of other pods match which pending pods, without comparing all with all.

Pods with equal namespace and labels match the same terms, so they are compared once. A term that appears or
vanishes is compared only with those that have a value it selects, which an index by label finds.
kube-scheduler compares each pod with the terms on every node when it schedules the pod (PreFilter and
PreScore of InterPodAffinity).
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from eclectus.cluster.alike_pods import HeldTerms, held_weights
from eclectus.cluster.memo import unfile
from eclectus.model.objects import Pairs, PodAffinityTerm, Requirement, Task, selects


class _Alike(Struct, eq=False):
    """The pending pods with one namespace and equal labels, and the terms that match them."""

    key: tuple[str, Pairs]
    labels: dict[str, str]
    matched: tuple[PodAffinityTerm, ...]
    serials: dict[str, int] = field(default_factory=dict)  # uid -> its place in the order of arrival


Groups = dict[_Alike, None]  # as an ordered set
Terms = tuple[PodAffinityTerm, ...]


class TermMatches:
    """Pending pods by their labels, with the terms of one kind that match them.

    Costs nothing until there is a term. `pending`: uid -> task, as the engine keeps it, in order of arrival.
    `own`: the terms that a pod has itself. `matched`: the field of a spec for those of others that match it.
    """

    def __init__(
        self, terms: HeldTerms, pending: Mapping[str, Task], own: Callable[[Task], Terms], matched: str
    ) -> None:
        self.terms = terms
        self._pending = pending
        self._own = own
        self._field = matched
        self._version = 0  # of the terms, when they were last compared
        self.generation = 0  # of the terms, when `changed` was last called; written here only
        self.compared = 0  # terms with groups, for the pod that was given last; written here only
        self._alike: dict[tuple[str, Pairs], _Alike] = {}
        self._group_of: dict[str, _Alike] = {}
        self.pods: Mapping[str, object] = self._group_of  # uid -> its group, of the pods in the index
        self._in_namespace: dict[str, Groups] = {}
        self._with_label: dict[tuple[str, str, str], Groups] = {}  # namespace, key, value
        self._changed: Groups = {}  # groups whose terms have changed since they were last asked for
        self._serial = 0
        self._held: dict[str, Terms] = {}  # uid -> the terms of pending pods themselves

    def with_terms(self, task: Task) -> Task:
        """A pending pod, with the terms of other pods that match it in its spec (nearly always none).

        Its own terms count from now on: it may be placed in one scheduling cycle with pods that they match.
        """
        own = self._own(task)
        if not own and not self.terms.generation:
            return task  # there has been no term yet
        self._compare()  # of what others have changed
        self.compared = 0
        self._hold(task.uid, own)
        self._compare()
        return self._matched(task, self._add(task))

    def _matched(self, task: Task, group: _Alike) -> Task:
        if group.matched == getattr(task.spec, self._field):
            return task
        return replace(task, spec=replace(task.spec, **{self._field: group.matched}))

    def matched(self, task: Task) -> Task:
        """A pod of the index with the terms that match it now."""
        return self._matched(task, self._group_of[task.uid])

    def discard(self, uid: str) -> None:
        """A pod of the index is not pending any more."""
        self._hold(uid, ())
        self._leave_group(uid)

    def _hold(self, uid: str, terms: tuple[PodAffinityTerm, ...]) -> None:
        """The pod is pending with these terms."""
        before = self._held.pop(uid, ())
        if terms:
            self._held[uid] = terms
        if terms != before:
            for term in terms:
                self.terms.hold(term)
            for term in before:
                self.terms.release(term)

    def _leave_group(self, uid: str) -> None:
        group = self._group_of.pop(uid, None)
        if group is not None:
            del group.serials[uid]
            if not group.serials:
                namespace, labels = group.key
                del self._alike[group.key]
                self._changed.pop(group, None)
                unfile(self._in_namespace, namespace, group)
                for label in labels:
                    unfile(self._with_label, (namespace, *label), group)

    def changed(self) -> list[Task]:
        """A term has appeared: the pods whose terms have changed since the last call, with them, by arrival.

        A term that only vanishes excludes no node any more, so its pods are not named until another appears.
        """
        self.generation = self.terms.generation
        self._compare()
        serials = {uid: serial for group in self._changed for uid, serial in group.serials.items()}
        self._changed = {}
        uids = sorted(serials, key=serials.__getitem__)
        return [self._matched(self._pending[uid], self._group_of[uid]) for uid in uids]

    # -- comparing -----------------------------------------------------------------------------

    def _compare(self) -> None:
        """Bring the groups up to date with the terms."""
        if self._version == self.terms.version:
            return
        if not self._version:
            for task in self._pending.values():
                self._add(task)
        self._version = self.terms.version
        affected: dict[_Alike, set[PodAffinityTerm]] = {}
        for term in self.terms.take_changed():
            for group in self._matched_by(term):
                affected.setdefault(group, set()).add(term)
        for group, terms in affected.items():  # each once: one pod may have thousands of terms
            self._update(group, terms)

    def _update(self, group: _Alike, terms: Collection[PodAffinityTerm]) -> None:
        """The group after these terms, which match it, have appeared or vanished."""
        kept = [term for term in group.matched if term not in terms]
        matched = self.terms.in_order([*kept, *(term for term in terms if term in self.terms)])
        if matched != group.matched:
            group.matched = matched
            self._changed[group] = None

    def _matched_by(self, term: PodAffinityTerm) -> Iterator[_Alike]:
        for namespace in self._namespaces_of(term):
            candidates = self._candidates(namespace, term.selector)
            self.compared += len(candidates)
            for group in candidates:
                if selects(term.selector, group.labels):
                    yield group

    def _namespaces_of(self, term: PodAffinityTerm) -> Collection[str]:
        """The namespaces in which to look; of a term that names thousands, those with pending pods."""
        if term.namespaces is not None and len(term.namespaces) <= len(self._in_namespace):
            return term.namespaces
        return [each for each in self._in_namespace if term.covers(each)]

    def _candidates(self, namespace: str, selector: tuple[Requirement, ...]) -> Collection[_Alike]:
        """The groups that the narrowest `In` of the selector leaves; all of the namespace if it has none."""
        fewest: Collection[_Alike] = self._in_namespace.get(namespace, {})
        for requirement in selector:
            if requirement.op != "In":
                continue
            labels = [(namespace, requirement.key, value) for value in dict.fromkeys(requirement.values)]
            selected = [self._with_label.get(label, {}) for label in labels]
            if sum(map(len, selected)) < len(fewest):
                fewest = [group for groups in selected for group in groups]
        return fewest

    # -- the index -----------------------------------------------------------------------------

    def _add(self, task: Task) -> _Alike:
        """The group of the task, which it joins if it is not in it."""
        uid, key = task.uid, (task.namespace, task.labels)
        before = self._group_of.get(uid)
        if before is not None and before.key == key:
            return before
        self._serial += 1
        serial = self._serial if before is None else before.serials[uid]
        self._leave_group(uid)
        group = self._alike.get(key)
        if group is None:
            compared = self.terms.compared
            matched = self.terms.matching(*key) if self._version else ()
            self.compared += self.terms.compared - compared
            group = self._alike[key] = _Alike(key, dict(task.labels), matched)
            self._in_namespace.setdefault(task.namespace, {})[group] = None
            for label in task.labels:
                self._with_label.setdefault((task.namespace, *label), {})[group] = None
        group.serials[uid] = serial
        self._group_of[uid] = group
        return group


def anti_affinity_matches(terms: HeldTerms, pending: Mapping[str, Task]) -> TermMatches:
    """Which terms of required anti-affinity match which pending pods."""
    return TermMatches(terms, pending, lambda task: task.anti_affinity_terms, "matched_terms")


def preference_matches(terms: HeldTerms, pending: Mapping[str, Task]) -> TermMatches:
    """Which pending pods are attracted, or rather kept away, by which terms."""
    return TermMatches(terms, pending, lambda task: tuple(held_weights(task.spec)), "matched_preferences")
