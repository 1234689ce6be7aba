"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

from __future__ import annotations

from eclectus.core.cluster import Cluster
from eclectus.core.journal import Rows
from eclectus.core.model import Spec, Taint
from eclectus.feasibility.rule import Mask, Rule
from eclectus.feasibility.taints import tolerated

_CORDON = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


def _holds(cluster: Cluster, _spec: Spec, rows: Rows) -> Mask:
    return ~cluster.cordoned[rows]


RULE = Rule(
    plugin="NodeUnschedulable",
    reason="node(s) were unschedulable",
    asks=lambda spec: not tolerated(_CORDON, spec.tolerations),
    holds=_holds,
)
