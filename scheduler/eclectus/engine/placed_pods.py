"""Placed pods: bound pods, assumed pods, and pods nominated to a node, for which room is held there.

A bind is assumed at once and forgotten when it is refused (kube-scheduler: AssumePod, ForgetPod). A bound
pod never becomes unbound, so an event that says so is late.

A bind has two parts: it counts as soon as it is assumed, and its command is made when it is sent. Between
the two it can be undone, which is how a gang is placed whole or not at all (gang_attempts.py).

A probe with zero requests requests nothing, so that no task waits for it. Its time equals that of a task
only while a task could have its place, that is, while its notional requests are free on the node. Once
other pods have taken that room, the probe measures its neighbours. It then counts as gone: no sample, no
slot, no sign of life. The bind that takes the room also ends it, so that the two share the node as shortly
as possible. In the simulator such a probe is killed at that moment (sim/world/probes.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from math import inf
from operator import attrgetter
from typing import NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from eclectus.accounts.accounts import AccountOfPlaced
from eclectus.cluster.memo import unfile
from eclectus.cluster.nodes import Cluster
from eclectus.engine.pod_volumes import PodVolumes
from eclectus.model.commands import Bind, BindStep, EndProbe, Renominate
from eclectus.model.objects import NO_GRANT, Grant, Task


class _Placed(Struct, frozen=True, gc=False):
    """A pod that holds room on a node."""

    task: Task  # as it was counted
    node: str  # name; it need not have a row
    since: float  # seconds
    is_nominated: bool  # as it was counted: neither bound nor assumed
    bound_at: float | None = None  # when we assumed its bind, seconds; None of others, and after a restart


class PlacedPods:
    """Every pod that holds room on a node, whether the node is known yet or not."""

    def __init__(self, cluster: Cluster, accounts: Sequence[AccountOfPlaced] = ()) -> None:
        self._cluster = cluster
        self._accounts = accounts  # others may be added to them
        self._placed: dict[str, _Placed] = {}
        self._on: dict[str, dict[str, None]] = defaultdict(dict)  # node name -> uids, in order of arrival
        self._nominated: dict[str, dict[str, None]] = defaultdict(dict)
        # Likewise, of the nominated ones alone: neither bound nor assumed. The nodes need not have rows.
        self.nominated: Mapping[str, Mapping[str, None]] = self._nominated
        self._priorities: Counter[int] = Counter()
        self._assumed: dict[str, str] = {}
        self.assumed: Mapping[str, str] = self._assumed  # uid -> node of every bind not answered yet
        # uid of an assumed pod -> another node, to which it was nominated until then.
        self._nominated_before: dict[str, str] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._placed

    def copy(self, cluster: Cluster) -> PlacedPods:
        """The same pods on the nodes of a copy of the cluster; no account follows them. O(pods)."""
        return copy(self).detach(cluster)

    def detach(self, cluster: Cluster) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._cluster, self._accounts, self._placed = cluster, (), dict(self._placed)
        self._on = _copied(self._on)
        self._nominated = _copied(self._nominated)
        self.nominated = self._nominated
        self._priorities, self._nominated_before = self._priorities.copy(), dict(self._nominated_before)
        self._assumed = dict(self._assumed)
        self.assumed = self._assumed
        return self

    def node_of(self, uid: str) -> str:
        """The node on which a pod holds room; empty if none."""
        placed = self._placed.get(uid)
        return placed.node if placed else ""

    def held_since(self, uid: str) -> float | None:
        """Since when a pod holds room, seconds: since its start where it is known. None if it holds none."""
        placed = self._placed.get(uid)
        if placed is None:
            return None
        return placed.since if placed.task.started is None else placed.task.started

    def bound_at(self, uid: str) -> float | None:
        """When this process has bound the pod that holds room, seconds; None if it has not."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.bound_at

    def find(self, namespace: str, name: str) -> Task | None:
        """The pod of this name that holds room; None if there is none. O(pods): 15 ms for 150,000."""
        tasks = (placed.task for placed in self._placed.values() if placed.task.name == name)
        return next((task for task in tasks if task.namespace == namespace), None)

    def task(self, uid: str) -> Task | None:
        """A pod that holds room, as last seen; None if it holds none."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.task

    def tasks(self) -> Iterator[Task]:
        """All pods that hold room."""
        return (placed.task for placed in self._placed.values())

    def is_bound(self, uid: str) -> bool:
        """Whether the API server has shown the pod on a node: neither assumed nor nominated."""
        placed = self._placed.get(uid)
        return placed is not None and bool(placed.task.node)

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room; inf if none does."""
        return min((each for each, pods in self._priorities.items() if pods), default=inf)

    def on_row(self, row: int) -> Iterator[tuple[Task, float]]:
        """The pods that hold room on a row, and since when, seconds: since their start where it is known."""
        for uid in self._on.get(self._cluster.names[row], ()):
            placed = self._placed[uid]
            started = placed.task.started
            yield placed.task, placed.since if started is None else started

    def count_on(self, row: int) -> int:
        """How many pods hold room on a row."""
        return len(self._on.get(self._cluster.names[row], ()))

    def is_empty(self, row: int) -> bool:
        """Whether no pod holds room on the row."""
        return self._cluster.names[row] not in self._on

    def bound_on(self, row: int) -> Iterator[tuple[Task, float]]:
        """Those of them that the API server has shown on the node."""
        return ((task, since) for task, since in self.on_row(row) if task.node)

    def nominated_on(self, node: str) -> list[Task]:
        """The pods for which the node holds room, in order of arrival."""
        return [self._placed[uid].task for uid in self._nominated.get(node, ())]

    def is_nominated(self, uid: str) -> bool:
        """Whether room is held for this pod, which is neither bound nor assumed."""
        return uid in self._nominated.get(self.node_of(uid), ())

    def set(self, task: Task, node: str, now: float) -> None:
        """The pod holds room on this node as given; what it held before is released."""
        uid, since, bound_at = task.uid, now, None
        placed = self._placed.get(uid)
        if placed is not None:
            if placed.node == node:
                if not placed.is_nominated and _counted_by(placed.task) == _counted_by(task):
                    self._placed[uid] = _Placed(task, node, placed.since, False, placed.bound_at)
                    return
                if _holds_the_same(placed.task, task):
                    self._update(task, placed)
                    return
                since, bound_at = placed.since, placed.bound_at
            self.remove(uid)
        is_nominated = self._is_nominated(task, placed)
        self._placed[uid] = _Placed(task, node, since, is_nominated, bound_at)
        self._on[node][uid] = None
        if is_nominated:
            self._nominated[node][uid] = None
        self._priorities[task.priority] += 1
        for account in self._accounts:
            account.hold(task)
        row = self._cluster.rows.get(node)
        if row is not None:
            self._cluster.hold(row, task, is_nominated=is_nominated)

    def _update(self, task: Task, placed: _Placed) -> None:
        """The pod holds what it held; its labels, its owner or its status may have changed."""
        before, node = placed.task, placed.node
        if task.node:
            _discard(self._nominated, node, task.uid)
        if task.grant != before.grant:  # it is not written on the pod
            task = replace(task, grant=before.grant)
        is_nominated = self._is_nominated(task, placed)
        after = _Placed(task, node, placed.since, is_nominated, placed.bound_at)
        if after != placed:
            self._placed[task.uid] = after
        self._priorities[before.priority] -= 1
        self._priorities[task.priority] += 1
        row = self._cluster.rows.get(node)
        if row is not None:
            if _is_counted_otherwise(placed, after):
                self._cluster.pods.release(row, before, is_nominated=placed.is_nominated)
                self._cluster.pods.hold(row, task, is_nominated=after.is_nominated)
                # For rules about pods, and for policies that choose victims there.
                self._cluster.usage.record(row)
                self._cluster.held.record(row)
            elif task.priority != before.priority:
                self._cluster.usage.record(row)
        if _is_grouped_otherwise(before, task):
            for account in self._accounts:
                account.regroup(task)

    def _is_nominated(self, task: Task, before: _Placed | None) -> bool:
        """Whether it is neither bound nor assumed; `before`: as it was counted, if it was.

        A bind is answered before the pod is seen on its node.
        """
        was_bound = before is not None and not before.is_nominated
        return not task.node and task.uid not in self._assumed and not was_bound

    def remove(self, uid: str) -> None:
        """The pod holds nothing any more."""
        placed = self._placed.pop(uid, None)
        if placed is None:
            return
        task, node = placed.task, placed.node
        self._priorities[task.priority] -= 1
        for account in self._accounts:
            account.release(uid)
        _discard(self._on, node, uid)
        if self._nominated:
            _discard(self._nominated, node, uid)
        row = self._cluster.rows.get(node)
        if row is not None:
            self._cluster.release(row, task, is_nominated=placed.is_nominated)

    def assume(self, task: Task, node: str, now: float) -> str:
        """Count a bind before it is answered. Returns another node to which the pod was nominated, or ""."""
        uid = task.uid
        nominated = self.node_of(uid) if self._nominated and self.is_nominated(uid) else ""
        self._assumed[uid] = node
        self.set(task, node, now)
        self._placed[uid] = replace(self._placed[uid], bound_at=now)
        if nominated == node:
            _discard(self._nominated, node, uid)
            return ""
        if nominated:
            self._nominated_before[uid] = nominated
        return nominated

    def confirm(self, uid: str) -> bool:
        """The pod is bound; whether its bind was assumed until now."""
        self._nominated_before.pop(uid, None)
        return self._assumed.pop(uid, None) is not None

    def forget(self, uid: str, node: str) -> str | None:
        """The bind of this pod to this node was refused; None if that bind is not assumed any more.

        Returns what `assume` returned.
        """
        if self._assumed.get(uid) != node:
            return None
        del self._assumed[uid]
        self.remove(uid)
        return self._nominated_before.pop(uid, "")

    def add_node(self, node: str) -> None:
        """The node has got a row: count the pods already known to be there."""
        row = self._cluster.rows[node]
        for uid in self._on.get(node, ()):
            placed = self._placed[uid]
            self._cluster.hold(row, placed.task, is_nominated=placed.is_nominated)

    def remove_node(self, node: str) -> None:
        """The node is about to lose its row: release what is held there. Its pods stay known."""
        row = self._cluster.rows[node]
        for uid in self._on.get(node, ()):
            placed = self._placed[uid]
            self._cluster.release(row, placed.task, is_nominated=placed.is_nominated)


