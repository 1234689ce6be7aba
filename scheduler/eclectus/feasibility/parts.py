"""The parts of which task classes are made, each shared by all classes that read the same of a spec.

Pods that differ in their preferences alone have the same room and may run on the same nodes. So what depends
on one part of a spec is evaluated once for all classes with this part, and a class of its own costs little
more than what is its own. A part goes with its last class.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import numpy as np
from msgspec.structs import replace

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit import Fit
from eclectus.feasibility.many_terms import ManyTerms
from eclectus.feasibility.preferences import (
    AFFINITY_WEIGHT,
    TAINT_WEIGHT,
    scores,
    taint_scores,
    untolerated,
    weigh,
)
from eclectus.feasibility.room import Floats, RoomArrays
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.scores_by_pods import ScoresByPods
from eclectus.feasibility.static_rules import NOT_READ_BY_RULES, ShapeValues, evaluation, static_part
from eclectus.feasibility.topology.domains import Domains, eligible_nodes, preferences_part, topology_part
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.feasibility.topology.pod_preferences import PodPreferences
from eclectus.model.objects import Amounts, Preference, Spec, SpreadConstraint, Term, Toleration

MAX_SHARED_TERMS = 32  # of one pod: a pod may state thousands of preferences, and a mask takes a byte a node

MaskPart = ShapeValues[np.bool_]
TOPOLOGY_BYTES = 48  # of a mask of two rules: domains, counts, and which rows are shut
PREFERENCES_BYTES = 40  # of preferences about other pods by two topology keys: domains, and counts by domain

ScorePart = ShapeValues[np.float64]
IntPart = ShapeValues[np.int64]


class Parts:
    """The parts in use, by what they depend on."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fits: WeakValueDictionary[Spec, Fit] = WeakValueDictionary()
        self._rooms: WeakValueDictionary[Amounts, RoomArrays] = WeakValueDictionary()
        self._masks: WeakValueDictionary[Spec | Term, MaskPart] = WeakValueDictionary()
        self._scores: WeakValueDictionary[
            tuple[tuple[Preference, ...], tuple[Toleration, ...]], ScorePart
        ] = WeakValueDictionary()
        self._topologies: WeakValueDictionary[Spec, TopologyMask] = WeakValueDictionary()
        self._pod_preferences: WeakValueDictionary[Spec, PodPreferences] = WeakValueDictionary()
        self._by_pods: WeakValueDictionary[object, ScoresByPods] = WeakValueDictionary()
        self._eligible: WeakValueDictionary[tuple[Spec, tuple[Rule, ...]], MaskPart] = WeakValueDictionary()
        self._domains: WeakValueDictionary[str, Domains] = WeakValueDictionary()

    @property
    def bytes_per_node(self) -> int:
        """What all parts together need for each row."""
        of_nodes = 2 * len(self._fits) + 24 * len(self._rooms) + len(self._masks) + 8 * len(self._scores)
        of_pods = TOPOLOGY_BYTES * len(self._topologies) + PREFERENCES_BYTES * len(self._pod_preferences)
        others = 4 * len(self._domains) + len(self._eligible) + 16 * len(self._by_pods)
        return of_nodes + of_pods + others

    def room(self, requests: Amounts) -> RoomArrays:
        """The room for pods with these requests."""
        found = self._rooms.get(requests)
        if found is None:
            found = self._rooms[requests] = RoomArrays(self._cluster, requests)
        return found

    def fit(self, spec: Spec) -> Fit:
        """Where pods with this spec fit."""
        cluster, part = self._cluster, replace(spec, **NOT_READ_BY_RULES)
        found = self._fits.get(part)
        if found is None:
            found = Fit(cluster, part, self.room(spec.requests), self.may_run(spec), self.topology(spec))
            self._fits[part] = found
        return found

    def may_run(self, spec: Spec) -> MaskPart:
        """Where there is a node on which all static rules hold."""
        cluster, part = self._cluster, static_part(spec)
        found = self._masks.get(part)
        if found is None:
            holds = evaluation(cluster, part)
            found = self._masks[part] = ShapeValues(cluster, np.bool_, lambda rows: holds(_each(rows)))
        return found

    def topology(self, spec: Spec) -> TopologyMask | None:
        """Where the rules about other pods allow pods with this spec; None if it has no such rule."""
        if not spec.has_pod_rules:
            return None
        part = topology_part(spec)
        found = self._topologies.get(part)
        if found is None:
            found = TopologyMask(self._cluster, part, self.domains, lambda each: self.eligible(part, each))
            self._topologies[part] = found
        return found

    def domains(self, key: str) -> Domains:
        """The topology domains of one key."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = Domains(self._cluster, key)
        return found

    def eligible(self, spec: Spec, constraint: SpreadConstraint) -> MaskPart:
        """The nodes whose pods count for one of the pod's spread constraints."""
        cluster, key = self._cluster, eligible_nodes(spec, constraint)
        found = self._eligible.get(key)
        if found is None:
            holds = evaluation(cluster, *key)
            found = self._eligible[key] = ShapeValues(cluster, np.bool_, lambda rows: holds(_each(rows)))
        return found

    def scores_by_pods(self, spec: Spec) -> ScoresByPods | None:
        """How well all preferences of pods with this spec are met; None if none is about other pods."""
        if not spec.prefers_by_pods:
            return None
        part, own = preferences_part(spec), self.preference_scores(spec)
        key = (part, spec.preferences, spec.tolerations, static_part(spec))
        found = self._by_pods.get(key)
        if found is None:
            weight = TAINT_WEIGHT + (AFFINITY_WEIGHT if spec.preferences else 0)
            pods, may_run = self._preferences_about_pods(part), self.may_run(spec)
            found = self._by_pods[key] = ScoresByPods(self._cluster, pods, may_run, (own, weight))
        return found

    def _preferences_about_pods(self, part: Spec) -> PodPreferences:
        found = self._pod_preferences.get(part)
        if found is None:
            cluster, eligible = self._cluster, lambda each: self.eligible(part, each)
            found = self._pod_preferences[part] = PodPreferences(cluster, part, self.domains, eligible)
        return found

    def untolerated(self, spec: Spec) -> IntPart:
        """How many PreferNoSchedule taints pods with this spec do not tolerate; not shared."""
        cluster, tolerations = self._cluster, spec.tolerations
        return ShapeValues(cluster, np.int64, lambda rows: untolerated(cluster, tolerations, rows))

    def preferred_weights(self, spec: Spec) -> IntPart:
        """The sum of the weights of the preferences that hold; not shared. The pod must have some."""
        weigh = self._weighing(spec.preferences)
        return ShapeValues(self._cluster, np.int64, lambda rows: weigh(rows).astype(np.int64))

    def preference_scores(self, spec: Spec) -> ScorePart:
        """How well nodes by themselves meet the preferences of pods with this spec."""
        key = (spec.preferences, spec.tolerations)
        found = self._scores.get(key)
        if found is None:
            found = self._scores[key] = self._new_scores(*key)
        return found

    def _new_scores(
        self, preferences: tuple[Preference, ...], tolerations: tuple[Toleration, ...]
    ) -> ScorePart:
        cluster = self._cluster
        if not preferences:
            return ShapeValues(cluster, np.float64, lambda rows: taint_scores(cluster, tolerations, rows))
        taints = self.preference_scores(Spec(tolerations=tolerations))
        weigh, total = self._weighing(preferences), sum(each.weight for each in preferences)
        return ShapeValues(
            cluster, np.float64, lambda rows: scores(taints.refresh()[rows], weigh(rows), total)
        )

    def _weighing(self, preferences: tuple[Preference, ...]) -> Callable[[AnyRows], Floats]:
        """A function of rows: the weights of the preferences that hold there."""
        if len(preferences) > MAX_SHARED_TERMS:
            many = ManyTerms(self._cluster, [each.term for each in preferences])
            weights = np.array([each.weight for each in preferences], dtype=float)
            return lambda rows: many.weigh(weights, _each(rows))
        shared = [(each.weight, self._term(each.term)) for each in preferences]

        def of_shared(rows: AnyRows) -> Floats:
            masks = [(weight, term.refresh()[rows]) for weight, term in shared]
            return weigh(masks, len(masks[0][1]))

        return of_shared

    def _term(self, term: Term) -> MaskPart:
        """Where a node selector term holds."""
        cluster = self._cluster
        found = self._masks.get(term)
        if found is None:
            found = ShapeValues(cluster, np.bool_, lambda rows: term_holds(cluster, term, _each(rows)))
            self._masks[term] = found
        return found


def _each(rows: AnyRows) -> Rows:
    return np.arange(rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows
