"""Pods whose labels name pools that do not take them: a warning on each, once.

Such a pod is placed all the same, in the pool of its namespace. Its warning is due a moment later, because
the Pool and the labels of its namespace may be seen after it. Anybody who creates pods writes labels, so
warnings are bounded: of a namespace few are due at a time, and later pods go without; of all, no more than a
`MinuteAllowance`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from math import inf

from eclectus.accounts.pool_tree import PoolTree
from eclectus.cluster.due_times import DueTimes
from eclectus.engine.minute_allowance import MinuteAllowance
from eclectus.model.commands import Warn
from eclectus.model.objects import Task

SAID_AFTER_SECONDS = 1.0
NAMESPACE_MOST = 10  # pods whose warnings are due at a time


class PoolRefusals:
    """The warnings that are due, and the pods that have theirs."""

    def __init__(self, tree: PoolTree, find: Callable[[str], Task | None]) -> None:
        """`find`: a pod by uid, pending or on a node; None if it is gone."""
        self._tree = tree
        self._find = find
        self._due = DueTimes[str]()
        self._namespaces: dict[str, str] = {}  # uid -> namespace, of those that are due
        self._count = Counter[str]()  # of them by namespace
        self._said = set[str]()  # uids
        self._allowance = MinuteAllowance()
        self.next_due = inf  # seconds; written here only

    def see(self, task: Task, now: float) -> None:
        """A pending pod is in its pool of now."""
        uid = task.uid
        if not task.asked_pool or uid in self._said or uid in self._namespaces:
            return
        if self._count[task.namespace] < NAMESPACE_MOST and self._tree.refusal(task):
            self._namespaces[uid] = task.namespace
            self._count[task.namespace] += 1
            self._due.set(uid, now + SAID_AFTER_SECONDS)
            self.next_due = min(self.next_due, now + SAID_AFTER_SECONDS)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._said.discard(uid)
        self._discard(uid)

    def due(self, now: float) -> Iterator[Warn]:
        """The warnings to be written now."""
        while self._due.next_due() <= now and self._allowance.has_one(now):
            _, uid = self._due.take()
            self._discard(uid)
            task = self._find(uid)
            message = "" if task is None else self._tree.refusal(task)
            if task is not None and message:
                self._allowance.spend()
                self._said.add(uid)
                yield Warn(uid, task.namespace, task.name, task.profile, "PoolRefused", message)
        self.next_due = max(self._due.next_due(), self._allowance.next_at()) if self._due.keys else inf

    def _discard(self, uid: str) -> None:
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            self._due.discard(uid)
            self._count[namespace] -= 1
            if not self._count[namespace]:
                del self._count[namespace]