def _copied(by_node: dict[str, dict[str, None]]) -> dict[str, dict[str, None]]:
    return defaultdict(dict, {node: dict(uids) for node, uids in by_node.items()})


def _discard(by_node: dict[str, dict[str, None]], node: str, uid: str) -> None:
    uids = by_node.get(node)
    if uids is not None:
        uids.pop(uid, None)
        if not uids:
            del by_node[node]


# What it holds, and what others count of it, with its grant: not its status.
_counted_by = attrgetter(
    *("spec", "held", "grant", "anti_affinity_terms", "priority", "deleting"),
    *("namespace", "labels", "job", "stage", "pool"),
)


def _is_counted_otherwise(before: _Placed, after: _Placed) -> bool:
    """Whether rules about other pods see another pod; what it holds is the same."""
    one, other = before.task, after.task
    is_alike = (one.deleting, one.labels, one.namespace) == (other.deleting, other.labels, other.namespace)
    return before.is_nominated != after.is_nominated or not is_alike


def _is_grouped_otherwise(before: Task, task: Task) -> bool:
    """Whether accounts count it elsewhere, or as one that goes."""
    is_labelled = (task.labels, task.job, task.stage) != (before.labels, before.job, before.stage)
    return is_labelled or (task.pool, task.deleting) != (before.pool, before.deleting)


