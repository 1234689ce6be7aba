"""The labels that a node must have for topology spread and for required pod affinity, whatever their values.

Part of kube-scheduler's PodTopologySpread and InterPodAffinity; the rest of these is in feasibility/topology,
which also has the words for refused nodes. Here it makes such nodes infeasible: no pod that ends would help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Predicate, Rule
from eclectus.model.objects import Spec


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key in spec.topology_keys:
        holds &= _has_label(cluster, key, rows)
    return holds


def _has_label(cluster: Cluster, key: str, rows: Rows) -> Mask:
    has_label: Mask = cluster.labels.column(key)[rows] != ABSENT
    return has_label


def _conditions(spec: Spec) -> Sequence[Predicate]:
    return [(f"topology label {key}", _condition(key)) for key in spec.topology_keys]


def _condition(key: str) -> Callable[[Cluster, Rows], Mask]:
    return lambda cluster, rows: _has_label(cluster, key, rows)


RULE = Rule(
    plugin="PodTopologySpread",
    reason="node(s) didn't match pod topology spread constraints (missing required label)",
    applies=lambda spec: bool(spec.topology_keys),
    holds=_holds,
    after_room=True,
    conditions=_conditions,
)
