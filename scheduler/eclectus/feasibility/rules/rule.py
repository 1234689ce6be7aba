"""What a rule is: a filter that says of each node whether it can run a pod with a given spec."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Spec, Task

Mask = NDArray[np.bool_]
HoldsWithout = Callable[[Cluster, Spec, int, Collection[Task]], bool]
"""`(cluster, spec, row, removed)`: whether the rule holds on a row without these pods that are there."""

Predicate = tuple[str, Callable[[Cluster, Rows], Mask]]
"""One condition of a pod on nodes: in few words of the pod's own, and `(cluster, rows)`: where it holds."""


class Rule(Struct, frozen=True):
    """One filter of kube-scheduler.

    `holds(cluster, spec, rows)` is true for the rows that pass, shape [len(rows)]. It is called only
    if `applies(spec)`, so that a rule costs nothing for pods that do not use its feature.

    A rule that depends on the pods of a node also answers what it would say without some of them.
    """

    plugin: str  # name of kube-scheduler's plugin
    reason: str  # kube-scheduler's words for its refusal, which autoscalers parse
    applies: Callable[[Spec], bool]
    holds: Callable[[Cluster, Spec, Rows], Mask]
    after_room: bool = False  # whether kube-scheduler runs it after NodeResourcesFit: matters for messages
    without: HoldsWithout | None = None  # usage rules have it
    condition: str = ""  # what it asks of a node, for messages; static rules have it, or `conditions`
    conditions: Callable[[Spec], Sequence[Predicate]] | None = None  # of a rule that asks for several

    def holds_without(self, cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
        """Whether the rule holds on a row without these of its pods."""
        if removed and self.without is not None:
            return self.without(cluster, spec, row, removed)
        return bool(self.holds(cluster, spec, np.array([row]))[0])

    def predicates(self, spec: Spec) -> Sequence[Predicate]:
        """The conditions of a static rule, which holds where they all do; only if `applies(spec)`."""
        if self.conditions is not None:
            return self.conditions(spec)
        return [(self.condition, lambda cluster, rows: self.holds(cluster, spec, rows))]
