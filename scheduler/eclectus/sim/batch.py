"""Batches of runs: every profile with every seed, in this process or in several.

Results are in the order of the run specs, so the number of processes changes nothing but the time. A run that
fails does not stop the others.
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
from eclectus.sim.base.results import RunFailure, RunResult
from eclectus.sim.run import run
from eclectus.sim.scenario.reading import parse
from eclectus.sim.world.run_record import RunRecord

POLL_SECONDS = 0.2  # interval of progress reports

Progress = Callable[[int], None]
"""Called with the number of tasks that have ended in all runs together."""


@dataclass(frozen=True)
class RunSpec:
    """One run to make, as plain data that can be sent to any process."""

    text: str  # of the scenario file
    folder: Path
    changes: tuple[str, ...]
    profile: str
    seed: int
    tape: Path | None = None


class StopRequest:
    """Whether a stop has been requested. The first Ctrl-C requests it, the second ends the process."""

    def __init__(self) -> None:
        self.requested = False

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Handles SIGINT within the block."""
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, lambda *_: self._request(before))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _request(self, before: signal._HANDLER) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, before)


def run_batch(
    specs: Sequence[RunSpec], jobs: int, progress: Progress, stop: StopRequest
) -> list[RunResult | RunFailure]:
    """The results in the order of the specs, without those that had not begun when a stop was requested."""
    if jobs == 1 or len(specs) == 1:
        return list(_run_in_this_process(specs, progress, stop))
    return _run_in_processes(specs, jobs, progress, stop)


# -- in this process -------------------------------------------------------------------------------


def _run_in_this_process(
    specs: Sequence[RunSpec], progress: Progress, stop: StopRequest
) -> Iterator[RunResult | RunFailure]:
    before = 0
    for spec in specs:
        if stop.requested:
            return

        def go_on(record: RunRecord, before: int = before) -> bool:
            progress(before + record.settled)
            return not stop.requested

        result = _execute(spec, go_on)
        before += result.tasks if isinstance(result, RunResult) else 0
        yield result


def _execute(spec: RunSpec, go_on: Callable[[RunRecord], bool]) -> RunResult | RunFailure:
    """The result of the run, or why it failed; a third-party policy may raise anything."""
    scenario = parse(spec.text, spec.folder, spec.changes)
    profile = next(each for each in scenario.profiles if each.name == spec.profile)
    try:
        return run(scenario, profile, spec.seed, go_on=go_on, tape=spec.tape)
    except EclectusError as error:
        return RunFailure(spec.profile, spec.seed, str(error))
    except Exception as error:
        where = "".join(traceback.format_exception(error))
        return RunFailure(spec.profile, spec.seed, f"a defect: {type(error).__name__}: {error}", where)


# -- in several ------------------------------------------------------------------------------------

# In a worker: ended tasks by run, and in the last item whether to stop.
_shared: list[MutableSequence[int]] = []


def _run_in_processes(
    specs: Sequence[RunSpec], jobs: int, progress: Progress, stop: StopRequest
) -> list[RunResult | RunFailure]:
    context = multiprocessing.get_context("spawn")  # a new process inherits no state
    counters = cast(MutableSequence[int], context.Array("q", len(specs) + 1))
    count = min(jobs, len(specs))
    with ProcessPoolExecutor(count, context, initializer=_init_worker, initargs=(counters,)) as pool:
        with _sigint_blocked():
            futures = [pool.submit(_run_in_worker, at, spec) for at, spec in enumerate(specs)]
        left: set[Future[RunResult | RunFailure | None]] = set(futures)
        while left:
            done, left = wait(left, POLL_SECONDS, FIRST_COMPLETED)
            if stop.requested or any(future.exception() is not None for future in done):
                counters[-1] = 1
            progress(sum(counters[:-1]))
    try:
        return [found for future in futures if (found := future.result()) is not None]
    except BrokenProcessPool as error:
        raise EclectusError("a process has died, perhaps out of memory: try a smaller --jobs") from error


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Processes started in the block ignore Ctrl-C, which a terminal sends to all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _init_worker(counters: MutableSequence[int]) -> None:
    _shared.append(counters)


def _run_in_worker(at: int, spec: RunSpec) -> RunResult | RunFailure | None:
    counters = _shared[0]
    if counters[-1]:
        return None

    def go_on(record: RunRecord) -> bool:
        counters[at] = record.settled
        return not counters[-1]

    result = _execute(spec, go_on)
    if isinstance(result, RunResult):
        counters[at] = result.tasks  # a short run reports nothing before its end
    return result
