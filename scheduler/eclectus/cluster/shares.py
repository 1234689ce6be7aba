"""What groups of tasks hold: kept for each policy that asks by `counted_by`, and for nobody else.

Every resident is counted, whoever placed it, because what it holds is held. Amounts are whole numbers,
so that shares which are equal are equal exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Amounts, Task

Fault = Callable[[str], None]


class GroupShares:
    """Amounts held, by group and resource; a pod place is a resource like any other."""

    def __init__(self, cluster: Cluster, group: Callable[[Task], str], fault: Fault) -> None:
        self._cluster, self._group, self._fault = cluster, group, fault
        self._held: dict[str, Counter[str]] = {}
        self._as_counted: dict[str, tuple[str, Amounts]] = {}  # uid -> group, amounts: labels may change
        self._totals: dict[str, float] = {}
        self._shape_cursor = -1

    # -- reading ---------------------------------------------------------------------------------

    def held(self, group: str) -> Mapping[str, int]:
        """Resource -> amount held by the group; empty where it holds nothing."""
        return self._held.get(group, {})

    def dominant_share(self, group: str, weight: float = 1.0) -> float:
        """The largest of the group's shares of what all nodes offer, over its weight (DRF, NSDI 2011).

        What no node offers any more counts for nothing. Rounded once, so equal fractions are equal numbers.
        """
        held = self._held.get(group)
        if held is None:
            return 0.0
        totals = self._offered()
        shares = (held[name] / (total * weight) for name, total in totals.items() if name in held)
        return max(shares, default=0.0)

    # -- counting --------------------------------------------------------------------------------

    def hold(self, task: Task) -> None:
        """The task, not counted so far, holds what it asks for."""
        group, amounts = self._group_of(task), (*task.holding, (PODS, 1))
        self._as_counted[task.uid] = group, amounts
        held = self._held.setdefault(group, Counter())
        for name, amount in amounts:
            held[name] += amount

    def release(self, uid: str) -> None:
        """What the task held is free."""
        group, amounts = self._as_counted.pop(uid)
        held = self._held[group]
        for name, amount in amounts:
            held[name] -= amount
        if not held[PODS]:
            del self._held[group]

    def _group_of(self, task: Task) -> str:
        try:
            return str(self._group(task))
        except Exception as error:  # a plug-in's defect must not stop the others
            self._fault(f"{type(error).__name__}: {error}")
            return ""

    def _offered(self) -> dict[str, float]:
        cluster = self._cluster
        if cluster.shape.head != self._shape_cursor:
            totals = cluster.allocatable.sum(axis=0)
            self._totals = {name: float(totals[at]) for name, at in cluster.columns.items() if totals[at] > 0}
            self._shape_cursor = cluster.shape.head
        return self._totals
