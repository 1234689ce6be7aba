"""How many explanations are made: so few that decisions do not wait for them.

An explanation, or a page of a list, takes some milliseconds of the main loop, between two steps of the
engine. What a changed state takes depends on the cluster: a millisecond, or a tenth of a second where nodes
and pods are copied by the thousand. So besides their number the time that these have taken is counted.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import ceil
from time import thread_time
from typing import Generic, TypeVar

from eclectus.kubeclient.serving.access import Bucket, Budget, Recent
from eclectus.kubeclient.serving.pages import BusyError
from eclectus.kubeclient.timing import elapsed

IN_A_ROW, A_SECOND = 20, 5.0  # of 10 ms each: a twentieth of the thread's time
WAITING_MOST = 16  # callers, the one that is answered included
LISTED_IN_A_ROW, LISTED_A_SECOND = 20, 2.0  # of these, pages of lists: of up to 40 ms each
SAID_IN_A_ROW, SAID_A_SECOND = 200, 100.0  # words of pods about their progress, of less than 1 ms each
CHANGED_SECONDS, CHANGED_SHARE = (
    2.0,
    0.05,
)  # of the thread's time: twenty of 100 ms in a row, then a twentieth
SHARE_OF_ONE = 0.5  # of each of these, for questions about one namespace
NAMESPACE_SECONDS, NAMESPACES_KEPT = 60.0, 1024  # after a pause so long its share is whole again

T = TypeVar("T")


class Limits:
    """Admits callers, and lets one after the other ask the engine.

    `now` returns seconds, `cpu_time` those that this thread has worked.
    """

    def __init__(
        self, now: Callable[[], float] = elapsed, cpu_time: Callable[[], float] = thread_time
    ) -> None:
        self._plain = _Shared("explanations", IN_A_ROW, A_SECOND, now)
        self._listed = _Shared("pages of lists", LISTED_IN_A_ROW, LISTED_A_SECOND, now)
        self._changed = _Shared("what-if explanations", IN_A_ROW, A_SECOND, now)
        self._said = _Shared("words about progress", SAID_IN_A_ROW, SAID_A_SECOND, now)
        self._changing = _SharedTime(CHANGED_SECONDS, CHANGED_SHARE, now)
        self._cpu_time = cpu_time
        self.turn = asyncio.Lock()  # held by one that asks the engine

    def admitted(self, namespace: str) -> AbstractContextManager[None]:
        """One caller more, for the length of the block, about a namespace, or about none: empty.

        Raises BusyError where there are too many.
        """
        return self._plain.taken(namespace)

    @contextmanager
    def admitted_to_list(self, namespace: str) -> Iterator[None]:
        """The same for a page of a list, which costs more."""
        with self._listed.taken(namespace), self.admitted(namespace):
            yield

    def admitted_to_say(self, namespace: str) -> AbstractContextManager[None]:
        """One word more of a pod of this namespace. Raises BusyError where there are too many."""
        return self._said.taken(namespace)

    def admitted_to_change(self, namespace: str) -> AbstractContextManager[None]:
        """The same for an explanation of a changed state; it is then made by `charged`."""
        return self._changed.taken(namespace)

    def charged(self, namespace: str, explained: Callable[[], T]) -> T:
        """What `explained` returns, which costs the namespace the time that it takes.

        Raises BusyError where that is used up: the last one may take longer than was left, no other.
        """
        self._changing.check(namespace)
        began = self._cpu_time()
        try:
            return explained()
        finally:
            self._changing.spend(namespace, self._cpu_time() - began)


Account = TypeVar("Account")


class _OfEach(Generic[Account]):
    """An account for each namespace that was asked about lately."""

    def __init__(self, new: Callable[[], Account], now: Callable[[], float]) -> None:
        self._new = new
        self._kept: Recent[str, Account] = Recent(NAMESPACE_SECONDS, NAMESPACES_KEPT, now)

    def __getitem__(self, namespace: str) -> Account:
        found = self._kept.get(namespace) or self._new()
        self._kept.put(namespace, found)
        return found


class _Shared:
    """A budget of all callers, of which questions about one namespace take a part at most.

    So one tenant alone does not use up what others need.
    """

    def __init__(self, what: str, in_a_row: float, a_second: float, now: Callable[[], float]) -> None:
        def budget(share: float) -> Budget:
            return Budget(Bucket(share * in_a_row, share * a_second, now), int(share * WAITING_MOST))

        self._what, self._a_second = what, a_second
        self._of_all = budget(1.0)
        self._of_each = _OfEach(lambda: budget(SHARE_OF_ONE), now)

    @contextmanager
    def taken(self, namespace: str) -> Iterator[None]:
        own, about = self._of_each[namespace], _about(namespace)
        with self._one_of(own, about, SHARE_OF_ONE), self._one_of(self._of_all, "", 1.0):
            yield

    @contextmanager
    def _one_of(self, budget: Budget, about: str, share: float) -> Iterator[None]:
        if not budget.take():
            most = f"{share * self._a_second:g} a second and {share * WAITING_MOST:g} at a time"
            raise BusyError(f"too many {self._what}{about} are asked for, more than {most}: ask again later")
        try:
            yield
        finally:
            budget.give_back()


class _SharedTime:
    """The same of time that is known only after it was spent."""

    def __init__(self, in_a_row: float, share: float, now: Callable[[], float]) -> None:
        self._of_all = Bucket(in_a_row, share, now)
        self._of_each = _OfEach(lambda: Bucket(SHARE_OF_ONE * in_a_row, SHARE_OF_ONE * share, now), now)

    def check(self, namespace: str) -> None:
        """Whether something is left. Raises BusyError, which says after how long."""
        shares = (self._of_each[namespace], _about(namespace)), (self._of_all, "")
        for bucket, about in shares:
            if seconds := bucket.until(0):
                raise BusyError(
                    f"what-if explanations{about} have taken their share of the scheduler's time, "
                    f"{bucket.per_second:.1%} of it: ask again in {max(1, ceil(seconds))} s",
                    seconds,
                )

    def spend(self, namespace: str, seconds: float) -> None:
        for bucket in (self._of_each[namespace], self._of_all):
            bucket.spend(seconds)


def _about(namespace: str) -> str:
    return f" about namespace {namespace}" if namespace else ""
