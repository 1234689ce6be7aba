"""The solver's process: whatever becomes of it, each problem is answered."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvloop

from eclectus.live.flow_solver import FIRST_PAUSE_SECONDS, FlowSolver
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Metrics
from eclectus.maths.min_cost_flow import FlowProblem
from eclectus.model.commands import Solve
from eclectus.model.events import Solved
from eclectus.solver.frames import (
    HEADER,
    LENGTH,
    body_bytes,
    decoded_answer,
    decoded_problem,
    encoded_answer,
    encoded_problem,
)

PROBLEM = FlowProblem(
    *(np.array(each, dtype=np.int64) for each in ([0, 0], [1, 2], [5, 5], [3, -1], [2, -1, -1]))
)
SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")
STOPS = (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
IGNORES = (
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()",
)
LEAVES_A_CHILD = (  # which holds its pipes until it is ended
    sys.executable,
    "-c",
    "import subprocess, sys, time; "
    "open(sys.argv[1], 'w').write(str(subprocess.Popen(['sleep', '60']).pid)); time.sleep(60)",
)
BEYOND_SECONDS = 1.0  # its time limit: how long a problem may go without an answer
ENDS = (sys.executable, "-c", "pass")
BABBLES = (sys.executable, "-c", "import sys; sys.stdout.buffer.write(bytes([4] + [0] * 7) + b'nope')")


def command(serial: int = 1, *, profile: str = "a", within: float = 30.0) -> Solve:
    return Solve(serial, profile, 2, PROBLEM.digest, within)


def with_solver(
    work: Callable[[FlowSolver, Inbox], Awaitable[None]],
    run: Callable[..., FlowSolver] = asyncio.run,
    **fields: object,
) -> FlowSolver:
    """Run something beside a solver."""

    async def main() -> FlowSolver:
        inbox = Inbox()
        solver = FlowSolver(lambda serial: PROBLEM if serial > 0 else None, inbox, Metrics(), **fields)  # type: ignore[arg-type]
        running = asyncio.create_task(solver.run())
        await work(solver, inbox)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return solver

    return run(main())


def counted(solver: FlowSolver, status: str) -> float:
    return solver._metrics.flow_solves.labels(status).value


def test_a_problem_is_solved_in_a_process_that_is_used_again() -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        processes = set()
        for serial in (1, 2):
            solver.put(command(serial))
            (solved,) = await inbox.take(30.0)
            assert isinstance(solved, Solved)
            assert (solved.serial, solved.status) == (serial, "optimal")
            assert sorted(solved.routes) == [(0, 0, 2)]
            assert solver._process is not None
            processes.add(solver._process.pid)
        assert len(processes) == 1
        assert os.getpid() not in processes

    assert counted(with_solver(work), "optimal") == 2


@pytest.mark.parametrize(("program", "within"), [(SLEEPS, 0.05), (ENDS, 30.0), (BABBLES, 30.0)])
def test_a_problem_that_cannot_be_solved_is_answered_and_the_process_is_gone(
    program: tuple[str, ...], within: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        solver.put(command(within=within))
        assert await inbox.take(30.0) == [Solved(1, "failed")]
        assert solver._process is None

    assert counted(with_solver(work, program=program), "failed") == 1
    assert "without it" in caplog.text


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("program", [SLEEPS, STOPS, IGNORES])
def test_a_process_that_hangs_delays_no_problem_beyond_its_time_limit(
    program: tuple[str, ...], run: Callable[..., FlowSolver]
) -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        solver.put(command(1, within=0.3))
        assert await inbox.take(0.3 + BEYOND_SECONDS) == [Solved(1, "failed")]
        solver.put(command(2, within=0.3))  # while it ends
        assert await inbox.take(0.3 + BEYOND_SECONDS) == [Solved(2, "failed")]

    with_solver(work, run, program=program)


def test_neither_does_one_whose_pipes_stay_open_when_it_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "child"

    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        solver.put(command(1, within=2.0))
        assert await inbox.take(2.0 + BEYOND_SECONDS) == [Solved(1, "failed")]
        solver.put(command(2, within=0.3))  # while it ends
        assert await inbox.take(0.3 + BEYOND_SECONDS) == [Solved(2, "failed")]
        assert "was killed and has not ended" in caplog.text
        os.kill(int(file.read_text()), signal.SIGKILL)
        await asyncio.wait_for(started[0].communicate(), 30.0)

    start, started = FlowSolver._started, list[Any]()

    async def noted(solver: FlowSolver) -> Any:
        started.append(await start(solver))
        return started[-1]

    monkeypatch.setattr(FlowSolver, "_started", noted)
    with_solver(work, program=(*LEAVES_A_CHILD, str(file)))


def test_a_problem_that_waits_for_another_ones_solver_has_its_own_time_limit() -> None:
    """Otherwise it would be solved for a policy that has given it up, and others would wait for that."""

    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        solver.put(command(1, profile="a", within=0.5))
        solver.put(command(2, profile="b", within=0.1))
        first = await inbox.take(0.5 + BEYOND_SECONDS)
        both = first if len(first) == 2 else [*first, *await inbox.take(BEYOND_SECONDS)]
        assert both == [Solved(1, "failed"), Solved(2, "failed")]
        solver._start_at = 0.0
        solver.put(command(3, within=0.0))
        assert await inbox.take(BEYOND_SECONDS) == [Solved(3, "failed")]
        assert solver._start_at == 0.0  # none was started for it, and none has failed

    with_solver(work, program=SLEEPS)


def test_it_is_started_again_after_a_pause_in_which_problems_are_answered_at_once() -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        solver.put(command())
        await inbox.take(30.0)
        first = solver._start_at
        solver.put(command(2))
        assert await inbox.take(30.0) == [Solved(2, "failed")]
        assert solver._start_at == first
        solver._start_at = 0.0
        solver.put(command(3))
        await inbox.take(30.0)
        assert solver._start_at > first + FIRST_PAUSE_SECONDS  # the second pause is twice as long

    with_solver(work, program=ENDS)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])  # uvloop, the scheduler's, has errors of its own
def test_a_process_that_is_killed_loses_no_problem(run: Callable[..., FlowSolver]) -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        for serial in range(1, 6):
            solver.put(command(serial))
            (solved,) = await inbox.take(30.0)
            assert isinstance(solved, Solved)
            assert solved.serial == serial
            if solver._process is not None:
                solver._process.kill()
                await solver._process.wait()
            solver._start_at = 0.0

    with_solver(work, run)


def test_of_problems_that_wait_the_last_of_each_profile_counts() -> None:
    async def work(solver: FlowSolver, inbox: Inbox) -> None:
        for each in (command(1), command(2), command(3, profile="b"), command(-4, profile="c")):
            solver.put(each)
        serials = [each.serial for _ in range(2) for each in await inbox.take(30.0)]  # type: ignore[union-attr]
        assert serials == [2, 3]

    with_solver(work)


def test_the_memory_of_the_process_is_bounded() -> None:
    """It ends, where the scheduler's container would: a child of it is no reason to end the leader."""
    code = (
        "import resource; from eclectus.solver import __main__ as solver; solver.bound(); "
        "assert resource.getrlimit(resource.RLIMIT_AS) == (solver.MEMORY_BYTES,) * 2; "
        "bytearray(solver.MEMORY_BYTES)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in ended.stderr


def test_frames_keep_problems_and_answers() -> None:
    data = encoded_problem(7, PROBLEM)
    header, body = data[: HEADER.size], data[HEADER.size :]
    assert body_bytes(header) == len(body)
    serial, problem = decoded_problem(header, body)
    assert serial == 7
    assert problem.digest == PROBLEM.digest
    solved = Solved(7, "optimal", ((0, 1, 2),), 0.5)
    answer = encoded_answer(solved)
    assert LENGTH.unpack(answer[: LENGTH.size]) == (len(answer) - LENGTH.size,)
    assert decoded_answer(answer[LENGTH.size :]) == solved
