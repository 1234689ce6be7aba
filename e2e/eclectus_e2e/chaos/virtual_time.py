"""An event loop whose clock jumps, and processes on it that can be paused and killed.

Nothing waits: when no callback is ready, the clock is set to the next timer. Every callback belongs to the
process in whose context it was scheduled. A paused process (SIGSTOP) keeps its callbacks until it goes on, as
its sockets keep what arrives; its clock runs. A killed one (SIGKILL) loses them.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

EPOCH_SECONDS = 1_700_000_000.0  # what wall clocks show at the start


@dataclass(eq=False)
class Process:
    """What is paused and killed together. Its parts, such as a second thread, may be busy on their own."""

    name: str
    is_killed: bool = False
    is_paused: bool = False
    wall_step_seconds: float = 0.0  # by which its wall clock differs
    held: list[Callable[[], object]] = field(default_factory=list)
    on_signal: Callable[[], object] | None = None  # without one, SIGTERM ends it
    failures: list[BaseException] = field(default_factory=list)  # of its parts

    @property
    def holds(self) -> bool:
        """Whether its callbacks must wait."""
        return self.is_paused and not self.is_killed


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class _Jump(selectors.SelectSelector):
    """Waits for nothing: the time that it should wait passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready on real sockets, of which there is only the loop's own."""
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("nothing will ever happen: no timer is set")
            self.passed_seconds += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs the callbacks of all processes; `time()` is virtual seconds from 0."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)
        self.set_task_factory(_task)

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._jump.passed_seconds

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
    ) -> asyncio.Handle:
        """As of every loop; what belongs to a paused process waits for it."""
        context = copy_context() if context is None else context
        process = context.get(PROCESS)
        handle = asyncio.Handle(callback, args, self, context)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        super().call_soon(self._run, process, handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop; a timer of a paused process fires when it goes on."""
        context = copy_context() if context is None else context
        process = context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        timer: list[asyncio.TimerHandle] = []

        def fire() -> None:
            handle = asyncio.Handle(callback, args, self, context)
            self._run(process, handle, is_cancelled=timer[0].cancelled)

        timer.append(super().call_at(when, fire, context=Context()))
        return timer[0]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As of every loop."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _run(
        self, process: Process, handle: asyncio.Handle, is_cancelled: Callable[[], bool] | None = None
    ) -> None:
        if process.is_killed:
            return
        if process.holds:
            process.held.append(lambda: self._run(process, handle, is_cancelled))
        elif not handle.cancelled() and not (is_cancelled is not None and is_cancelled()):
            handle._run()  # noqa: SLF001 — a loop runs handles, and this is one

    def go_on(self, process: Process) -> None:
        """End a pause: what was held runs, in its order."""
        process.is_paused = False
        held, process.held = process.held, []
        for each in held:
            super().call_soon(each, context=Context())


def _task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """A task that says nothing when it is collected: those of a killed process never end."""
    task = asyncio.Task(work, loop=loop, **options)
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    return task


def run_in(process: Process, function: Callable[..., Any], *args: Any) -> Any:
    """Call the function as of this process: what it schedules belongs to the process."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context.run(function, *args)
