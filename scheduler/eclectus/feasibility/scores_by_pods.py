"""Preference scores of pods with preferences about other pods: pod affinity and soft topology spread.

They count beside preferred node affinity and taints (scores.py), with kube-scheduler's weights for
InterPodAffinity (2) and PodTopologySpread (2), and normalised as there, but among all nodes that may run the
pod, not those with room:

    score = (w of the node itself + 2 attraction + 2 spread) / (w + 2 + 2)

w is 5 with preferred node affinity and 3 without; what a pod does not state is left out of both sums. Where
pods elsewhere do not distinguish the nodes, all have 1.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from math import floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, EntryLog, Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.scores import (
    MOST,
    Constraint,
    Ints,
    crowding,
    inter_pod_affinity,
    pod_topology_spread,
    weight_of,
)
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.domains import DomainCounts, Domains, attracting_pods, spread_pods
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Spec, SpreadConstraint

# What pods elsewhere say for or against each node: preferred pod affinity and soft topology spread.
#
# As numbers of topology domains that follow pods and nodes; which rows are in a domain is no matter here
# (NodeGroups). Pods with the same preferences share them, whatever they request. A pod that comes or
# leaves costs O(1).

MAX_TOUCHED = 256  # domains whose count has changed; a reader that is further behind starts over
HOSTNAME = "kubernetes.io/hostname"


class Touched(NamedTuple):
    """A domain in which pods have come or left: its number among those of `counted[column]`."""

    column: int
    domain: int


class PodPreferences:
    """The preferences of one kind of pod about other pods; up to date after `refresh`.

    `attracting`: for each topology key of terms, InterPodAffinity's sum by domain; `spread`: for each
    constraint with ScheduleAnyway, the pods that it counts by domain; `counted`: both. `touched`: domains
    where a sum has changed. `version` grows with every such change, and when a node is in another domain.
    """

    def __init__(
        self,
        cluster: Cluster,
        spec: Spec,
        domains: Callable[[str], Domains],
        eligible: Callable[[SpreadConstraint], ShapeValues[np.bool_]],
    ) -> None:
        """`spec`: made by `preferences_part`. `domains`: by topology key; `eligible`: see `TopologyMask`."""
        self._cluster = cluster
        self._spec = spec
        self._domains = domains
        self._eligible = eligible
        self.constraints = spec.spread  # those with ScheduleAnyway, in the order of `spread`
        self.touched = EntryLog[Touched](MAX_TOUCHED)
        self.version = 0
        self._pods_cursor = self._shape_cursor = -1
        self._keys: tuple[str, ...] = ()  # of terms, that nodes carry
        self.attracting: list[DomainCounts] = []
        self.spread: list[DomainCounts] = []
        self.counted: tuple[DomainCounts, ...] = ()
        self._start_over()

    def refresh(self) -> None:
        """Follow the pods and nodes that have changed since the last time."""
        pods, shape = self._cluster.pods.changes, self._cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return
        if self._shape_cursor != shape.head and self._carried_keys() != self._keys:
            self._start_over()
            return
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        changes = [counts.refresh() for counts in self.counted]
        if any(change is None for change in changes):
            self.version += 1
            self.touched.record_all()
            return
        for column, change in enumerate(changes):
            if change is not None and (change.domains or change.rows):
                self.version += 1
                for domain in change.domains:
                    self.touched.record(Touched(column, domain))

    def _start_over(self) -> None:
        cluster, domains, eligible = self._cluster, self._domains, self._eligible
        self._pods_cursor, self._shape_cursor = cluster.pods.changes.head, cluster.shape.head
        self._keys = self._carried_keys()
        self.attracting = list(map(self._attraction, self._keys))
        self.spread = [
            DomainCounts(cluster, domains(each.topology_key), spread_pods(cluster.pods, each), eligible(each))
            for each in self.constraints
        ]
        self.counted = (*self.attracting, *self.spread)
        self.version += 1
        self.touched.record_all()

    def _carried_keys(self) -> tuple[str, ...]:
        """The topology keys of all terms that nodes carry: terms of others may have thousands of keys."""
        own = (each.term.topology_key for each in self._spec.preferred_terms)
        others = (term.topology_key for term in self._spec.matched_preferences)
        carries = self._cluster.labels.carries
        return tuple(key for key in dict.fromkeys((*own, *others)) if carries(key))

    def _attraction(self, key: str) -> DomainCounts:
        own = [each for each in self._spec.preferred_terms if each.term.topology_key == key]
        matched = [term for term in self._spec.matched_preferences if term.topology_key == key]
        pods = attracting_pods(self._cluster.pods, own, matched)
        return DomainCounts(self._cluster, self._domains(key), pods, None)


# The nodes grouped by all that preferences about other pods can tell of them, so that scores are a few.
#
# Two nodes are in one group if they have the same score of their own, may both run the pod or not, and for
# each topology key of the preferences are in the same domain; or, where domains are many (nodes, above all),
# in domains for which the same number of pods counts. So a pod that is placed moves one node to the group of
# the next count, and a count by zone changes a number of groups, not one of all nodes of the zone. Clusters
# of any size have a few dozen groups, unless pods are distributed very unequally; in the worst case each node
# is a group, and scores cost what they would cost by node.

MAX_APART = 64  # domains of a key by which nodes are grouped; of more, by their counts
SPARE = 64  # groups without a node, before all nodes are grouped again

Key = tuple[float | int, ...]
"""Of a group: own score, may run, then for each topology key 1 with the label, and its domain or count."""
OWN, MAY_RUN, FIRST = 0, 1, 2  # places in a key


class KindsOfGroups(NamedTuple):
    """What of the groups changes only with a new group, or when one gets its first or loses its last node.

    `may_run`, `has_keys`: by group. `max_skews`: of each constraint with ScheduleAnyway, by group or the same
    for all. `all_labelled`: of each topology key, whether all groups have it.
    """

    may_run: Mask
    has_keys: Mask
    max_skews: tuple[Floats | int, ...]
    all_labelled: tuple[bool, ...]


class FewGroups(NamedTuple):
    """The same as plain numbers by group, and what is known of the groups themselves.

    `own`: how well the nodes themselves are liked. `scored`: those of `may_run` with all needed keys. By
    topology key, those of terms first: `domains`, or counts where nodes are grouped by these, and whether the
    nodes of each group have a label. `more`: by constraint, what it adds to a count beside the pods.
    """

    own: list[float]
    may_run: list[bool]
    has_keys: list[bool]
    scored: list[bool]
    domains: list[list[int]]
    labelled: list[list[bool]]
    more: list[list[float]]


class NodeGroups:
    """The groups by number, up to date after `refresh`. `of_row`: the group of each row, shape [capacity].

    `sizes`: rows in each group, 0 perhaps, shape [groups].
    """

    def __init__(
        self,
        cluster: Cluster,
        pods: PodPreferences,
        may_run: ShapeValues[np.bool_],
        own: ShapeValues[np.float64],
    ) -> None:
        """`own`: how well the nodes themselves are liked."""
        self._cluster = cluster
        self._pods = pods
        self._may_run = may_run
        self._own = own
        self._shape_cursor = self._touched_cursor = -1
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []  # by number
        self._apart: list[bool] = []  # of each key: whether nodes are grouped by domain
        self._sizes: Ints = np.zeros(0, dtype=np.int64)
        self._kinds: KindsOfGroups | None = None  # until they are asked for
        self._few: FewGroups | None = None  # likewise
        # The keys as arrays, shapes [groups or more] and [parts of a key, groups or more]; OWN is not read.
        self._own_scores: Floats = np.zeros(0)
        self._table: Ints = np.zeros((0, 0), dtype=np.int64)
        self.of_row: Ints = np.zeros(0, dtype=np.int64)
        pods.refresh()
        self._start_over()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def sizes(self) -> Ints:
        """Rows in each group, shape [groups]."""
        return self._sizes[: len(self)]

    @property
    def own(self) -> Floats:
        """How well the nodes of each group themselves are liked."""
        return self._own_scores[: len(self)]

    @property
    def may_run(self) -> Mask:
        """The groups with a node, which may run the pod."""
        return self._known_kinds().may_run

    def has_keys(self) -> Mask:
        """The groups that have the topology keys of all constraints with ScheduleAnyway that need them."""
        return self._known_kinds().has_keys

    def attraction(self) -> Ints:
        """InterPodAffinity's sum for each group."""
        total: Ints = np.zeros(len(self), dtype=np.int64)
        for column in range(len(self._pods.attracting)):
            total += self._counted(column)
        return total

    def constraints(self, weights: Sequence[float]) -> Iterator[Constraint]:
        """Each constraint with ScheduleAnyway, with what it counts for each group and these weights."""
        first, max_skews = len(self._pods.attracting), self._known_kinds().max_skews
        for at, (max_skew, weight) in enumerate(zip(max_skews, weights, strict=True)):
            yield self._counted(first + at), max_skew, weight

    def _known_kinds(self) -> KindsOfGroups:
        if self._kinds is None:
            self._kinds = self._kinds_now()
        return self._kinds

    def _kinds_now(self) -> KindsOfGroups:
        first, max_skews = len(self._pods.attracting), list[Floats | int]()
        has_keys: Mask = np.ones(len(self), dtype=bool)
        for column, each in enumerate(self._pods.constraints, first):
            labelled = self._labelled(column)
            if each.needs_all_keys:
                has_keys &= labelled > 0
            if each.needs_all_keys or each.max_skew == 1:
                max_skews.append(each.max_skew)
            else:
                by_group = np.ones(len(self))
                by_group[labelled > 0] = each.max_skew
                max_skews.append(by_group)
        return KindsOfGroups(
            may_run=(self.sizes > 0) & (self._table[MAY_RUN, : len(self)] > 0),
            has_keys=has_keys,
            max_skews=tuple(max_skews),
            all_labelled=tuple(bool(self._labelled(each).all()) for each in range(len(self._apart))),
        )

    def few(self) -> FewGroups:
        """The groups as plain numbers."""
        if self._few is None:
            self._few = self._few_now()
        return self._few

    def _few_now(self) -> FewGroups:
        kinds, columns = self._known_kinds(), range(len(self._apart))
        return FewGroups(
            own=self.own.tolist(),
            may_run=kinds.may_run.tolist(),
            has_keys=kinds.has_keys.tolist(),
            scored=(kinds.may_run & kinds.has_keys).tolist(),
            domains=[self._column(each).tolist() for each in columns],
            labelled=[(self._labelled(each) > 0).tolist() for each in columns],
            more=[(np.zeros(len(self)) + max_skew - 1.0).tolist() for max_skew in kinds.max_skews],
        )

    def each_counted(self, column: int) -> list[int]:
        """What counts for each group by one topology key, as plain numbers."""
        few, counts = self.few(), self._pods.counted[column].counts.data
        domains = few.domains[column]
        if not self._apart[column]:
            return domains
        pairs = zip(domains, few.labelled[column], strict=True)
        return [counts[domain] if has_label else 0 for domain, has_label in pairs]

    def weights_among(self, groups: Mask, rows: Rows) -> tuple[float, ...]:
        """The weight of the counts of each constraint, by its domains that have any of these rows.

        `groups`: those of the rows. The rows have all keys that are needed; those without another one are a
        domain of it. For the key kubernetes.io/hostname the domains are nodes.
        """
        first = len(self._pods.attracting)
        columns = range(first, first + len(self._pods.spread))
        return tuple(weight_of(self._domain_count(column, groups, rows)) for column in columns)

    def _domain_count(self, column: int, groups: Mask, rows: Rows) -> int:
        domains = self._pods.counted[column].domains
        if domains.key == HOSTNAME:
            return len(rows)
        if self._apart[column]:
            return len(set(self._column(column)[groups].tolist()))
        return int(np.count_nonzero(np.bincount(domains.of_row[rows] - ABSENT)))

    def _labelled(self, column: int) -> Ints:
        """1 for groups with the label."""
        return self._table[FIRST + 2 * column, : len(self)]

    def _column(self, column: int) -> Ints:
        """The domain of each group, or its count."""
        return self._table[FIRST + 2 * column + 1, : len(self)]

    def _counted(self, column: int) -> Ints:
        found = self._column(column)
        if not self._apart[column]:
            return found
        counts = self._pods.counted[column].counts
        if not len(counts):
            return np.zeros_like(found)
        counted = counts[found]
        return counted if self._known_kinds().all_labelled[column] else counted * self._labelled(column)

    def refresh(self) -> list[Rows] | None:
        """Follow pods and nodes that have changed. Arrays of rows now in other groups; None: all may be."""
        cluster, pods = self._cluster, self._pods
        pods.refresh()
        if self._shape_cursor == cluster.shape.head and self._touched_cursor == pods.touched.head:
            return []
        touched = pods.touched.entries_since(self._touched_cursor)
        reshaped = cluster.shape.since(self._shape_cursor)
        if (
            touched is None
            or reshaped is None
            or len(self.of_row) != cluster.capacity
            or (reshaped and self._apart != _few_domains(pods.counted))
            or (len(self) > SPARE and len(self) > 2 * np.count_nonzero(self.sizes) + SPARE)
        ):
            self._start_over()
            return None
        self._shape_cursor, self._touched_cursor = cluster.shape.head, pods.touched.head
        by_count = (each for each in touched if not self._apart[each.column])
        moved = [rows for each in by_count for rows in self._follow_count(*each)]
        if reshaped:
            moved.append(np.array(reshaped, dtype=np.intp))
            for row, key in zip(moved[-1], self._keys_of(moved[-1]).T.tolist(), strict=True):
                self._move(row, self.of_row.item(row), tuple(key))
        return moved

    def _follow_count(self, column: int, domain: int) -> Iterator[Rows]:
        """The rows of a domain go to groups with its count; those that were in others."""
        counted, at = self._pods.counted[column], FIRST + 2 * column + 1
        rows, count = counted.domains.rows_of([domain]), counted.counts.item(domain)
        groups = self.of_row[rows]
        if len(rows) == 1:  # the domains are nodes
            group = groups.item(0)
            key = self._keys[group]
            if key[at] != count:
                self._move(rows[0], group, (*key[:at], count, *key[at + 1 :]))
                yield rows
            return
        for group in set(groups.tolist()):
            key = self._keys[group]
            if key[at] != count:
                moving = rows[groups == group]
                self._move(moving, group, (*key[:at], count, *key[at + 1 :]))
                yield moving

    def _move(self, rows: Rows | np.intp, group: int, key: Key) -> None:
        number = self._numbers.get(key)
        if number is None:
            number = self._add(key)
        moving, sizes = np.size(rows), self._sizes.data
        if sizes[group] == moving or not sizes[number]:
            self._kinds = self._few = None
        sizes[group] -= moving
        sizes[number] += moving
        self.of_row[rows] = number

    def _add(self, key: Key) -> int:
        """A group without nodes; its number."""
        number = self._numbers[key] = len(self._keys)
        self._keys.append(key)
        self._kinds = self._few = None
        if number == len(self._sizes):
            self._sizes = np.pad(self._sizes, (0, number))
            self._own_scores = np.pad(self._own_scores, (0, number))
            self._table = np.pad(self._table, ((0, 0), (0, number)))
        self._own_scores[number], self._table[:, number] = key[OWN], key
        return number

    def _start_over(self) -> None:
        cluster, pods = self._cluster, self._pods
        self._shape_cursor, self._touched_cursor = cluster.shape.head, pods.touched.head
        self._apart, self._kinds, self._few = _few_domains(pods.counted), None, None
        keys = self._keys_of(slice(cluster.capacity))
        self.of_row = _numbered(keys)
        count = int(self.of_row.max(initial=-1)) + 1
        example = np.zeros(count, dtype=np.intp)  # a row of each group
        example[self.of_row] = np.arange(len(self.of_row))
        self._sizes = np.bincount(self.of_row, minlength=count)
        keys = keys[:, example]
        self._own_scores, self._table = keys[OWN], keys.astype(np.int64)
        self._keys = list(map(tuple, keys.T.tolist()))
        self._numbers = {key: number for number, key in enumerate(self._keys)}

    def _keys_of(self, rows: AnyRows) -> Floats:
        """The keys of the rows, shape [parts of a key, len(rows)]."""
        parts: list[NDArray[Any]] = [self._own.refresh()[rows], self._may_run.refresh()[rows]]
        for counted, is_apart in zip(self._pods.counted, self._apart, strict=True):
            domain = counted.domains.of_row[rows]
            labelled = domain != ABSENT
            parts.append(labelled)
            if not is_apart and len(counted.counts):
                parts.append(np.where(labelled, counted.counts[domain], 0))
            else:
                parts.append(domain)
        return np.array(parts, dtype=np.float64)


