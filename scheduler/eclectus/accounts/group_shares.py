"""What groups of tasks hold, and wait for, of each resource."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache

from msgspec import Struct

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Amounts, Task

Fault = Callable[[str], None]

SEPARATOR = "/"  # in groups that are paths
MAX_CHANGES = 8192  # of groups, or jobs, that are remembered


class _Counted(Struct, frozen=True, gc=False):
    """A task as it was counted: its labels, and so its group, may change later."""

    group: str
    amounts: Amounts
    accounts: tuple[str, ...]  # the group's, and those of its prefixes where groups are paths


class GroupShares:
    """Amounts held by groups of tasks, by group and resource; `pods` is a resource like any other.

    Kept for each policy that defines groups by `counted_by`, and for no other. Every pod on a node counts,
    whichever scheduler placed it, because what it holds is held. Amounts are whole numbers, so that equal
    shares are exactly equal.

    Where groups are paths, `team/job`, every prefix has an account too, down to the empty one of all groups;
    and what waiting tasks request is counted, deferred ones included.
    """

    def __init__(
        self, cluster: Cluster, group: Callable[[Task], str], fault: Fault, *, by_path: bool = False
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._fault = fault
        self.by_path = by_path
        self._held: dict[str, dict[str, int]] = {}
        self._counted: dict[str, _Counted] = {}  # by uid
        # Of paths: what tasks without a node request, and all pending tasks by uid.
        self._waiting: dict[str, dict[str, int]] = {}
        self._pending: dict[str, _Counted] = {}
        self._totals: dict[str, float] = {}  # resource -> allocatable amount of all nodes
        self._dominant: dict[Amounts, str] = {}  # by requests: the resource of their largest part
        self._shape_cursor = -1
        self._changes = ChangeLog[str](MAX_CHANGES)

    def held(self, group: str) -> Mapping[str, int]:
        """Resource -> amount that the group holds; empty if it holds nothing."""
        return self._held.get(group, {})

    def waiting(self, group: str) -> Mapping[str, int]:
        """Resource -> amount that waiting tasks of a path or prefix request; empty if none waits."""
        return self._waiting.get(group, {})

    def group_of(self, uid: str) -> str | None:
        """The group by which a task that holds something is counted; None if it is not counted."""
        counted = self._counted.get(uid)
        return None if counted is None else counted.group

    def waits_in(self, uid: str) -> str | None:
        """The group by which a pending task is counted, with room or without; None if it is not pending."""
        counted = self._pending.get(uid)
        return None if counted is None else counted.group

    @property
    def totals(self) -> Mapping[str, float]:
        """Resource -> what all nodes offer of it, where they do."""
        return self._current_totals()

    def paths(self) -> AbstractSet[str]:
        """The groups and prefixes that hold something or wait for it."""
        return self._held.keys() | self._waiting.keys()

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

    def share_of_dominant(self, group: str, requests: Amounts, weight: float = 1.0) -> float:
        """The group's share of the resource of which these requests are the largest part, over its weight.

        Of the number of pods where nothing is requested that nodes offer.
        """
        held = self._held.get(group)
        if held is None:
            return 0.0
        totals = self._current_totals()
        name = self._dominant.get(requests) or self._find_dominant(requests)
        total = totals.get(name)
        return held.get(name, 0) / (total * weight) if total else 0.0

    def _find_dominant(self, requests: Amounts) -> str:
        totals = self._totals
        parts = ((amount / totals[name], name) for name, amount in requests if totals.get(name))
        if len(self._dominant) >= MAX_CHANGES:
            self._dominant.clear()
        found = self._dominant[requests] = max(parts, default=(0.0, PODS))[1]
        return found

    @property
    def changes(self) -> ChangeLog[str]:
        """The groups whose amounts have changed; all, where the totals that shares are taken of have."""
        self._current_totals()
        return self._changes

    def hold(self, task: Task) -> None:
        """Count a task, which must not be counted already."""
        counted = self._counted_as(task, task.holding)
        if task.uid in self._pending:
            self._add(self._waiting, self._pending[task.uid], -1)
        self._counted[task.uid] = counted
        self._add(self._held, counted, 1)

    def release(self, uid: str) -> None:
        """Count a task no longer; KeyError if it is not counted."""
        self._add(self._held, self._counted.pop(uid), -1)
        if uid in self._pending:
            self._add(self._waiting, self._pending[uid], 1)

    def regroup(self, task: Task) -> None:
        """A counted task may belong to another group now, because its labels or its owner have changed."""
        if self._counted[task.uid].group != self._group_of(task):
            self.release(task.uid)
            self.hold(task)

    def wait(self, task: Task) -> None:
        """A pending task that may run was seen; it counts while it has no node."""
        counted = self._counted_as(task, task.spec.requests)
        if self._pending.get(task.uid) != counted:
            self.leave(task.uid)
            self._pending[task.uid] = counted
            if task.uid not in self._counted:
                self._add(self._waiting, counted, 1)

    def leave(self, uid: str) -> None:
        """The task is not pending, or may not run now; no error if it did not wait."""
        counted = self._pending.pop(uid, None)
        if counted is not None and uid not in self._counted:
            self._add(self._waiting, counted, -1)

    def _counted_as(self, task: Task, amounts: Amounts) -> _Counted:
        group = self._group_of(task)
        accounts = (group, *prefixes(group), "") if self.by_path else (group,)
        return _Counted(group, (*amounts, (PODS, 1)), accounts)

    def _add(self, accounts: dict[str, dict[str, int]], counted: _Counted, sign: int) -> None:
        for name in counted.accounts:
            account = accounts.get(name)
            if account is None:
                account = accounts[name] = {}
            for resource, amount in counted.amounts:
                account[resource] = account.get(resource, 0) + sign * amount
            if not account[PODS]:
                del accounts[name]
        self._changes.record(counted.group)

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
                self._dominant.clear()
                self._changes.record_all()
        return self._totals


@lru_cache(maxsize=MAX_CHANGES)  # a pod that ends or is bound asks for the same ones a dozen times
def prefixes(path: str) -> tuple[str, ...]:
    """The proper prefixes of a path: of `a/b/c` they are `a` and `a/b`."""
    found, at = list[str](), path.find(SEPARATOR)
    while at >= 0:
        found.append(path[:at])
        at = path.find(SEPARATOR, at + 1)
    return tuple(found)
