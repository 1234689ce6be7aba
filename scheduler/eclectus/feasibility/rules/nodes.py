"""The rules by which a node decides by itself: its name, labels, taints, cordon, ports and devices.

Each has kube-scheduler's plugin name and words; table.py has their order.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.devices import DEVICE_MILLI, device_milli
from eclectus.cluster.host_ports import HostPorts
from eclectus.cluster.labels import ABSENT, parse_integer
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Predicate, Rule
from eclectus.model.objects import UNSUPPORTED, Requirement, Spec, Taint, Task, Term, Toleration

# -- unsupported features, the node's name ---------------------------------------------------------


def unsupported_message(spec: Spec) -> str:
    """The refusal, which names the features; spec.unsupported must not be empty."""
    *others, last = spec.unsupported
    features = f"{', '.join(others)} and {last}" if others else last
    return f"pod asks for {features}, {UNSUPPORTED}"


UNSUPPORTED_FEATURES = Rule(
    plugin="Unsupported",  # Eclectus' own: kube-scheduler has a plugin for each of these features
    reason="pod asks for features that Eclectus does not support yet",
    applies=lambda spec: bool(spec.unsupported),
    holds=lambda _cluster, _spec, rows: np.zeros(len(rows), dtype=bool),
    condition="supported features",
)
NODE_NAME = Rule(
    plugin="NodeName",
    reason="node(s) didn't match the requested node name",
    applies=lambda spec: bool(spec.node_name),
    holds=lambda cluster, spec, rows: rows == cluster.rows.get(spec.node_name, -1),
    condition="the requested node name",
)

# -- taints and cordons ----------------------------------------------------------------------------
# Nodes share few distinct sets of taints, so each set is evaluated once, not once per node. But autoscalers
# write times into taints, and a pod may have thousands of tolerations, so these are looked up instead of
# being compared one by one. The operators Lt and Gt are those of KEP-5471: the taint's value is less or
# greater than the toleration's.

Taints = tuple[Taint, ...]
Where = tuple[str, str]
"""(key, effect) of a toleration; empty for any."""


class Tolerations:
    """What the tolerations of a pod tolerate."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._any_value: set[Where] = set()
        self._values: set[tuple[Where, str]] = set()
        self._below: dict[Where, int] = {}  # of all bounds of Lt the greatest
        self._above: dict[Where, int] = {}  # of all bounds of Gt the least
        self._where: set[Where] = set()  # of any of them
        for each in tolerations:
            where = (each.key, each.effect)
            self._where.add(where)
            if each.op == "Exists":
                self._any_value.add(where)
            elif each.op == "Equal":
                self._values.add((where, each.value))
            elif (bound := _decimal(each.value)) is not None:
                if each.op == "Lt":
                    self._below[where] = max(bound, self._below.get(where, bound))
                else:
                    self._above[where] = min(bound, self._above.get(where, bound))

    def tolerate(self, taint: Taint) -> bool:
        """Whether one of them tolerates the taint."""
        key, effect = taint.key, taint.effect
        each = self._where.intersection(((key, effect), (key, ""), ("", effect), ("", "")))
        if not each:
            return False  # so are most taints: nodes may have thousands of different ones
        if any(where in self._any_value or (where, taint.value) in self._values for where in each):
            return True
        value = _decimal(taint.value) if self._below or self._above else None
        return value is not None and any(
            value < self._below.get(where, value) or value > self._above.get(where, value) for where in each
        )


def by_taint_set(cluster: Cluster, rows: AnyRows, value: Callable[[Taints], float]) -> NDArray[np.float64]:
    """`value` of each row's taints, shape [len(rows)], computed once for each distinct set."""
    sets = cluster.taint_set[rows]
    values = np.zeros(len(cluster.taint_sets))
    for index in np.flatnonzero(np.bincount(sets)).tolist():
        values[index] = value(cluster.taint_sets[index])
    return values[sets]