def _holds_the_same(before: Task, after: Task) -> bool:
    return (
        before.holding == after.holding
        and before.spec == after.spec
        and before.anti_affinity_terms == after.anti_affinity_terms
        and after.grant in (NO_GRANT, before.grant)
    )


class AssumedBind(NamedTuple):
    """A bind that counts already, and has not been sent."""

    task: Task
    row: int
    node: str
    nominated: str  # another node, to which the pod was nominated until now; or empty
    for_volumes: tuple[BindStep, ...]


class Binds:
    """Assumes binds, undoes them, and makes their commands."""

    def __init__(
        self, cluster: Cluster, placed: PlacedPods, volumes: PodVolumes, probe_validity: ProbeValidity
    ) -> None:
        self._cluster = cluster
        self._placed = placed
        self._volumes = volumes
        self._probe_validity = probe_validity

    def assume(
        self, task: Task, row: int, grant: Grant, instead_of: Iterable[Task], now: float
    ) -> AssumedBind:
        """Count the pod as placed. `instead_of`: nominated pods of lower priority, whose room it may take."""
        node = self._cluster.names[row]
        if self._cluster.devices is not None:
            task = self._cluster.devices.with_grant(row, task, grant, instead_of)
        nominated = self._placed.assume(task, node, now)
        steps = self._volumes.steps_before(task, row, node) if task.uid in self._volumes.waiting else ()
        return AssumedBind(task, row, node, nominated, steps)

    def undo(self, assumed: AssumedBind) -> None:
        """Count a pod that was not nominated, and whose bind was not sent, no longer as placed."""
        self._placed.forget(assumed.task.uid, assumed.node)
        self._volumes.bind_undone(assumed.task.uid)

    def command(self, assumed: AssumedBind) -> Bind:
        """What is asked of the API server."""
        task, _, node, nominated, for_volumes = assumed
        is_untold = not nominated and task.nominated != node
        if for_volumes and is_untold:  # it may take minutes: others should know
            for_volumes = (Renominate(node, ""), *for_volumes)
        renominated = (Renominate(node, nominated),) if nominated else ()
        has_probes = node in self._probe_validity.probes
        displaced = self._probe_validity.take_displaced(node) if has_probes else ()
        ends = (EndProbe(probe.uid, probe.namespace, probe.name) for probe in displaced)
        before: tuple[BindStep, ...] = (*renominated, *ends, *for_volumes)
        return Bind(task.uid, task.namespace, task.name, node, task.profile, task.grant, before)


