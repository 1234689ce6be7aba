"""Many runs: every profile with every seed, in this process or in several, and what they say together.

The order of results is that of the questions, so the number of processes changes nothing but the time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import cast

from eclectus.maths.student import half_width
from eclectus.sim.ledger import Ledger
from eclectus.sim.reading import parse
from eclectus.sim.results import Interval, Run, Summary
from eclectus.sim.run import run

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


def answer(questions: Sequence[Question], jobs: int, progress: Progress, stop: Stop) -> list[Run]:
    """The runs in the order of the questions; those not begun when `stop` was asked for are left out."""
    if jobs == 1 or len(questions) == 1:
        return list(_answer_here(questions, progress, stop))
    return _answer_in_processes(questions, jobs, progress, stop)


def summarise(runs: Sequence[Run]) -> list[Summary]:
    """Each profile over its complete runs, or over what there is if none is complete."""
    by_profile: dict[str, list[Run]] = {}
    for each in runs:
        by_profile.setdefault(each.profile, []).append(each)
    return [_summary(name, [r for r in group if r.complete] or group) for name, group in by_profile.items()]


def interval(values: Sequence[float]) -> Interval:
    """Mean and half width."""
    return Interval(fmean(values), half_width(values))


def _summary(profile: str, runs: Sequence[Run]) -> Summary:
    def over(read: Callable[[Run], float]) -> Interval:
        return interval([read(each) for each in runs])

    return Summary(
        profile=profile,
        runs=len(runs),
        response_mean=over(lambda each: each.response.mean),
        response_p50=over(lambda each: each.response.p50),
        response_p99=over(lambda each: each.response.p99),
        wait_mean=over(lambda each: each.wait.mean),
        jobs_mean=over(lambda each: each.jobs.mean),
        slowdown=over(_slowdown),
        in_system_mean=over(lambda each: each.in_system_mean),
        utilisation=over(lambda each: each.utilisation),
    )


def _slowdown(each: Run) -> float:
    count = sum(one.response.count for one in each.classes.values())
    return sum(one.slowdown * one.response.count for one in each.classes.values()) / max(count, 1)


# -- in this process -------------------------------------------------------------------------------


def _answer_here(questions: Sequence[Question], progress: Progress, stop: Stop) -> Iterator[Run]:
    before = 0
    for question in questions:
        if stop.asked:
            return

        def go_on(ledger: Ledger, before: int = before) -> bool:
            progress(before + ledger.settled)
            return not stop.asked

        done = _make(question, go_on)
        before += done.tasks
        yield done


def _make(question: Question, go_on: Callable[[Ledger], bool]) -> Run:
    scenario = parse(question.text, question.folder, question.changes)
    contestant = next(each for each in scenario.contestants if each.name == question.profile)
    return run(scenario, contestant, question.seed, go_on=go_on, tape=question.tape)


# -- in several ------------------------------------------------------------------------------------

_shared: list[
    MutableSequence[int]
] = []  # in a worker: ended tasks by question, and last of all whether to stop


def _answer_in_processes(
    questions: Sequence[Question], jobs: int, progress: Progress, stop: Stop
) -> list[Run]:
    context = multiprocessing.get_context("spawn")  # a fresh process inherits nobody's state
    counters = cast(MutableSequence[int], context.Array("q", len(questions) + 1))
    count = min(jobs, len(questions))
    with ProcessPoolExecutor(count, context, initializer=_join_in, initargs=(counters,)) as pool:
        futures = [pool.submit(_answer_there, at, question) for at, question in enumerate(questions)]
        left: set[Future[Run | None]] = set(futures)
        while left:
            done, left = wait(left, POLL_SECONDS, FIRST_COMPLETED)
            if stop.asked or any(future.exception() is not None for future in done):
                counters[-1] = 1
            progress(sum(counters[:-1]))
    return [found for future in futures if (found := future.result()) is not None]


def _join_in(counters: MutableSequence[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and tells us
    _shared.append(counters)


def _answer_there(at: int, question: Question) -> Run | None:
    counters = _shared[0]
    if counters[-1]:
        return None

    def go_on(ledger: Ledger) -> bool:
        counters[at] = ledger.settled
        return not counters[-1]

    return _make(question, go_on)
