"""Sets of constraints: what of a pod's spec says on which nodes it may run.

Pods with one set compete for the same nodes, whatever they request, whatever workload they are, and however
many classes that makes (task_class.py). Sets are joint: a pod with two constraints belongs to the set of
both, because few nodes may satisfy both where many satisfy either (Phoenix, ICDCS 2017, with joint sets).

In a set are the node selector, required node affinity, tolerations, a node that is named, and requested
resources that some nodes do not offer, such as GPUs. Not in it are tolerations of passing conditions of a
node (`node.kubernetes.io/...`) and of PreferNoSchedule, which keeps no pod away; host ports and
anti-affinity, which depend on what runs where; and the size of a request.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import FIRST_COLUMNS
from eclectus.feasibility.rules.nodes import term_holds
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import evaluation, static_part
from eclectus.model.objects import Spec, Term

PREFERENCES_MOST = 4  # of one pod that are counted, those of the greatest weight
NAME_LENGTH_MOST = 120
CONDITION_PREFIX = "node.kubernetes.io/"  # of taints that the node controller sets and removes
SPECS_REMEMBERED = 4096


class ConstraintSet(Struct, frozen=True, gc=False, cache_hash=True):
    """A set of constraints; pods with equal ones may run on the same nodes, if these are large enough."""

    spec: Spec  # what the static rules read of it
    resources: tuple[str, ...] = ()  # a node must offer all of these
    preferred: Term | None = None  # and this must hold too: the nodes that a pod prefers

    def __str__(self) -> str:
        """The constraints in one line, for people, at most `NAME_LENGTH_MOST` characters."""
        spec = self.spec
        parts = [f"{key}={value}" for key, value in spec.node_selector]
        if spec.affinity is not None:
            parts.append(" or ".join(map(_term_text, spec.affinity[:PREFERENCES_MOST])))
        if self.preferred is not None:
            parts.append(f"prefers {_term_text(self.preferred)}")
        parts += [*self.resources, *(f"tolerates {each.key or 'all'}" for each in spec.tolerations[:4])]
        parts += [f"node {spec.node_name}"] if spec.node_name else []
        return (", ".join(parts) or "any node")[:NAME_LENGTH_MOST]


@lru_cache(maxsize=SPECS_REMEMBERED)
def constraint_set(spec: Spec) -> ConstraintSet:
    """The set of what the pod requires."""
    kept = (each for each in spec.tolerations if not each.key.startswith(CONDITION_PREFIX))
    tolerations = dict.fromkeys(each for each in kept if each.effect != "PreferNoSchedule")
    ordered = sorted(tolerations, key=lambda each: (each.key, each.op, each.value, each.effect))
    resources = tuple(name for name, _ in spec.requests if name not in FIRST_COLUMNS)
    return ConstraintSet(replace(static_part(spec), tolerations=tuple(ordered)), resources)


@lru_cache(maxsize=SPECS_REMEMBERED)
def weighted_sets(spec: Spec) -> tuple[tuple[ConstraintSet, float], ...]:
    """The sets for which a pod's demand counts: what it requires with 1, and with it each preference.

    A preference counts by its share of the weight of all. Preferences of so little weight that they are not
    among the first `PREFERENCES_MOST` do not count.
    """
    required, total = constraint_set(spec), sum(each.weight for each in spec.preferences)
    heaviest = sorted(spec.preferences, key=lambda each: -each.weight)[:PREFERENCES_MOST]
    preferred = ((replace(required, preferred=each.term), each.weight / total) for each in heaviest)
    return ((required, 1.0), *preferred)


def nodes_of(cluster: Cluster, constraints: ConstraintSet) -> Callable[[AnyRows], Mask]:
    """A function of rows: whether there is a node on each that satisfies the set, shape [len(rows)]."""
    holds = evaluation(cluster, constraints.spec)

    def satisfied(rows: AnyRows) -> Mask:
        each: Rows = np.arange(rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows
        found = holds(each)
        for name in constraints.resources:
            column = cluster.columns.get(name)
            found = found & (cluster.allocatable[each, column] > 0 if column is not None else False)
        preferred = constraints.preferred
        return found if preferred is None else found & term_holds(cluster, preferred, each)

    return satisfied


def _term_text(term: Term) -> str:
    asked = (*term.expressions, *term.fields)
    words = ((each.key, each.op, ",".join(each.values[:PREFERENCES_MOST])) for each in asked)
    return " and ".join(" ".join(each).strip() for each in words)
