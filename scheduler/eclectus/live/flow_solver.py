"""The solver's process: it is started when a problem comes, killed at its time limit, and started again.

One problem is solved at a time; of several that wait for it only the last of each profile counts. Whatever
happens each is answered within its time limit, which begins when it is put: by the solver, or with `failed`
where it has died, takes too long, or is not started again yet. The policy then places pods without it. Health
checks do not depend on it.
"""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Metrics
from eclectus.maths.min_cost_flow import FlowProblem
from eclectus.model.commands import Solve
from eclectus.model.events import Solved
from eclectus.solver.frames import LENGTH, decoded_answer, encoded_problem

PROGRAM = (sys.executable, "-m", "eclectus.solver")
FIRST_PAUSE_SECONDS, PAUSE_SECONDS_MOST = 1.0, 60.0  # before it is started again, doubled with each failure
END_SECONDS = 0.5  # until a process that was killed has ended, and who else holds its pipes
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each maps memory of its own

_log = logging.getLogger(__name__)


class SolverError(Exception):
    """The process has ended, or written what is no answer."""


class FlowSolver:
    """Takes commands, and puts answers into the inbox."""

    def __init__(
        self,
        problem: Callable[[int], FlowProblem | None],
        inbox: Inbox,
        metrics: Metrics,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        """`problem`: the arrays of a command; None where nobody waits for the answer any more."""
        self._problem = problem
        self._inbox = inbox
        self._metrics = metrics
        self._program = program
        # By profile: the last command, and when it is given up, on the clock of `elapsed`.
        self._waiting = OrderedDict[str, tuple[Solve, float]]()
        self._arrived = asyncio.Event()
        self._process: Process | None = None
        self._ending: Process | None = None  # it was killed
        self._failures = 0  # in succession
        self._start_at = 0.0  # when it may be started, on the clock of `elapsed`

    def put(self, command: Solve) -> None:
        """Have it solved; one of the same profile that still waits is void."""
        self._waiting[command.profile] = command, elapsed() + command.within
        self._arrived.set()

    async def run(self) -> None:
        """Solve until cancelled; then the process ends too."""
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                while self._waiting:
                    await self._answer(*self._waiting.popitem(last=False)[1])
        finally:
            await self._kill()

    async def _answer(self, command: Solve, until: float) -> None:
        problem = self._problem(command.serial)
        if problem is None:
            return
        now = elapsed()
        if now < self._start_at or now >= until:
            self._say(Solved(command.serial, "failed"))
            return
        try:
            async with asyncio.timeout(until - now):
                solved = await self._ask(encoded_problem(command.serial, problem))
        except (TimeoutError, OSError, EOFError, SolverError, msgspec.DecodeError) as error:
            self._fail(error, command)
            self._say(Solved(command.serial, "failed"))
            await self._kill()  # last, because it may be slow to end
        else:
            self._failures = 0
            self._metrics.flow_solve_seconds.labels().observe(solved.seconds)
            self._say(solved)

    def _say(self, solved: Solved) -> None:
        self._metrics.flow_solves.labels(solved.status).inc()
        self._inbox.put(solved)

    async def _ask(self, question: bytes) -> Solved:
        process = self._process or await self._started()
        if process.stdin is None or process.stdout is None:
            raise SolverError("its pipes are missing")
        if process.stdin.is_closing():  # to write there is a RuntimeError of uvloop's, no OSError
            raise SolverError("it has ended since the last problem")
        process.stdin.write(question)
        await process.stdin.drain()
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        return decoded_answer(await process.stdout.readexactly(length))

    async def _started(self) -> Process:
        environment = {**os.environ, **ONE_THREAD}
        self._process = await asyncio.create_subprocess_exec(
            *self._program, stdin=PIPE, stdout=PIPE, env=environment
        )
        return self._process

    def _fail(self, error: Exception, command: Solve) -> None:
        """Not to be started again for a while."""
        pause = min(FIRST_PAUSE_SECONDS * 2.0**self._failures, PAUSE_SECONDS_MOST)
        self._failures = min(self._failures + 1, 16)
        self._start_at = elapsed() + pause
        why = f"no answer within {command.within:g} s" if isinstance(error, TimeoutError) else repr(error)
        problem = "the flow solver failed on %d arcs: %s; for %g s pods are placed without it"
        _log.warning(problem, command.arcs, why, pause)

    async def _kill(self) -> None:
        """End the process, or see one end whose end was awaited when this was cancelled."""
        process, self._process = self._process or self._ending, None
        if process is None:
            return
        self._ending = process
        with suppress(ProcessLookupError):
            process.kill()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.communicate()  # its end, and that of its pipes
        except TimeoutError:
            _log.warning("the flow solver's process %d was killed and has not ended", process.pid)
        self._ending = None
