"""What a simulated task costs: two choices in proportion to speed, with the engine of the live scheduler.

A thousand machines of one slot in three speeds, one class of exponential sizes, load 0.8, known rates. A task
takes two steps of the engine: its arrival and its end.
"""

import cProfile
import gc
import multiprocessing
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import yaml

from eclectus.api.names import API_VERSION
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import parse
from eclectus.sim.world.run_record import RunRecord
from eclectus.sim.world.world import World
from eclectus_e2e.usage import peak_mebibytes

SECONDS_MOST = 60.0  # of CPU for a million tasks
PROFILED_TASKS = 50_000
COUNTED_TASKS = 3_000  # after as many others, during which the machines fill
CYCLE = (
    *(f"/engine/{name}" for name in ("placement", "scheduling_cycle", "effects", "queues/")),
    *(f"/engine/{name}" for name in ("agenda", "reports")),
    *(f"/framework/{name}" for name in ("roles", "view", "actions")),
)
PARTS = {  # the first key that a file's path contains decides
    "/sim/": "simulated world",
    "/engine/engine": "engine's step",
    **dict.fromkeys(CYCLE, "scheduling cycle"),
    **dict.fromkeys(
        ("/engine/", "/accounts/", "/framework/", "/model/", "/cluster/", "/feasibility/"), "cluster state"
    ),
    "/policies/": "policies",
    "/maths/": "policies",
    "<string>": "policies",  # how named tuples are made: those of the learner
}

SCENARIO = {
    "apiVersion": API_VERSION,
    "kind": "Scenario",
    "cluster": {
        "groups": [
            {"name": "slow", "count": 500, "slots": 1, "speed": 1},
            {"name": "middle", "count": 300, "slots": 1, "speed": 2},
            {"name": "fast", "count": 200, "slots": 1, "speed": 5},
        ]
    },
    "workload": {"poisson": {"load": 0.8, "classes": [{"size": {"law": "exponential", "mean": "1s"}}]}},
    "learn": {"policy": "truth"},
    "profiles": [
        {"schedulerName": "ppot", "place": {"policy": "rosella", "view": "sample", "compare": "sq"}}
    ],
}


@dataclass(frozen=True)
class SimulatorCost:
    """One run in a process of its own."""

    tasks: int
    seconds: float  # of CPU
    microseconds: float  # a task
    bytecodes: float  # a task, whatever the machine
    calls: float  # of Python functions, a task
    early_mib: float  # peak memory of the process when a tenth of the tasks had arrived
    peak_mib: float  # peak memory at the end: the same, if ended tasks take no memory


def measure(tasks: int, counted: int = COUNTED_TASKS) -> SimulatorCost:
    """Run once, in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measure_here, tasks, counted).result()


def profile(file: Path, tasks: int = PROFILED_TASKS, counted: int = COUNTED_TASKS) -> None:
    """Write bytecodes by part and time by function, as text."""
    clock = cProfile.Profile(time.process_time)
    clock.runcall(_world(tasks).run)
    bytecodes, _ = _count(counted)
    with file.open("w") as out:
        for part, each in Counter(bytecodes).most_common():
            out.write(f"{part:20} {each:7.0f} bytecodes a task, {each / sum(bytecodes.values()):.0%}\n")
        pstats.Stats(clock, stream=out).sort_stats("tottime").print_stats(60)


def lines(cost: SimulatorCost) -> list[str]:
    """The result as text."""
    of_a_million = cost.microseconds  # a million microseconds are a second
    verdict = "met" if of_a_million <= SECONDS_MOST else "MISSED"
    return [
        f"simulator: {cost.tasks:,} tasks in {cost.seconds:.1f} s of CPU, {cost.microseconds:.1f} µs a task",
        f"  a million tasks: {of_a_million:.0f} s, target <= {SECONDS_MOST:g} s {verdict}",
        f"  on any machine: {cost.bytecodes:,.0f} bytecodes and {cost.calls:.0f} calls a task",
        f"  memory: {cost.early_mib:.0f} MiB after a tenth, {cost.peak_mib:.0f} MiB at the end",
    ]


def _world(tasks: int) -> World:
    asked = parse(yaml.safe_dump({**SCENARIO, "measure": {"tasks": tasks}}))
    return build_world(asked, asked.profiles[0], seed=1)


def _measure_here(tasks: int, counted: int) -> SimulatorCost:
    world, early = _world(tasks), peak_mebibytes()

    def record_memory(record: RunRecord) -> bool:
        nonlocal early
        if record.arrived <= tasks / 10:
            early = peak_mebibytes()
        return True

    began = time.process_time()
    world.run(record_memory)
    seconds, peak = time.process_time() - began, peak_mebibytes()
    bytecodes, calls = _count(counted)
    return SimulatorCost(tasks, seconds, seconds / tasks * 1e6, sum(bytecodes.values()), calls, early, peak)


def _count(tasks: int) -> tuple[dict[str, float], float]:
    """Bytecodes by part, and calls of Python functions; both a task."""
    few, few_calls = count_bytecodes(_world(tasks).run)
    many, many_calls = count_bytecodes(_world(2 * tasks).run)
    parts: Counter[str] = Counter()
    for code, each in (many - few).items():
        parts[next((part for path, part in PARTS.items() if path in code.co_filename), "others'")] += each
    calls = many_calls.total() - few_calls.total()
    return {part: each / tasks for part, each in parts.items()}, calls / tasks


def count_bytecodes(work: Callable[[], object]) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """Bytecodes and calls of each function during `work`: a cost that does not depend on the machine.

    Python's tracing slows the work down some thirty times. What is done in C (numpy, dicts) is not counted,
    but the bytecodes that call it are. The garbage collector rests meanwhile: libraries register callbacks
    with it, which are no part of the work.
    """
    bytecodes, calls = Counter[CodeType](), Counter[CodeType]()

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            calls[frame.f_code] += 1
        elif event == "opcode":
            bytecodes[frame.f_code] += 1
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return bytecodes, calls
