"""Classes of tasks that no rule can tell apart, each with what the rules say of every node.

A class follows the cluster's change logs. A pod that is bound costs each class that is used again one
row; a class that is not used costs nothing. Most of a class is made of parts that it shares (`Parts`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import override

from eclectus.cluster.changelog import AnyRows, EntryLog, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import Scalars, read_only, scalars
from eclectus.feasibility.room import Fit, RoomArrays
from eclectus.feasibility.rules.nodes import term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.scores import (
    AFFINITY_WEIGHT,
    TAINT_WEIGHT,
    scores,
    taint_scores,
    untolerated,
    weigh,
)
from eclectus.feasibility.scores_by_pods import PodPreferences, ScoresByPods
from eclectus.feasibility.static_rules import (
    NOT_READ_BY_RULES,
    ManyTerms,
    ShapeValues,
    evaluation,
    static_part,
)
from eclectus.feasibility.topology.domains import Domains, eligible_nodes, preferences_part, topology_part
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Amounts, ClassKey, Preference, Spec, SpreadConstraint, Term, Toleration

# The parts of which task classes are made, each shared by all classes that read the same of a spec.
#
# Pods that differ in their preferences alone have the same room and may run on the same nodes. So what
# depends on one part of a spec is evaluated once for all classes with this part, and a class of its own costs
# little more than what is its own. A part goes with its last class.

MAX_SHARED_TERMS = 32  # of one pod: a pod may state thousands of preferences, and a mask takes a byte a node

MaskPart = ShapeValues[np.bool_]
TOPOLOGY_BYTES = 48  # of a mask of two rules: domains, counts, and which rows are shut
PREFERENCES_BYTES = 40  # of preferences about other pods by two topology keys: domains, and counts by domain

ScorePart = ShapeValues[np.float64]
IntPart = ShapeValues[np.int64]

Key = TypeVar("Key")
Part = TypeVar("Part")


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
        self._domains: WeakValueDictionary[tuple[str, str | None], Domains] = WeakValueDictionary()

    @property
    def bytes_per_node(self) -> int:
        """What all parts together need for each row."""
        of_nodes = 2 * len(self._fits) + 24 * len(self._rooms) + len(self._masks) + 8 * len(self._scores)
        of_pods = TOPOLOGY_BYTES * len(self._topologies) + PREFERENCES_BYTES * len(self._pod_preferences)
        others = 4 * len(self._domains) + len(self._eligible) + 16 * len(self._by_pods)
        return of_nodes + of_pods + others

    def room(self, requests: Amounts) -> RoomArrays:
        """The room for pods with these requests."""
        return _shared(self._rooms, requests, lambda: RoomArrays(self._cluster, requests))

    def fit(self, spec: Spec) -> Fit:
        """Where pods with this spec fit."""
        part = replace(spec, **NOT_READ_BY_RULES)
        return _shared(self._fits, part, lambda: self._new_fit(spec, part))

    def _new_fit(self, spec: Spec, part: Spec) -> Fit:
        return Fit(self._cluster, part, self.room(spec.requests), self.may_run(spec), self.topology(spec))

    def may_run(self, spec: Spec) -> MaskPart:
        """Where there is a node on which all static rules hold."""
        part = static_part(spec)
        return _shared(self._masks, part, lambda: self._mask(evaluation(self._cluster, part)))

    def _mask(self, holds: Callable[[Rows], Mask]) -> MaskPart:
        return ShapeValues(self._cluster, np.bool_, lambda rows: holds(_each(rows)))

    def topology(self, spec: Spec) -> TopologyMask | None:
        """Where the rules about other pods allow pods with this spec; None if it has no such rule."""
        if not spec.has_pod_rules:
            return None
        part, cluster = topology_part(spec), self._cluster
        eligible = partial(self.eligible, part)
        return _shared(self._topologies, part, lambda: TopologyMask(cluster, part, self.domains, eligible))

    def domains(self, key: str, value: str | None = None) -> Domains:
        """The topology domains of one key; with a value, the nodes that have it as the only one."""
        return _shared(self._domains, (key, value), lambda: Domains(self._cluster, key, value))

    def eligible(self, spec: Spec, constraint: SpreadConstraint) -> MaskPart:
        """The nodes whose pods count for one of the pod's spread constraints."""
        key = eligible_nodes(spec, constraint)
        return _shared(self._eligible, key, lambda: self._mask(evaluation(self._cluster, *key)))

    def scores_by_pods(self, spec: Spec) -> ScoresByPods | None:
        """How well all preferences of pods with this spec are met; None if none is about other pods."""
        if not spec.prefers_by_pods:
            return None
        part, own, cluster = preferences_part(spec), self.preference_scores(spec), self._cluster
        weight = TAINT_WEIGHT + (AFFINITY_WEIGHT if spec.preferences else 0)

        def new() -> ScoresByPods:
            eligible = partial(self.eligible, part)
            pods = _shared(
                self._pod_preferences, part, lambda: PodPreferences(cluster, part, self.domains, eligible)
            )
            return ScoresByPods(cluster, pods, self.may_run(spec), (own, weight))

        return _shared(self._by_pods, (part, spec.preferences, spec.tolerations, static_part(spec)), new)

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
        return _shared(self._scores, key, lambda: self._new_scores(*key))

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
        return _shared(self._masks, term, lambda: self._mask(partial(term_holds, self._cluster, term)))


