"""NodeName: a pod that names a node runs on this node only."""

from __future__ import annotations

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec

_NOWHERE = -1


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds: Mask = rows == cluster.rows.get(spec.node_name, _NOWHERE)
    return holds


RULE = Rule(
    plugin="NodeName",
    reason="node(s) didn't match the requested node name",
    applies=lambda spec: bool(spec.node_name),
    holds=_holds,
    condition="the requested node name",
)