class ProbeValidity:
    """Probes with notional requests, from when they are first seen on their nodes until they are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}  # uid of a probe -> its node
        self._on: dict[str, dict[str, Task]] = defaultdict(dict)
        self.probes: Mapping[str, Mapping[str, Task]] = self._on  # node -> uid -> probe; no empty ones
        self._invalid: set[str] = set()
        self._displaced: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        """Whether this is a probe that has lost its room; it stays invalid until it is gone."""
        return uid in self._invalid

    def observe(self, task: Task) -> list[str]:
        """A pod was seen on its node and is counted there; the uids of the probes that lose their room."""
        if task.notional_requests and task.uid not in self._nodes:
            self._nodes[task.uid] = task.node
            self._on[task.node][task.uid] = task
        return [probe.uid for probe in self._take_without_room(task.node, self._invalid)]

    def take_displaced(self, node: str) -> list[Task]:
        """The probes for which a pod placed on this node has left no room, each of them once."""
        return self._take_without_room(node, self._displaced)

    def _take_without_room(self, node: str, known: set[str]) -> list[Task]:
        probes = (probe for uid, probe in self._on.get(node, {}).items() if uid not in known)
        found = [probe for probe in probes if not self._has_room(probe)]
        known.update(probe.uid for probe in found)
        return found

    def remove(self, uid: str) -> None:
        """A pod is gone; it need not be a probe."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._invalid.discard(uid)
        self._displaced.discard(uid)
        unfile(self._on, node, uid)

    def _has_room(self, probe: Task) -> bool:
        row = self._cluster.rows.get(probe.node)
        if row is None:
            return True  # an unknown node; nothing is learned of it either
        columns, wanted = self._cluster.columns, [each for each in probe.notional_requests if each[1]]
        free = self._cluster.allocatable[row] - self._cluster.used[row]
        return all(name in columns and free[columns[name]] >= amount for name, amount in wanted)
