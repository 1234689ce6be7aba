"""Many runs: every profile with every seed, in this process or in several, and what they say together.

The order of results is that of the questions, so the number of processes changes nothing but the time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import cast

from eclectus.core.errors import EclectusError
from eclectus.maths.student import half_width
from eclectus.sim.groups import in_order
from eclectus.sim.ledger import Ledger
from eclectus.sim.reading import parse
from eclectus.sim.results import Figures, Group, Interval, Run, Spread, Summary, Times
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


def _summary(profile: str, runs: Sequence[Run]) -> Summary:
    groups: dict[str, dict[str, list[Group]]] = {}
    shares = [each.probe_share for each in runs]
    for each in runs:
        for name, some in each.groups.items():
            for label, group in some.items():
                groups.setdefault(name, {}).setdefault(label, []).append(group)
    return Summary(
        profile=profile,
        runs=len(runs),
        all=_figures(runs),
        groups={
            name: {label: _figures(some[label]) for label in in_order(some)} for name, some in groups.items()
        },
        dropped=_interval([each.dropped for each in runs]),
        allocation=_allocation(runs),
        in_system_mean=_interval([each.in_system_mean for each in runs]),
        utilisation=_interval([each.utilisation for each in runs]),
        probe_share=_interval(shares) if any(shares) else None,
    )


def _figures(parts: Sequence[Run] | Sequence[Group]) -> Figures:
    """Over the runs in which there is anything."""
    slowdowns = [each.slowdown for each in parts if each.response.count]
    return Figures(
        response=_spread([each.response for each in parts]),
        wait=_spread([each.wait for each in parts]),
        jobs=_spread([each.jobs for each in parts]),
        slowdown=_interval(slowdowns) if slowdowns else None,
    )


def _spread(samples: Sequence[Times]) -> Spread | None:
    some = [each for each in samples if each.count]
    if not some:
        return None
    return Spread(
        mean=_interval([each.mean for each in some]),
        p50=_interval([each.p50 for each in some]),
        p90=_interval([each.p90 for each in some]),
        p99=_interval([each.p99 for each in some]),
    )


def _allocation(runs: Sequence[Run]) -> dict[int, Interval]:
    """At every whole per cent that all runs have reached; a run that skipped it held what it held before."""
    curves = [each.allocation for each in runs]
    if not all(curves):
        return {}
    first, last = max(min(curve) for curve in curves), min(max(curve) for curve in curves)
    return {
        x: _interval([curve[max(known for known in curve if known <= x)] for curve in curves])
        for x in range(first, last + 1)
    }


def _interval(values: Sequence[float]) -> Interval:
    return Interval(fmean(values), half_width(values))


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
        with _deaf():
            futures = [pool.submit(_answer_there, at, question) for at, question in enumerate(questions)]
        left: set[Future[Run | None]] = set(futures)
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


def _answer_there(at: int, question: Question) -> Run | None:
    counters = _shared[0]
    if counters[-1]:
        return None

    def go_on(ledger: Ledger) -> bool:
        counters[at] = ledger.settled
        return not counters[-1]

    return _make(question, go_on)
