"""What the static rules say of nodes, and which part of a spec they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.many_terms import FEW_TERMS, ManyTerms
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.table import STATIC_RULES
from eclectus.model.objects import Spec

# Fields that no rule reads, and what they are where only rules are asked. All others are kept, so that a rule
# may read a new field of a spec without a change here.
NOT_READ_BY_RULES = {"score_requests": (0, 0), "preferences": (), "long_running": False, "probe": False}
NOT_READ_BY_STATIC_RULES = {**NOT_READ_BY_RULES, "requests": (), "host_ports": (), "matched_terms": ()}


def static_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the static rules cannot tell apart."""
    return replace(spec, **NOT_READ_BY_STATIC_RULES)


def static_rules_of(spec: Spec) -> tuple[Rule, ...]:
    """The static rules that apply to pods with this spec."""
    return tuple(rule for rule in STATIC_RULES if rule.applies(spec))


def evaluation(cluster: Cluster, spec: Spec) -> Callable[[Rows], Mask]:
    """A function of rows: whether there is a node on each for which all static rules hold, shape [len(rows)].

    Made once for a spec: required node affinity of very many terms is prepared for evaluating few rows.
    """
    if spec.affinity is None or len(spec.affinity) <= FEW_TERMS:
        return partial(_rules_hold, static_rules_of(spec), cluster, spec)
    rest, many = replace(spec, affinity=None), ManyTerms(cluster, spec.affinity)
    others = partial(_rules_hold, static_rules_of(rest), cluster, rest)
    return lambda rows: others(rows) & many.any_holds(rows)


def _rules_hold(rules: Iterable[Rule], cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    """Whether there is a node on each of the rows for which all these rules hold, shape [len(rows)]."""
    holds = cluster.present[rows]
    for rule in rules:
        holds &= rule.holds(cluster, spec, rows)
    return holds
