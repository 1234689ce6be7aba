"""An event loop whose clock jumps, and processes on it that can be paused and killed.

Nothing waits: when no callback is ready, the clock is set to the next timer. Every callback belongs to the
process in whose context it was scheduled. A paused process (SIGSTOP) keeps its callbacks until it goes on, as
its sockets keep what arrives; its clock runs. A killed one (SIGKILL) loses them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from typing_extensions import override

EPOCH_SECONDS = 1_700_000_000.0  # what wall clocks show at the start


@dataclass(eq=False)
class Process:
    """What is paused and killed together. Its parts, such as a second thread, may be busy on their own."""

    name: str
    is_killed: bool = False
    is_paused: bool = False
    wall_step_seconds: float = 0.0  # by which its wall clock differs
    held: list[_Handle] = field(default_factory=list)  # what was to be called during a pause
    on_signal: Callable[[], object] | None = None  # without one, SIGTERM ends it
    failures: list[BaseException] = field(default_factory=list)  # of its parts


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class _Handle:
    """A callback that is to be called: with its arguments, in its context, unless it is cancelled before."""

    __slots__ = ("args", "callback", "context", "is_cancelled", "process")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.process = context.get(PROCESS)
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not call it."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """Whether it will not be called."""
        return self.is_cancelled


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs the callbacks of all processes; `time()` is virtual seconds from 0.

    It has queues and handles of its own: those of asyncio cost half as much again as what is simulated.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._due = deque[_Handle]()  # what is called next
        self._timers: list[tuple[float, int, _Handle]] = []  # a heap; of two at one time the earlier first
        self._serial = 0
        self.set_task_factory(_new_tasks())

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        """Keep it for the process: nobody here sends real signals."""
        if process := PROCESS.get():
            process.on_signal = partial(callback, *args)

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Call it here and now: threads have no virtual time."""
        answered = self.create_future()
        answered.set_result(function(*args))
        return answered

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        """As of every loop; what belongs to a paused process waits for it."""
        handle = _Handle(callback, args, copy_context() if context is None else context)
        self._due.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        """As of every loop; a timer of a paused process fires when it goes on."""
        handle = _Handle(callback, args, copy_context() if context is None else context)
        self._serial += 1
        heappush(self._timers, (when, self._serial, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Handle:
        """As of every loop."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """Call what is due; where nothing is, the time jumps to the next timer."""
        due, timers = self._due, self._timers
        while timers and timers[0][2].is_cancelled:
            heappop(timers)
        if not due:
            if not timers:
                raise RuntimeError("nothing will ever happen: no timer is set")
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            due.append(heappop(timers)[2])
        for _ in range(len(due)):  # not what is added meanwhile: that comes after timers
            self._call(due.popleft())

    def _call(self, handle: _Handle) -> None:
        process = handle.process
        if handle.is_cancelled or (process is not None and process.is_killed):
            return
        if process is not None and process.is_paused:
            process.held.append(handle)
            return
        try:
            handle.context.run(handle.callback, *handle.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.call_exception_handler({"message": "a callback", "exception": error, "handle": handle})

    def go_on(self, process: Process) -> None:
        """End a pause: what was held runs, in its order."""
        process.is_paused = False
        held, process.held = process.held, []
        self._due.extend(held)


class _Task(asyncio.Task[Any]):
    """A task that sets order by its number on its loop.

    A TaskGroup cancels a set of tasks; by their addresses, which differ between equal runs, each order would
    be another story.
    """

    def __init__(self, work: Any, number: int, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        self._number = number
        super().__init__(work, loop=loop, **options)

    @override
    def __hash__(self) -> int:
        return self._number


def _new_tasks() -> Callable[..., _Task]:
    """A factory of tasks that say nothing when they are collected: those of a killed process never end."""
    numbers = count()

    def task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> _Task:
        made = _Task(work, next(numbers), loop, **options)
        made._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
        return made

    return task


def run_in(process: Process, function: Callable[..., Any], *args: Any) -> Any:
    """Call the function as of this process: what it schedules belongs to the process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context.run(function, *args)
