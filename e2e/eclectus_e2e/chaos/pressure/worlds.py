"""What a world of two kinds of objects costs: its longest step, the pod of another tenant, and its memory."""

import asyncio
import cProfile
import gc
import multiprocessing
import resource
import signal
import sys
import time
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.connection import Connection
from types import CodeType
from typing import Any, Literal

from eclectus.engine.engine import Engine
from eclectus.framework import Order, Profile
from eclectus.live.inbox import Inbox
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, Event, Resumed
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.hold.none import NoHold
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.speculate.none import NoCopies
from eclectus_e2e.chaos.pressure.kinds import (
    KINDS,
    NODE_MILLICORES,
    OTHER,
    TENANT,
    Shape,
    plain_node,
    plain_pod,
)

NODES = 32  # full where there are placed pods, but for the room of another tenant's
MORE_BYTES = 3 * 2**30  # that a child may take
CALLS_MOST = 2_000_000  # in one step: about a second. A world ends there
KEPT_MOST = 2**30  # bytes: the chart's limit of memory
_TICK_SECONDS = 0.03  # of CPU between two looks at what a step has taken
_AGAIN_SECONDS = 0.5  # of CPU until a step that was ended has left everything
_STEPS_MOST = 60  # in which a world may come to rest; one that never does is measured by these
Counting = Literal["calls", "bytes", "all", "nothing"]
"""What is counted in one run: each makes steps slower, so seconds are those of a run of its own."""

_FORK = multiprocessing.get_context("fork")

# What a world varies in besides its two kinds: pods that fit after evictions only, whether all is listed
# before the replica leads, and which kind comes first.
CONTEXT = {"preemptors": (0, 16), "listed": (0, 1), "reversed": (0, 1)}


@dataclass(frozen=True)
class Party:
    """So many objects of a kind, of this shape."""

    kind: str
    count: int
    shape: Shape


@dataclass(frozen=True)
class Candidate:
    """Two parties in a context."""

    parties: tuple[Party, Party]
    context: Shape

    def times(self, factor: int) -> "Candidate":
        """The same with so many times as many objects."""
        first, second = (Party(each.kind, factor * each.count, each.shape) for each in self.parties)
        return Candidate((first, second), self.context)


@dataclass(frozen=True)
class Work:
    """Counts are calls of functions, Python's and builtin ones, which do not depend on the machine."""

    step: int = 0  # the longest one
    beside: int = 0  # from another tenant's plain pod until it is bound, or all is at rest
    kept: int = 0  # bytes
    seconds: float = 0.0  # of CPU: the longest step, where nothing was counted
    is_over: bool = False  # one step alone had taken half of the limit when it was reached

    @property
    def is_beyond(self) -> bool:
        """Whether it is more than a step may cost, or a replica keep, however many objects there are."""
        return self.step >= CALLS_MOST or self.kept >= KEPT_MOST

    def less(self, base: "Work") -> "Work":
        """What the objects cost beyond an empty world."""
        return replace(
            self,
            step=self.step if self.is_beyond else max(0, self.step - base.step),
            beside=max(0, self.beside - base.beside),
            kept=max(0, self.kept - base.kept),
        )


class _OverError(BaseException):
    """The limit is reached. No Exception, for the engine survives those of its policies."""


def measured(candidate: Candidate, seconds: float, counting: Counting = "calls") -> Work:
    """Play it in a child of this process, which ends after so many seconds of CPU."""
    ours, theirs = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_in_child, args=(candidate, seconds, counting, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        work: Work = ours.recv()
    except EOFError:  # the system ended it: too much memory, or a C function that no signal interrupts
        work = Work(is_over=True)
    child.join()
    return work


@cache
def empty(context: tuple[tuple[str, int], ...], order: str, counting: Counting) -> Work:
    """The cost of a context without the two kinds."""
    nobody = (Party("jobs" if order == "carbyne" else "services", 0, {}), Party("services", 0, {}))
    return measured(Candidate(nobody, dict(context)), 60.0, counting)


def beyond_empty(candidate: Candidate, seconds: float, counting: Counting = "calls") -> Work:
    """Counts of the world, less those of its context."""
    nothing = empty(tuple(candidate.context.items()), order_of(candidate), counting)
    return measured(candidate, seconds, counting).less(nothing)


def order_of(candidate: Candidate) -> str:
    """The Order of the profile: carbyne where it is needed."""
    return max((KINDS[party.kind].order for party in candidate.parties), key="fifo".__ne__)


def _in_child(candidate: Candidate, seconds: float, counting: Counting, out: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MORE_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(2 * seconds) + 5, int(2 * seconds) + 6))
    world = _World(order_of(candidate), counting, time.process_time() + seconds)
    signal.signal(signal.SIGPROF, world.tick)
    sys.unraisablehook = _without_limits
    gc.freeze()
    gc.disable()  # between steps only: when it comes depends on the parent, and its callbacks are counted
    try:
        signal.setitimer(signal.ITIMER_PROF, _TICK_SECONDS, _TICK_SECONDS)
        asyncio.run(world.play(candidate))
    except (_OverError, MemoryError) as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        world.is_over = world.is_in_step_since(seconds / 2)
        world.end_step()
        world.kept = MORE_BYTES if isinstance(error, MemoryError) else tracemalloc.get_traced_memory()[0]
    signal.setitimer(signal.ITIMER_PROF, 0)
    out.send(Work(world.longest, world.beside, world.kept, world.seconds, world.is_over))
    out.close()


