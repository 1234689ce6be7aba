"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of the same name."""

from __future__ import annotations

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.taints import Tolerations
from eclectus.model.objects import Spec, Taint

_CORDON = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


def _holds(cluster: Cluster, _spec: Spec, rows: Rows) -> Mask:
    return ~cluster.cordoned[rows]


RULE = Rule(
    plugin="NodeUnschedulable",
    reason="node(s) were unschedulable",
    applies=lambda spec: not Tolerations(spec.tolerations).tolerate(_CORDON),
    holds=_holds,
    condition="spec.unschedulable=false",
)
