"""What groups of tasks hold; kept for each policy that defines groups by `counted_by`, and for no other.

Every pod on a node counts, whichever scheduler placed it, because what it holds is held. Amounts are whole
numbers, so that equal shares are exactly equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from msgspec import Struct

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Amounts, Task

Fault = Callable[[str], None]

MAX_CHANGES = 8192  # of groups, that are remembered for who ranks groups


class _Counted(Struct, frozen=True, gc=False):
    """A task as it was counted: its labels, and so its group, may change later."""

    group: str
    amounts: Amounts


class GroupShares:
    """Amounts held, by group and resource; `pods` is a resource like any other."""

    def __init__(self, cluster: Cluster, group: Callable[[Task], str], fault: Fault) -> None:
        self._cluster, self._group, self._fault = cluster, group, fault
        self._held: dict[str, Counter[str]] = {}
        self._counted: dict[str, _Counted] = {}  # by uid
        self._totals: dict[str, float] = {}  # resource -> allocatable amount of all nodes
        self._shape_cursor = -1
        self._changes = ChangeLog[str](MAX_CHANGES)

    # -- reading -------------------------------------------------------------------------------

    def held(self, group: str) -> Mapping[str, int]:
        """Resource -> amount that the group holds; empty if it holds nothing."""
        return self._held.get(group, {})

    def dominant_share(self, group: str, weight: float = 1.0) -> float:
        """The group's largest share of any resource's total, divided by its weight (DRF, NSDI 2011).

        A resource that no node offers any more is left out. There is one division and so one rounding:
        equal fractions are equal numbers.
        """
        held = self._held.get(group)
        if held is None:
            return 0.0
        totals = self._current_totals()
        shares = (held[name] / (total * weight) for name, total in totals.items() if name in held)
        return max(shares, default=0.0)

    @property
    def changes(self) -> ChangeLog[str]:
        """The groups whose amounts have changed; all, where the totals that shares are taken of have."""
        self._current_totals()
        return self._changes

    # -- counting ------------------------------------------------------------------------------

    def hold(self, task: Task) -> None:
        """Count a task, which must not be counted already."""
        group, amounts = self._group_of(task), (*task.holding, (PODS, 1))
        self._counted[task.uid] = _Counted(group, amounts)
        held = self._held.setdefault(group, Counter())
        for name, amount in amounts:
            held[name] += amount
        self._changes.record(group)

    def release(self, uid: str) -> None:
        """Count a task no longer; KeyError if it is not counted."""
        counted = self._counted.pop(uid)
        held = self._held[counted.group]
        for name, amount in counted.amounts:
            held[name] -= amount
        if not held[PODS]:
            del self._held[counted.group]
        self._changes.record(counted.group)

    def regroup(self, task: Task) -> None:
        """A counted task may belong to another group now, because its labels or its owner have changed."""
        if self._counted[task.uid].group != self._group_of(task):
            self.release(task.uid)
            self.hold(task)

    def _group_of(self, task: Task) -> str:
        try:
            return str(self._group(task))
        except Exception as error:  # a policy's defect must not stop the others
            self._fault(f"{type(error).__name__}: {error}")
            return ""

    def _current_totals(self) -> dict[str, float]:
        cluster = self._cluster
        if cluster.shape.head != self._shape_cursor:
            sums, before = cluster.allocatable.sum(axis=0), self._totals
            self._totals = {name: float(sums[at]) for name, at in cluster.columns.items() if sums[at] > 0}
            self._shape_cursor = cluster.shape.head
            if self._totals != before:
                self._changes.record_all()
        return self._totals