def _without_limits(lost: "sys.UnraisableHookArgs") -> None:
    """Print what was raised where nothing can be caught, such as in the callback of a weak reference.

    Not the limit: it is raised again.
    """
    if lost.exc_type is not _OverError:
        sys.__unraisablehook__(lost)


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class _World:
    """An engine with the chart's policies that is stepped as the live loop does."""

    def __init__(self, order: str, counting: Counting, ends_at: float) -> None:
        chosen: Order = Carbyne() if order == "carbyne" else FifoOrder()
        profile = Profile("eclectus", chosen, Rosella(), FifoLine(), Preemption(), NoCopies(), NoHold())
        self._engine = Engine([profile], RosellaLearn())
        self._inbox = Inbox(10**9)
        self._counts_calls, self._counts_bytes = (counting in (each, "all") for each in ("calls", "bytes"))
        self._now, self._ends_at = 1.0, ends_at
        self._calls: cProfile.Profile | None = None
        self._began, self._is_in_step, self._is_looking = 0.0, False, False
        self._awaited = ""  # uid of the other tenant's pod, until it is bound
        self.longest = self.beside = self.kept = 0
        self.seconds, self.is_over = 0.0, False

    async def play(self, candidate: Candidate) -> None:
        if self._counts_bytes:
            tracemalloc.start()
        parties = candidate.parties[:: -1 if candidate.context["reversed"] else 1]
        await self._take(map(plain_node, range(NODES)))
        if not candidate.context["listed"]:
            await self._take([Resumed()])
        for party in parties:
            await self._take(KINDS[party.kind].make(party.shape, party.count))
        count = candidate.context["preemptors"]
        await self._take(
            plain_pod(f"preemptor-{at}", TENANT, NODE_MILLICORES - at, priority=10) for at in range(count)
        )
        if candidate.context["listed"]:
            await self._take([Resumed()])
        for _ in range(3):  # reports, evictions and the first back-offs
            self._now += 1.1
            await self._take([])
        for party in parties:  # one object of each has changed
            await self._take(KINDS[party.kind].make(party.shape, min(party.count, 1)))
        beside = plain_pod("beside", OTHER)
        self._awaited = beside.task.uid
        await self._take([beside])
        if self._counts_bytes:
            gc.collect()
            self.kept = tracemalloc.get_traced_memory()[0]

    async def _take(self, events: Iterable[Event]) -> None:
        """Take the events in, and step until nothing is due."""
        for event in events:
            self._check_limit()
            self._inbox.put(event)
        gc.collect()
        self._step(await self._inbox.take(0.0))
        steps = 1
        while len(self._inbox) or (steps < _STEPS_MOST and self._is_due()):
            self._step(await self._inbox.take(0.0) if len(self._inbox) else [])
            steps += 1

    def _is_due(self) -> bool:
        due = self._engine.next_step_at()
        return due is not None and due <= self._now

    def _step(self, events: list[Event]) -> None:
        self._now += 0.001
        self._began, self._is_in_step = time.process_time(), True
        if self._counts_calls:
            self._calls = cProfile.Profile(subcalls=False)
            self._calls.enable()
        commands = self._engine.step(events, self._now)
        work = self.end_step()
        if self._awaited:
            self.beside += work
        for command in commands:
            if isinstance(command, Bind):
                self._inbox.put(BindConfirmed(command.uid, command.node))
                if command.uid == self._awaited:  # what others do after that, they do on their own account
                    self._awaited = ""

    def tick(self, *_: Any) -> None:
        """End a step when the CPU is used up, or it has made too many calls; not counted itself.

        Nothing is ended between steps, where the event loop would drop the error and sleep for ever. A step
        is ended again and again, but not at once: what is raised in a callback of C code may be lost.
        """
        if not self._is_in_step or self._is_looking:  # a tick within a tick would have the outer one counted
            return
        calls, self._is_looking = self._calls, True
        if calls is not None:
            calls.disable()
        is_over = time.process_time() >= self._ends_at or (
            calls is not None and _counted(calls) >= CALLS_MOST
        )
        if is_over:
            signal.setitimer(signal.ITIMER_PROF, _AGAIN_SECONDS, _AGAIN_SECONDS)
            self._is_looking = False
            raise _OverError
        if calls is not None:
            calls.enable()
        self._is_looking = False

    def _check_limit(self) -> None:
        if time.process_time() >= self._ends_at:
            raise _OverError

    def is_in_step_since(self, seconds: float) -> bool:
        """Whether a step runs that has taken as much CPU."""
        return self._is_in_step and time.process_time() - self._began >= seconds

    def end_step(self) -> int:
        """Count the step that has ended, or was ended."""
        was_in_step, self._is_in_step = self._is_in_step, False
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.disable()
        if was_in_step:
            self.seconds = max(self.seconds, time.process_time() - self._began)
        work = min(_counted(calls), CALLS_MOST) if calls is not None else 0
        self.longest = max(self.longest, work)
        return work


def _counted(calls: cProfile.Profile) -> int:
    """The calls of a step, without those of this module and of the profiler."""
    found = ((entry.code, entry.callcount) for entry in calls.getstats())
    return sum(count for code, count in found if not _is_ours(code))


def _is_ours(code: CodeType | str) -> bool:
    return "_lsprof" in code if isinstance(code, str) else code.co_filename == __file__