def _shared(known: WeakValueDictionary[Key, Part], key: Key, make: Callable[[], Part]) -> Part:
    found = known.get(key)
    if found is None:
        found = known[key] = make()
    return found


def _each(rows: AnyRows) -> Rows:
    return np.arange(rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


class NodeScalars(Struct, frozen=True):
    """The arrays of a class, one number at a time: `overflow[row]` is a plain float."""

    feasible: Scalars[bool]
    fits_now: Scalars[bool]
    overflow: Scalars[float]
    service_slots: Scalars[float]
    preference_score: Scalars[float]
    background_free: Scalars[float]


class TaskClass:
    """One class, up to date after `refresh`.

    Arrays over nodes, shape [capacity], read-only; replaced when the cluster's are:
    `feasible`, `fits_now`: where a task of the class may run, and where it can now; see `Fit`.
    `overflow`, `empty_capacity`, `service_slots`: how much room there is; see `RoomArrays`.
    `preference_score`: how well the pod's preferences are met, 0..1; those about other pods included.
    `background_free`: the share of each node that background load leaves free, 0..1.
    `scalars`: all these but `empty_capacity`, one number at a time.

    `usage_rules`: those that depend on the pods of a node alone, in kube-scheduler's order; `topology`: those
    about other pods; `node_groups`: nodes by what preferences about other pods can tell of them. None: none.

    Logs of the rows for which other pods may have changed something, though not the node itself: `flips` of
    the rules, `score_flips` of `preference_score`.

    `derived`: what policies keep of the class, such as rankings, by keys of their own; gone with the class.
    """

    def __init__(self, cluster: Cluster, spec: Spec, workload: str, parts: Parts | None = None) -> None:
        """Without `parts` the class shares nothing."""
        parts = Parts(cluster) if parts is None else parts
        self.cluster = cluster
        self.spec = spec
        self.workload = workload
        self.last_used = 0  # number of the scheduling cycle; written by ClassCache only
        self.derived: dict[object, Any] = {}
        self._fit = parts.fit(spec)
        self._parts = parts
        self._by_pods = parts.scores_by_pods(spec)
        self._own_scores = parts.preference_scores(spec)
        self.usage_rules, self.topology = self._fit.usage_rules, self._fit.topology
        topology, by_pods = self.topology, self._by_pods
        self.flips: Sequence[EntryLog[Rows]] = () if topology is None else (topology.flips,)
        self.score_flips: Sequence[EntryLog[Rows]] = () if by_pods is None else (by_pods.flips,)
        self.node_groups = None if by_pods is None else by_pods.groups
        self._follow_shape()

    def kept(self, compute: Callable[..., Part], version: object, *of: Any) -> Part:
        """What `compute` returns of the class; computed once for each version of what it depends on."""
        known: tuple[object, Part] | None = self.derived.get(compute)
        if known is None or known[0] != version:
            known = self.derived[compute] = (version, compute(*of))
        return known[1]

    @property
    def version_of_others(self) -> int:
        """Another number when a pod that a rule or a preference of the class counts has come or left."""
        of_rules = 0 if self.topology is None else self.topology.version
        return of_rules + (0 if self._by_pods is None else self._by_pods.pods.version)

    @property
    def preference_score(self) -> Floats:
        """How well each node meets the pod's preferences, 0..1, shape [capacity], read-only."""
        return self._own_score if self._by_pods is None else self._by_pods.by_row()

    def by_preference(self, of_score: Callable[[Floats], Floats], rows: AnyRows) -> Floats:
        """What a function makes of the `preference_score` of each of the rows, number by number.

        It costs less than to read the scores where pods elsewhere may change those of all nodes.
        """
        if self._by_pods is None:
            return of_score(self.preference_score[rows])
        return self._by_pods.made(of_score, rows)

    @cached_property
    def untolerated_taints(self) -> ShapeValues[np.int64]:
        """How many PreferNoSchedule taints of each node the pod does not tolerate; kept once asked for."""
        return self._parts.untolerated(self.spec)

    @cached_property
    def preferred_weights(self) -> ShapeValues[np.int64] | None:
        """The weights of the preferred node affinity that holds on each node; None if the pod has none."""
        return self._parts.preferred_weights(self.spec) if self.spec.preferences else None

    @property
    def rows(self) -> Rows:
        """The rows that it is about: all that were ever used."""
        return np.arange(len(self.cluster.names), dtype=np.intp)

    @property
    def weighed_rows(self) -> AnyRows:
        """The same, in the form that is read fastest."""
        return slice(len(self.cluster.names))

    @property
    def feasible_count(self) -> int:
        """Nodes that may run a task of the class."""
        return self._fit.feasible_count

    @property
    def fits_now_count(self) -> int:
        """Nodes that can run a task of the class now."""
        return self._fit.fits_now_count

    @property
    def fits_now_rows(self) -> Rows:
        """Rows that can run a task of the class now, ascending."""
        return np.flatnonzero(self.fits_now)

    @property
    def waitable_rows(self) -> Rows:
        """Rows that can run a task of the class, now or after other tasks have ended, ascending."""
        return self._fit.waitable_rows

    def waitable(self, rows: Rows) -> Mask:
        """Which of the rows are among `waitable_rows`, shape [len(rows)]."""
        return self._fit.waitable(rows)

    def may_wait(self, row: int) -> bool:
        """Whether waiting for this node helps: it is feasible, and its services leave at least one slot.

        And no limit of the pod's pools forbids it now. May be called without `refresh`: but for such limits
        the answer changes with shape and services only.
        """
        cluster = self.cluster
        is_behind = self._fit.room.service_cursor != cluster.service_changes
        if is_behind or self._shape_cursor != cluster.shape.head:
            self.refresh()
        if not self.scalars.feasible[row] or self.scalars.service_slots[row] < 1:
            return False
        topology = self.topology
        return topology is None or not topology.has_quotas or bool(topology.within_quotas(np.array([row]))[0])

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count.

        May be called without `refresh`: the room is computed from the cluster.
        """
        if self._shape_cursor != self.cluster.shape.head:
            self.refresh()
        return self._fit.fits_beside_held(row)

    def fit_beside_held(self, rows: Rows) -> Mask:
        """Whether one more task fits beside the pods on each of the rows, shape [len(rows)].

        As `fits_now`, but what is only planned for other waiting pods counts as free.
        """
        return self._fit.fit_beside_held(rows)

    def shortages(self, rows: Rows) -> Iterator[tuple[str, Mask]]:
        """Each resource that a task demands, and which of the rows have too little of it left."""
        return self._fit.room.room.shortages(rows)

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last refresh."""
        cluster = self.cluster
        if self._shape_cursor != cluster.shape.head:
            self._follow_shape()
        elif self._fit.usage_cursor != cluster.usage.head:
            self._fit.refresh_usage()
        if self._by_pods is not None:
            self._by_pods.refresh()

    def _follow_shape(self) -> None:
        """Nodes have changed, and perhaps the cluster's arrays, and so those of the parts."""
        self._shape_cursor = self.cluster.shape.head
        fit = self._fit
        fit.refresh()
        room = fit.room
        self.feasible, self.fits_now = fit.feasible, fit.fits_now
        self._own_score = self._own_scores.refresh()
        self.overflow, self.empty_capacity = room.overflow, room.empty_capacity
        self.service_slots, self.background_free = room.service_slots, self.cluster.background_free
        self.scalars = NodeScalars(
            scalars(self.feasible),
            scalars(self.fits_now),
            scalars(self.overflow),
            scalars(self.service_slots),
            scalars(self._own_score) if self._by_pods is None else self._by_pods,
            scalars(self.background_free),
        )


class NarrowedClass(TaskClass):
    """A class on some of its nodes alone, as it is now: for a task that is offered for these and no others.

    On all other rows nothing is feasible. It does not follow changes, and nothing that is derived from it is
    kept beyond it.
    """

    def __init__(self, of: TaskClass, rows: Rows) -> None:
        """`rows`: ascending; the class must be up to date."""
        self.__dict__.update(of.__dict__)
        self.derived, self._of, self._rows = {}, of, rows
        self.feasible, self.fits_now = self._only(of.feasible), self._only(of.fits_now)
        feasible, fits_now = scalars(self.feasible), scalars(self.fits_now)
        self.scalars = replace(of.scalars, feasible=feasible, fits_now=fits_now)

    def _only(self, mask: Mask) -> Mask:
        found = np.zeros_like(mask)
        found[self._rows] = mask[self._rows]
        return read_only(found)

    @override
    def refresh(self) -> None:
        """It stays as it is."""

    @property
    @override
    def rows(self) -> Rows:
        return self._rows

    @property
    @override
    def weighed_rows(self) -> AnyRows:
        return self._rows

    @property
    @override
    def feasible_count(self) -> int:
        return int(self.feasible[self._rows].sum())

    @property
    @override
    def fits_now_count(self) -> int:
        return int(self.fits_now[self._rows].sum())

    @property
    @override
    def waitable_rows(self) -> Rows:
        return self._rows[self._of.waitable(self._rows)]

    @override
    def may_wait(self, row: int) -> bool:
        return bool(self.feasible[row]) and self._of.may_wait(row)

    @override
    def fits_beside_held(self, row: int) -> bool:
        return bool(self.feasible[row]) and self._of.fits_beside_held(row)

    @override
    def fit_beside_held(self, rows: Rows) -> Mask:
        fits: Mask = self._of.fit_beside_held(rows) & self.feasible[rows]
        return fits


# The task classes in use; those that nothing has asked for lately are dropped when others need memory.

MIB = 2**20
FREE_BYTES = 128 * MIB  # up to which no class is dropped: 380 on 5,000 nodes, 600 that differ in preferences
MAX_BYTES = 512 * MIB  # of all classes: on 15,000 nodes 1,300 that differ in preferences
CLASS_BYTES = 16  # of a class for each row beside its parts: two rankings


class ClassCache:
    """Task classes by spec and workload.

    A class that is dropped is made again when it is needed. Those used in this or the last cycle are kept
    while they need less than `max_bytes`; of the others, those used last, as far as `FREE_BYTES` suffice. So
    the number of classes follows what waits. Many are dropped at a time, because each time all are sorted.
    """

    def __init__(self, cluster: Cluster, max_bytes: int = MAX_BYTES) -> None:
        self.cluster = cluster
        self._cycle = 0  # number of the scheduling cycle
        self._max_bytes = max_bytes
        self._free_bytes = min(FREE_BYTES, max_bytes // 4)
        self._limit = self._free_bytes
        self._parts = Parts(cluster)
        self._classes: dict[ClassKey, TaskClass] = {}

    def begin_cycle(self) -> None:
        """A scheduling cycle begins: what it asks for is newer than what the one before has asked for."""
        self._cycle += 1

    def current(self, spec: Spec, workload: str) -> TaskClass:
        """The class of these tasks, up to date."""
        key = (spec, workload)
        found = self._classes.get(key)
        if found is None:
            if self._bytes() >= self._limit:
                self._make_room()
            found = self._classes[key] = TaskClass(self.cluster, spec, workload, self._parts)
        else:
            found.refresh()
        found.last_used = self._cycle
        return found

    def cached(self, key: ClassKey) -> TaskClass:
        """The class, perhaps not up to date: enough for `fits_beside_held` and `may_wait`."""
        return self._classes.get(key) or self.current(*key)

    def recheck(self, spec: Spec, workload: str) -> bool:
        """Whether a class made afresh agrees with the cached one; if not, all are made again. O(rows)."""
        cached, fresh = self.current(spec, workload), TaskClass(self.cluster, spec, workload)
        pairs = (cached.fits_now, fresh.fits_now), (cached.feasible, fresh.feasible)
        if all(np.array_equal(*pair) for pair in pairs):
            return True
        self._parts = Parts(self.cluster)  # the defect may be in a part that others share
        self._drop(list(self._classes))
        return False

    def __len__(self) -> int:
        return len(self._classes)

    def _bytes(self) -> int:
        return self.cluster.capacity * (len(self._classes) * CLASS_BYTES + self._parts.bytes_per_node)

    def _make_room(self) -> None:
        in_use = sum(each.last_used >= self._cycle - 1 for each in self._classes.values())
        self._keep_newest(max(in_use, len(self) * self._free_bytes // (2 * self._bytes())))
        if self._bytes() >= self._max_bytes:
            self._keep_newest(len(self) // 2)
        needed = self._bytes()
        limit = min(max(2 * needed, self._free_bytes), self._max_bytes)
        self._limit = max(limit, needed + needed // 8)  # what is still referred to is not freed

    def _keep_newest(self, count: int) -> None:
        by_age = sorted(self._classes, key=lambda key: self._classes[key].last_used)
        self._drop(by_age[: max(len(by_age) - count, 0)])

    def _drop(self, keys: Iterable[ClassKey]) -> None:
        for key in keys:
            self._classes.pop(key).derived.clear()  # a ranking refers to its class: this frees both at once
