"""Unschedulable classes with rules about other pods: which of them a pod that has come or left may concern.

Such a pod may open a topology domain on whose nodes nothing else has changed. An index of the selectors of
all these classes finds those that count the pod, so that others cost nothing. A changed node may be a new
domain, or the end of one, and concerns them all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from eclectus.cluster.alike_pods import AlikePods
from eclectus.cluster.anti_affinity.index import TermIndex
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import PodAffinityTerm, Spec
from eclectus.model.reservation import ClassKey

Keys = dict[ClassKey, None]  # as an ordered set


class PodRuleFollowers:
    """Classes, and which pods their rules are about."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._classes: Keys = {}
        self._index = TermIndex()
        self._counting: dict[PodAffinityTerm, Keys] = {}  # by a term that matches the pods that count
        self._kept_away: dict[PodAffinityTerm, Keys] = {}  # by a term that the pods that count have
        self._pods_cursor = self._shape_cursor = 0

    def add(self, key: ClassKey) -> None:
        """The class is unschedulable; no effect if it has no such rules."""
        if not key[0].has_pod_rules:
            return
        self._classes[key] = None
        for term in _counted(key[0]):
            if term not in self._counting:
                self._index.add(term)
            self._counting.setdefault(term, {})[key] = None
        for term in key[0].matched_terms:
            self._kept_away.setdefault(term, {})[key] = None

    def discard(self, key: ClassKey) -> None:
        """The class is not unschedulable any more; no error if it was not added."""
        if key not in self._classes:
            return
        del self._classes[key]
        for term in dict.fromkeys(_counted(key[0])):
            _remove(self._counting, term, key)
            if term not in self._counting:
                self._index.discard(term)
        for term in dict.fromkeys(key[0].matched_terms):
            _remove(self._kept_away, term, key)

    def affected(self) -> Collection[ClassKey]:
        """The classes for which a domain may have been opened since the last `skip_changes`."""
        cluster = self._cluster
        if not self._classes:
            return ()
        changes = cluster.pods.changes.entries_since(self._pods_cursor)
        if changes is None or cluster.shape.head != self._shape_cursor:
            return self._classes
        found: Keys = {}
        for group in dict.fromkeys(group for group, _, _ in changes):
            for keys in self._concerned(group):
                found.update(keys)
        return found

    def skip_changes(self) -> None:
        """What has changed up to now is known."""
        self._pods_cursor = self._cluster.pods.changes.head
        self._shape_cursor = self._cluster.shape.head

    def _concerned(self, group: AlikePods) -> Iterator[Keys]:
        for term in self._index.matching(group.namespace, tuple(group.labels.items())):
            yield self._counting[term]
        if self._kept_away:
            for term in group.terms:
                yield self._kept_away.get(term, {})


def _counted(spec: Spec) -> Iterator[PodAffinityTerm]:
    """Terms of which one matches every pod that a rule of the class counts."""
    yield from spec.affinity_terms
    yield from spec.own_anti_affinity
    for each in spec.spread:
        if each.selector:
            yield PodAffinityTerm(each.topology_key, each.selector, (each.namespace,))


def _remove(index: dict[PodAffinityTerm, Keys], term: PodAffinityTerm, key: ClassKey) -> None:
    keys = index[term]
    del keys[key]
    if not keys:
        del index[term]