def _decimal(text: str) -> int | None:
    number = parse_integer(text)
    return number if text == str(number) else None  # stricter than for labels: no plus sign, no leading zeros


def _all_tolerated(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    tolerations = Tolerations(spec.tolerations)

    def all_tolerated(taints: Taints) -> bool:
        for taint in taints:
            if taint.effect != "PreferNoSchedule" and not tolerations.tolerate(taint):
                return False
        return True

    return by_taint_set(cluster, rows, all_tolerated) > 0


TAINT_TOLERATION = Rule(
    plugin="TaintToleration",
    reason="node(s) had untolerated taint(s)",
    applies=lambda _spec: True,
    holds=_all_tolerated,
    condition="tolerated taints",
)
_CORDON = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
NODE_UNSCHEDULABLE = Rule(  # a cordoned node takes only pods that tolerate the taint of the same name
    plugin="NodeUnschedulable",
    reason="node(s) were unschedulable",
    applies=lambda spec: not Tolerations(spec.tolerations).tolerate(_CORDON),
    holds=lambda cluster, _spec, rows: ~cluster.cordoned[rows],
    condition="spec.unschedulable=false",
)

# -- node affinity ---------------------------------------------------------------------------------
# On columns of label codes. All nodeSelector pairs must hold, and at least one term; a term holds if all its
# expressions and fields do. A term that is empty or invalid holds on no node. The node affinity that a pod's
# profile adds (`addedAffinity`) kube-scheduler checks before the pod's own and with words of its own, which
# do not show users what an administrator has configured.

NAME_FIELD = "metadata.name"
MAX_CONDITIONS = 12  # named one by one in messages: a selector may have thousands of keys


def term_holds(cluster: Cluster, term: Term, rows: Rows) -> Mask:
    """Whether a term holds on each of the rows, shape [len(rows)]."""
    if not term.expressions and not term.fields:
        return np.zeros(len(rows), dtype=bool)
    holds = np.ones(len(rows), dtype=bool)
    for requirement in term.expressions:
        holds &= _label_holds(cluster, requirement, rows)
    for requirement in term.fields:
        holds &= _field_holds(cluster, requirement, rows)
    return holds


def any_term_holds(cluster: Cluster, terms: Iterable[Term], rows: Rows) -> Mask:
    """Whether at least one of the terms holds on each of the rows, shape [len(rows)]."""
    any_term = np.zeros(len(rows), dtype=bool)
    for term in terms:
        any_term |= term_holds(cluster, term, rows)
    return any_term


def _label_holds(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    key, op = requirement.key, requirement.op
    if op in ("Gt", "Lt"):
        return _compares(cluster, requirement, rows)
    has_values = op in ("In", "NotIn")
    holds = has_one(cluster, key, requirement.values, rows) if has_values else has_label(cluster, key, rows)
    return ~holds if op in ("NotIn", "DoesNotExist") else holds


def has_label(cluster: Cluster, key: str, rows: Rows) -> Mask:
    """Which of the rows carry this label, shape [len(rows)]."""
    if not cluster.labels.codes(key):  # no node carries it: a pod may name thousands of such keys
        return np.zeros(len(rows), dtype=bool)
    carries: Mask = cluster.labels.column(key)[rows] != ABSENT
    return carries


def has_one(cluster: Cluster, key: str, values: Sequence[str], rows: Rows) -> Mask:
    """Whether each of the rows has one of these values of the label, shape [len(rows)]."""
    known = cluster.labels.codes(key)
    wanted = [known[value] for value in values if value in known]
    if not wanted:
        return np.zeros(len(rows), dtype=bool)
    column = cluster.labels.column(key)[rows]
    if len(wanted) == 1:
        is_it: Mask = column == wanted[0]
        return is_it
    is_wanted = np.zeros(len(known) + 1, dtype=bool)  # by code; the last is for ABSENT, -1
    is_wanted[wanted] = True
    return is_wanted[column]


def _compares(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    bound = parse_integer(requirement.values[0]) if len(requirement.values) == 1 else None
    if bound is None or not cluster.labels.codes(requirement.key):
        return np.zeros(len(rows), dtype=bool)
    numbers, is_number = cluster.labels.numbers(requirement.key)
    codes = cluster.labels.column(requirement.key)[rows]
    found = numbers[codes]
    holds: Mask = (found > bound) if requirement.op == "Gt" else (found < bound)
    holds &= is_number[codes] & (codes != ABSENT)
    return holds


def _field_holds(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    """Fields allow one value and two operators; any other requirement holds on no node."""
    if requirement.key != NAME_FIELD or len(requirement.values) != 1 or requirement.op not in ("In", "NotIn"):
        return np.zeros(len(rows), dtype=bool)
    is_named: Mask = rows == cluster.rows.get(requirement.values[0], -1)
    return is_named if requirement.op == "In" else ~is_named


def pinned_names(spec: Spec) -> frozenset[str] | None:
    """The only nodes that required affinity allows, if every term names some; None if it does not.

    kube-scheduler reduces its search to these in PreFilter (the path for DaemonSets), which shows in its
    messages.
    """
    if not spec.affinity:
        return None
    names: set[str] = set()
    for term in spec.affinity:
        pins = [frozenset(r.values) for r in term.fields if r.key == NAME_FIELD and r.op == "In"]
        if not pins:
            return None
        names |= frozenset.intersection(*pins)
    return frozenset(names)


def _affinity_holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key, value in spec.node_selector:
        holds &= has_one(cluster, key, (value,), rows)
        if not holds.any():  # a selector may have thousands of keys
            return holds
    return holds if spec.affinity is None else holds & any_term_holds(cluster, spec.affinity, rows)


def _affinity_conditions(spec: Spec) -> Sequence[Predicate]:
    """Each pair of the selector, and each requirement of a single term; several terms are one condition."""
    terms = spec.affinity
    if len(spec.node_selector) + (len(terms[0].expressions) if terms else 0) > MAX_CONDITIONS:
        return [
            ("its node selector and affinity", lambda cluster, rows: _affinity_holds(cluster, spec, rows))
        ]
    found = [_condition(Requirement(key, "In", (value,))) for key, value in spec.node_selector]
    if terms is None:
        return found
    if len(terms) == 1 and (terms[0].expressions or terms[0].fields):
        of_fields = (_condition(each, _field_holds) for each in terms[0].fields)
        return [*found, *map(_condition, terms[0].expressions), *of_fields]
    only_terms = Spec(affinity=terms)
    words = " or ".join(f"({term_words(term)})" for term in terms[:MAX_CONDITIONS]) or "no affinity term"
    return [*found, (words, lambda cluster, rows: _affinity_holds(cluster, only_terms, rows))]


def _condition(
    requirement: Requirement, holds: Callable[[Cluster, Requirement, Rows], Mask] = _label_holds
) -> Predicate:
    return _words(requirement), lambda cluster, rows: holds(cluster, requirement, rows)


def term_words(term: Term) -> str:
    """A term as people write it, for messages."""
    return ", ".join(map(_words, (*term.expressions, *term.fields))) or "an empty term"


def _words(requirement: Requirement) -> str:
    """As label selectors are written: `key in (a, b)`, `key!=a`, `!key`."""
    key, values = requirement.key, requirement.values
    match requirement.op:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "Gt" | "Lt":
            return f"{key}{'>' if requirement.op == 'Gt' else '<'}{', '.join(values)}"
        case "In" | "NotIn" if len(values) == 1:
            return f"{key}{'=' if requirement.op == 'In' else '!='}{values[0]}"
        case _:
            return f"{key} {requirement.op.lower()} ({', '.join(values[:MAX_CONDITIONS])})"


NODE_AFFINITY = Rule(
    plugin="NodeAffinity",
    reason="node(s) didn't match Pod's node affinity/selector",
    applies=lambda spec: bool(spec.node_selector) or spec.affinity is not None,
    holds=_affinity_holds,
    conditions=_affinity_conditions,
)
ENFORCED_AFFINITY = Rule(
    plugin="NodeAffinity",
    reason="node(s) didn't match scheduler-enforced node affinity",
    applies=lambda spec: spec.enforced_affinity is not None,
    holds=lambda cluster, spec, rows: any_term_holds(cluster, spec.enforced_affinity or (), rows),
    condition="the scheduler-enforced node affinity",
)

# -- slow nodes ------------------------------------------------------------------------------------


def _is_not_slow(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    is_slow = np.zeros(cluster.capacity, dtype=bool)
    is_slow[[cluster.rows[name] for name in spec.slow_nodes if name in cluster.rows]] = True
    return ~is_slow[rows]


SLOW_NODES = Rule(
    plugin="SlowNodes",  # Eclectus' own: of copies alone, kube-scheduler knows neither these nor speeds
    reason="node(s) were too slow for a copy",
    applies=lambda spec: bool(spec.slow_nodes),
    holds=_is_not_slow,
    condition="a node that is not slow",
)

# -- labels of topologies --------------------------------------------------------------------------
# The labels that a node must have for topology spread and for required pod affinity, whatever their values.
# Part of kube-scheduler's PodTopologySpread and InterPodAffinity; the rest of these is in
# feasibility/topology, which also has the words for refused nodes. Here it makes such nodes infeasible: no
# pod that ends would help.


def _has_topology_keys(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key in spec.topology_keys:
        holds &= has_label(cluster, key, rows)
    return holds


def _topology_key(key: str) -> Predicate:
    return f"topology label {key}", lambda cluster, rows: has_label(cluster, key, rows)


TOPOLOGY_KEYS = Rule(
    plugin="PodTopologySpread",
    reason="node(s) didn't match pod topology spread constraints (missing required label)",
    applies=lambda spec: bool(spec.topology_keys),
    holds=_has_topology_keys,
    after_room=True,
    conditions=lambda spec: list(map(_topology_key, spec.topology_keys)),
)

# -- ports and devices -----------------------------------------------------------------------------


def _ports_are_free(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    asked = rows.tolist()
    free = set(asked)
    for wanted in spec.host_ports:
        for taken in cluster.host_ports.conflicting(wanted):  # the smaller of the two is gone through
            if len(taken) < len(free):
                free.difference_update(taken)
            else:
                free = {row for row in free if row not in taken}
    return np.fromiter((row in free for row in asked), dtype=bool, count=len(asked))


def _ports_are_free_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    freed = HostPorts()
    for pod in removed:
        for port in pod.spec.host_ports:
            freed.hold(port, row)
    held = cluster.host_ports
    return all(held.count(wanted, row) <= freed.count(wanted, row) for wanted in spec.host_ports)


NODE_PORTS = Rule(  # two pods cannot take the same port of a node on addresses that overlap
    plugin="NodePorts",
    reason="node(s) didn't have free ports for the requested pod ports",
    applies=lambda spec: bool(spec.host_ports),
    holds=_ports_are_free,
    without=_ports_are_free_without,
)


def _devices_have_room(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    if cluster.devices is None:
        return np.zeros(len(rows), dtype=bool)
    return cluster.devices.has_room(rows, spec.requests)


def _devices_have_room_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    devices, uids = cluster.devices, [pod.uid for pod in removed]
    return devices is not None and devices.has_room_without(row, spec.requests, uids)


# Not a plugin of kube-scheduler, which has no shared devices, but the filter of plugins that add them
# (Open-Gpu-Share and others): a share needs one device with enough left, and whole devices must be unused.
# The total is checked as for every resource; this rule refuses nodes on which single devices have too little.
DEVICES = Rule(
    plugin="Devices",
    reason=f"node(s) had enough {DEVICE_MILLI} in all, but not on single devices",
    applies=lambda spec: device_milli(spec.requests) > 0,
    holds=_devices_have_room,
    after_room=True,
    without=_devices_have_room_without,
)
