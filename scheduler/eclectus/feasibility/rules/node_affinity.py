"""NodeAffinity: nodeSelector and required node affinity, on columns of label codes.

All nodeSelector pairs must hold, and at least one term; a term holds if all its expressions and fields do. A
term that is empty or invalid holds on no node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT, parse_integer
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Predicate, Rule
from eclectus.model.objects import Requirement, Spec, Term

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


def _label_holds(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    match requirement.op:
        case "In":
            return _has_one(cluster, requirement, rows)
        case "NotIn":
            return ~_has_one(cluster, requirement, rows)
        case "Exists":
            return ~_absent(cluster, requirement, rows)
        case "DoesNotExist":
            return _absent(cluster, requirement, rows)
        case "Gt" | "Lt":
            return _compares(cluster, requirement, rows)


def _absent(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    if not cluster.labels.codes(requirement.key):  # no node carries it: a pod may name thousands of such keys
        return np.ones(len(rows), dtype=bool)
    absent: Mask = cluster.labels.column(requirement.key)[rows] == ABSENT
    return absent


def _has_one(cluster: Cluster, requirement: Requirement, rows: Rows) -> Mask:
    known = cluster.labels.codes(requirement.key)
    wanted = [known[value] for value in requirement.values if value in known]
    return _has_code(cluster, requirement.key, wanted, rows)


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


def _has_code(cluster: Cluster, key: str, wanted: Sequence[int], rows: Rows) -> Mask:
    """Whether each of the rows has one of the wanted values of this label, by their codes."""
    if not wanted:
        return np.zeros(len(rows), dtype=bool)
    column = cluster.labels.column(key)[rows]
    if len(wanted) == 1:
        is_it: Mask = column == wanted[0]
        return is_it
    is_wanted = np.zeros(
        len(cluster.labels.codes(key)) + 1, dtype=bool
    )  # by code; the last is for ABSENT, -1
    is_wanted[wanted] = True
    return is_wanted[column]


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


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key, value in spec.node_selector:
        holds &= _has_one(cluster, Requirement(key, "In", (value,)), rows)
        if not holds.any():  # a selector may have thousands of keys
            return holds
    if spec.affinity is not None:
        any_term = np.zeros(len(rows), dtype=bool)
        for term in spec.affinity:
            any_term |= term_holds(cluster, term, rows)
        holds &= any_term
    return holds


def _conditions(spec: Spec) -> Sequence[Predicate]:
    """Each pair of the selector, and each requirement of a single term; several terms are one condition."""
    terms = spec.affinity
    if len(spec.node_selector) + (len(terms[0].expressions) if terms else 0) > MAX_CONDITIONS:
        return [("its node selector and affinity", lambda cluster, rows: _holds(cluster, spec, rows))]
    found = [_of_label(Requirement(key, "In", (value,))) for key, value in spec.node_selector]
    if terms is None:
        return found
    if len(terms) == 1 and (terms[0].expressions or terms[0].fields):
        return [*found, *map(_of_label, terms[0].expressions), *map(_of_field, terms[0].fields)]
    only_terms = Spec(affinity=terms)
    words = " or ".join(f"({term_words(term)})" for term in terms[:MAX_CONDITIONS]) or "no affinity term"
    return [*found, (words, lambda cluster, rows: _holds(cluster, only_terms, rows))]


def _of_label(requirement: Requirement) -> Predicate:
    return _words(requirement), lambda cluster, rows: _label_holds(cluster, requirement, rows)


def _of_field(requirement: Requirement) -> Predicate:
    return _words(requirement), lambda cluster, rows: _field_holds(cluster, requirement, rows)


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


RULE = Rule(
    plugin="NodeAffinity",
    reason="node(s) didn't match Pod's node affinity/selector",
    applies=lambda spec: bool(spec.node_selector) or spec.affinity is not None,
    holds=_holds,
    conditions=_conditions,
)