def _few_domains(counted: Iterable[DomainCounts]) -> list[bool]:
    return [each.domains.count <= MAX_APART for each in counted]


def _numbered(keys: Floats) -> Ints:
    """Numbers from 0 of columns, equal for equal columns, shape [columns]."""
    numbers: Ints = np.zeros(keys.shape[1], dtype=np.int64)
    for part in keys:
        if (part != part[0]).any():
            of_part = np.unique(part, return_inverse=True)[1]
            numbers = np.unique(numbers * (int(of_part.max()) + 1) + of_part, return_inverse=True)[1]
    return numbers


ATTRACTION_WEIGHT, SPREAD_WEIGHT = 2, 2

FEW_GROUPS = 24  # up to which plain numbers cost less than numpy
MAX_FLIPS = 256  # entries of rows; a reader that is further behind starts over


class ScoresByPods:
    """The preference scores of one kind of pod, up to date after `refresh`; by row, a plain number.

    `pods`: the preferences about other pods. `groups`: the nodes that these cannot tell apart. `flips`:
    arrays of rows whose score has changed.
    """

    def __init__(
        self,
        cluster: Cluster,
        pods: PodPreferences,
        may_run: ShapeValues[np.bool_],
        own: tuple[ShapeValues[np.float64], int],
    ) -> None:
        """`own`: the scores of the nodes themselves, and what they weigh."""
        scores, self._own_weight = own
        self.pods = pods
        self.groups = NodeGroups(cluster, pods, may_run, scores)
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self._version = pods.version
        self._scores: Floats = np.zeros(0)
        self._is_written = False  # whether `_scores` has the scores of all rows as they are
        self._of_groups = self._of_groups_now()

    def __getitem__(self, row: int) -> float:
        return self._of_groups.item(self.groups.of_row.item(row))

    def refresh(self) -> None:
        """Follow the pods and nodes that have changed since the last time."""
        moved = self.groups.refresh()
        if moved == [] and self._version == self.pods.version:
            return
        self._version = self.pods.version
        before, self._of_groups = self._of_groups, self._of_groups_now()
        if moved is None or self._differ_from(before):
            self._is_written = False
            self.flips.record_all()
            return
        for rows in moved:
            if self._is_written:
                self._scores[rows] = self._of_groups[self.groups.of_row[rows]]
            self.flips.record(rows)

    def by_row(self) -> Floats:
        """All scores, 0..1, shape [capacity], read-only; written when they are asked for."""
        if not self._is_written:
            self._is_written = True
            if len(self._scores) != len(self.groups.of_row):
                self._scores = np.zeros(len(self.groups.of_row))
                self._view = read_only(self._scores)
            # Every number is one of a group; a mode that need not check this takes a third of the time.
            self._of_groups.take(self.groups.of_row, out=self._scores, mode="clip")
        return self._view

    def made(self, of_score: Callable[[Floats], Floats], rows: AnyRows) -> Floats:
        """What a function makes of the scores of these rows, up to date; it is asked about groups of rows."""
        return of_score(self._of_groups).take(self.groups.of_row[rows], mode="clip")

    def _differ_from(self, before: Floats) -> bool:
        """Whether a group that there was has another score than before, though it may have no node now."""
        return self._of_groups[: len(before)].tobytes() != before.tobytes()

    def _of_groups_now(self) -> Floats:
        if len(self.groups) <= FEW_GROUPS:
            return np.array(self._of_few_groups())
        pods, groups, may_run = self.pods, self.groups, self.groups.may_run
        total, weight = self._own_weight * groups.own, self._own_weight
        if pods.attracting:
            sums = groups.attraction()
            least, most = range_of(sums[may_run])
            attraction = 1.0 if least == most else _share(inter_pod_affinity(sums, least, most))
            total, weight = total + ATTRACTION_WEIGHT * attraction, weight + ATTRACTION_WEIGHT
        if pods.spread:
            weights = tuple(weight_of(counts.existing) for counts in pods.spread)
            crowded = crowding(tuple(groups.constraints(weights)), len(groups))
            has_keys = groups.has_keys()
            least, most = range_of(crowded[has_keys & may_run])
            spread = _share(pod_topology_spread(crowded, least, most)) * has_keys
            total, weight = total + SPREAD_WEIGHT * spread, weight + SPREAD_WEIGHT
        scores: Floats = total / weight
        return scores

    def _of_few_groups(self) -> list[float]:
        """The same to the last bit, in plain numbers."""
        pods, few = self.pods, self.groups.few()
        total, weight = [self._own_weight * own for own in few.own], self._own_weight
        if pods.attracting:
            attraction = self._each_attraction(few)
            total = [each + ATTRACTION_WEIGHT * more for each, more in zip(total, attraction, strict=True)]
            weight += ATTRACTION_WEIGHT
        if pods.spread:
            spread = self._each_spread(few)
            total = [each + SPREAD_WEIGHT * more for each, more in zip(total, spread, strict=True)]
            weight += SPREAD_WEIGHT
        return [each / weight for each in total]

    def _each_attraction(self, few: FewGroups) -> list[float]:
        sums = [0] * len(few.own)
        for column in range(len(self.pods.attracting)):
            counted = self.groups.each_counted(column)
            sums = [each + more for each, more in zip(sums, counted, strict=True)]
        among = list(compress(sums, few.may_run))
        least, most = min(among, default=0), max(among, default=0)
        if least == most:
            return [1.0] * len(sums)
        span = float(most - least)
        return [_share_of_one(int(MOST * ((each - least) / span))) for each in sums]

    def _each_spread(self, few: FewGroups) -> list[float]:
        total, first = [0.0] * len(few.own), len(self.pods.attracting)
        for column, (counts, more) in enumerate(zip(self.pods.spread, few.more, strict=True), first):
            weight, counted = weight_of(counts.existing), self.groups.each_counted(column)
            total = [
                each + (count * weight + also) for each, count, also in zip(total, counted, more, strict=True)
            ]
        crowded = [floor(each + 0.5) for each in total]
        among = list(compress(crowded, few.scored))
        least, most = min(among, default=0), max(among, default=0)
        if not most:
            return list(map(float, few.has_keys))
        both = most + least
        return [
            _share_of_one(MOST * (both - each) // most) if has_keys else 0.0
            for each, has_keys in zip(crowded, few.has_keys, strict=True)
        ]


def _share(scores: Ints) -> Floats:
    """0..1, of groups that may not run the pod too."""
    return np.minimum(np.maximum(scores, 0), MOST) / MOST


def _share_of_one(score: int) -> float:
    """The same of one group."""
    return (score if 0 <= score <= MOST else 0 if score < 0 else MOST) / MOST


def range_of(values: Ints) -> tuple[int, int]:
    """The least and the greatest; 0 without values."""
    if not len(values):
        return 0, 0
    return int(np.minimum.reduce(values)), int(np.maximum.reduce(values))
