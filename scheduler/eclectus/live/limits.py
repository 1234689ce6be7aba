"""How many explanations are made: so few that decisions do not wait for them.

An explanation, or a page of a list, takes some milliseconds of the main loop, between two steps of the
engine.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from eclectus.kubeclient.serving.access import Budget, Recent
from eclectus.kubeclient.serving.pages import BusyError
from eclectus.kubeclient.timing import elapsed

IN_A_ROW, A_SECOND = 20, 5.0  # of 10 ms each: a twentieth of the thread's time
WAITING_MOST = 16  # callers, the one that is answered included
LISTED_IN_A_ROW, LISTED_A_SECOND = 20, 2.0  # of these, pages of lists: of up to 40 ms each
CHANGED_IN_A_ROW, CHANGED_A_SECOND = 4, 0.5  # of these, with a changed state: of up to 100 ms each
SHARE_OF_ONE = 0.5  # of each of these, for questions about one namespace
NAMESPACE_SECONDS, NAMESPACES_KEPT = 60.0, 1024  # after a pause so long its share is whole again


class Limits:
    """Admits callers, and lets one after the other ask the engine. `now` returns seconds."""

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        self._plain = _Shared("explanations", IN_A_ROW, A_SECOND, now)
        self._listed = _Shared("pages of lists", LISTED_IN_A_ROW, LISTED_A_SECOND, now)
        self._changed = _Shared("what-if explanations", CHANGED_IN_A_ROW, CHANGED_A_SECOND, now)
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

    @contextmanager
    def admitted_to_change(self, namespace: str) -> Iterator[None]:
        """The same for an explanation of a changed state, which costs more still."""
        with self._changed.taken(namespace), self.admitted(namespace):
            yield


class _Shared:
    """A budget of all callers, of which questions about one namespace take a part at most.

    So one tenant alone does not use up what others need.
    """

    def __init__(self, what: str, in_a_row: float, a_second: float, now: Callable[[], float]) -> None:
        self._what, self._now = what, now
        self._rates = in_a_row, a_second
        self._of_all = Budget(in_a_row, a_second, WAITING_MOST, now)
        self._of_one: Recent[str, Budget] = Recent(NAMESPACE_SECONDS, NAMESPACES_KEPT, now)

    @contextmanager
    def taken(self, namespace: str) -> Iterator[None]:
        own, about = self._own(namespace), f" about namespace {namespace}" if namespace else ""
        with self._one_of(own, about, SHARE_OF_ONE), self._one_of(self._of_all, "", 1.0):
            yield

    def _own(self, namespace: str) -> Budget:
        in_a_row, a_second = (SHARE_OF_ONE * rate for rate in self._rates)
        waiting = int(SHARE_OF_ONE * WAITING_MOST)
        found = self._of_one.get(namespace) or Budget(in_a_row, a_second, waiting, self._now)
        self._of_one.put(namespace, found)
        return found

    @contextmanager
    def _one_of(self, budget: Budget, about: str, share: float) -> Iterator[None]:
        if not budget.take():
            most = f"{share * self._rates[1]:g} a second and {share * WAITING_MOST:g} at a time"
            raise BusyError(f"too many {self._what}{about} are asked for, more than {most}: ask again later")
        try:
            yield
        finally:
            budget.give_back()
