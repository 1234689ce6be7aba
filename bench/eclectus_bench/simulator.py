"""What a simulated task costs: two choices in proportion to speed, through the engine of the live scheduler.

A thousand machines of one slot in three speeds, one class of exponential sizes, load 0.8, rates told. A task
is two steps of the engine: it comes, and it ends.
"""

import cProfile
import multiprocessing
import pstats
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from eclectus.sim.run import build_world
from eclectus.sim.scenario.reading import parse
from eclectus.sim.world.run_record import RunRecord
from eclectus.sim.world.world import World
from eclectus_bench.bytecodes import count
from eclectus_bench.usage import peak_mebibytes

SECONDS_MOST = 60.0  # of CPU for a million tasks
PROFILED_TASKS = 50_000
COUNTED_TASKS = 3_000  # after as many others, in which the machines fill
TURNS = ("placing", "walk", "lanes", "seam", "answers", "vetting", "reports", "telling", "backoff")
PARTS = {  # the first that a file's path holds
    "/sim/": "the world",
    "/core/engine": "the engine's step",
    **{f"/core/{name}": "turns" for name in TURNS},
    "/core/": "the picture",
    "/feasibility/": "the picture",
    "/policies/": "policies",
    "/maths/": "policies",
}

SCENARIO = {
    "apiVersion": "eclectus.dev/v1alpha1",
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
    """One run, in a process of its own."""

    tasks: int
    seconds: float  # of CPU
    microseconds: float  # a task
    bytecodes: float  # a task, whatever the machine
    calls: float  # of Python functions, a task
    early_mib: float  # peak of the process when a tenth of the tasks had come
    peak_mib: float  # peak at the end: no more, if memory is flat in what has ended


def measure(tasks: int, counted: int = COUNTED_TASKS) -> SimulatorCost:
    """Run once, in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measure_here, tasks, counted).result()


def profile(file: Path, tasks: int = PROFILED_TASKS, counted: int = COUNTED_TASKS) -> None:
    """Where the time goes, by function, as text."""
    clock = cProfile.Profile(time.process_time)
    clock.runcall(_world(tasks).run)
    bytecodes, _ = _count(counted)
    with file.open("w") as out:
        for part, each in Counter(bytecodes).most_common():
            out.write(f"{part:20} {each:7.0f} bytecodes a task, {each / sum(bytecodes.values()):.0%}\n")
        pstats.Stats(clock, stream=out).sort_stats("tottime").print_stats(60)


def lines(cost: SimulatorCost) -> list[str]:
    """What was measured, for people."""
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
    world, _ = build_world(asked, asked.profiles[0], seed=1)
    return world


def _measure_here(tasks: int, counted: int) -> SimulatorCost:
    world, early = _world(tasks), peak_mebibytes()

    def look(ledger: RunRecord) -> bool:
        nonlocal early
        if ledger.arrived <= tasks / 10:
            early = peak_mebibytes()
        return True

    began = time.process_time()
    world.run(look)
    seconds, peak = time.process_time() - began, peak_mebibytes()
    bytecodes, calls = _count(counted)
    return SimulatorCost(tasks, seconds, seconds / tasks * 1e6, sum(bytecodes.values()), calls, early, peak)


def _count(tasks: int) -> tuple[dict[str, float], float]:
    """Bytecodes by part, and calls of Python functions, both a task."""
    few, few_calls = count(_world(tasks).run)
    all_of_them, all_calls = count(_world(2 * tasks).run)
    parts: Counter[str] = Counter()
    for code, each in (all_of_them - few).items():
        parts[next((part for path, part in PARTS.items() if path in code.co_filename), "others'")] += each
    calls = all_calls.total() - few_calls.total()
    return {part: each / tasks for part, each in parts.items()}, calls / tasks
