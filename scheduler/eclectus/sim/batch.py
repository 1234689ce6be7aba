"""Many runs: every profile with every seed, in this process or in several.

The order of results is that of the questions, so the number of processes changes nothing but the time. A run
that fails ends no other.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from eclectus.model.errors import EclectusError
from eclectus.sim.base.results import Failure, Run
from eclectus.sim.run import run
from eclectus.sim.scenario.reading import parse
from eclectus.sim.world.ledger import Ledger

POLL_SECONDS = 0.2  # how often progress is told

Progress = Callable[[int], None]
"""Told how many tasks have ended in all runs together."""


@dataclass(frozen=True)
class Question:
    """One run to make, as plain data, so that any process can make it."""

    text: str  # the scenario's
    folder: Path
    changes: tuple[str, ...]
    profile: str
    seed: int
    tape: Path | None = None


class Stop:
    """Whether somebody has asked to stop; the first Ctrl-C sets it, the second is Python's own again."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """While this lasts."""
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, lambda *_: self._ask(before))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _ask(self, before: signal._HANDLER) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, before)


def answer(questions: Sequence[Question], jobs: int, progress: Progress, stop: Stop) -> list[Run | Failure]:
    """The runs in the order of the questions; those not begun when `stop` was asked for are left out."""
    if jobs == 1 or len(questions) == 1:
        return list(_answer_here(questions, progress, stop))
    return _answer_in_processes(questions, jobs, progress, stop)


# -- in this process -------------------------------------------------------------------------------


def _answer_here(questions: Sequence[Question], progress: Progress, stop: Stop) -> Iterator[Run | Failure]:
    before = 0
    for question in questions:
        if stop.asked:
            return

        def go_on(ledger: Ledger, before: int = before) -> bool:
            progress(before + ledger.settled)
            return not stop.asked

        done = _make(question, go_on)
        before += done.tasks if isinstance(done, Run) else 0
        yield done


def _make(question: Question, go_on: Callable[[Ledger], bool]) -> Run | Failure:
    """The run, or why there is none; a policy may be anybody's, and raise anything."""
    scenario = parse(question.text, question.folder, question.changes)
    contestant = next(each for each in scenario.contestants if each.name == question.profile)
    try:
        return run(scenario, contestant, question.seed, go_on=go_on, tape=question.tape)
    except EclectusError as error:
        return Failure(question.profile, question.seed, str(error))
    except Exception as error:
        where = "".join(traceback.format_exception(error))
        return Failure(question.profile, question.seed, f"a defect: {type(error).__name__}: {error}", where)


# -- in several ------------------------------------------------------------------------------------

_shared: list[
    MutableSequence[int]
] = []  # in a worker: ended tasks by question, and last of all whether to stop


def _answer_in_processes(
    questions: Sequence[Question], jobs: int, progress: Progress, stop: Stop
) -> list[Run | Failure]:
    context = multiprocessing.get_context("spawn")  # a fresh process inherits nobody's state
    counters = cast(MutableSequence[int], context.Array("q", len(questions) + 1))
    count = min(jobs, len(questions))
    with ProcessPoolExecutor(count, context, initializer=_join_in, initargs=(counters,)) as pool:
        with _deaf():
            futures = [pool.submit(_answer_there, at, question) for at, question in enumerate(questions)]
        left: set[Future[Run | Failure | None]] = set(futures)
        while left:
            done, left = wait(left, POLL_SECONDS, FIRST_COMPLETED)
            if stop.asked or any(future.exception() is not None for future in done):
                counters[-1] = 1
            progress(sum(counters[:-1]))
    try:
        return [found for future in futures if (found := future.result()) is not None]
    except BrokenProcessPool as error:
        raise EclectusError("a process has died, perhaps for want of memory: try fewer --jobs") from error


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes begun meanwhile never hear Ctrl-C, which a terminal sends to all: we tell them to stop."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _join_in(counters: MutableSequence[int]) -> None:
    _shared.append(counters)


def _answer_there(at: int, question: Question) -> Run | Failure | None:
    counters = _shared[0]
    if counters[-1]:
        return None

    def go_on(ledger: Ledger) -> bool:
        counters[at] = ledger.settled
        return not counters[-1]

    return _make(question, go_on)
