"""Start-up: from the start of the process to its first bind, for both schedulers, and where the time goes.

One pod waits before the scheduler starts. The stages of Eclectus are the times of its log lines, so they
include what the API server needs; `imports` is the CPU time of the same imports in a process of its own.
"""

import asyncio
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from eclectus_bench.load import Load, pod
from eclectus_bench.match import OUTPUT, PLANE
from eclectus_bench.schedulers import ECLECTUS, SchedulerUnderTest, eclectus, kube_scheduler
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubelet.api import Api, read_access

NODES = 50
TARGET_SECONDS = 1.5  # of Eclectus, to the first bind
STAGES = {
    "imports, configuration, credentials": "serving health checks",
    "connection, first lists": "deciding from now on",
    "decision, bind": "bound",
}
"""What ends with the first log line that contains these words."""
_IMPORTS = """
import eclectus.cli.main, eclectus.cli.scheduler, eclectus.tape, uvloop
from eclectus.kubeclient import credentials
from eclectus.live import logs, scheduler_process
"""


@dataclass(frozen=True)
class Start:
    """One start. `stages`: what it was spent on, in seconds; of Eclectus only."""

    scheduler: str
    seconds: float  # to the first bind
    stages: dict[str, float]


def measure(rounds: int) -> list[Start]:
    """Start both schedulers in turn, so many times."""
    with ControlPlane.started(OUTPUT / "cluster", PLANE) as plane, Progress("startup") as progress:
        return asyncio.run(_measure(plane, rounds, progress))


def lines(starts: list[Start]) -> list[str]:
    """The medians, for people."""
    names = dict.fromkeys(start.scheduler for start in starts)
    runs = {name: [start for start in starts if start.scheduler == name] for name in names}
    found = [
        f"{name}: {median(start.seconds for start in of_it):.2f} s to the first bind "
        f"({min(start.seconds for start in of_it):.2f} to {max(start.seconds for start in of_it):.2f})"
        for name, of_it in runs.items()
    ]
    for stage in STAGES:
        seconds = median(start.stages[stage] for start in runs[ECLECTUS])
        found.append(f"  {stage}: {seconds:.2f} s")
    return [*found, f"  imports alone: {import_seconds():.2f} s of CPU; target {TARGET_SECONDS:g} s in all"]


def import_seconds(tries: int = 5) -> float:
    """The least CPU time of the scheduler's imports, whatever else the machine does."""
    return min(_cpu_seconds(_IMPORTS) for _ in range(tries))


def _cpu_seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _measure(plane: ControlPlane, rounds: int, progress: Progress) -> list[Start]:
    starts, schedulers = [], (kube_scheduler(plane), eclectus(plane))
    async with Api(read_access(plane.kubeconfig)) as api:
        load = Load(api)
        await load.create_nodes(NODES)
        for number in range(rounds):
            for scheduler in schedulers:
                progress.update(f"round {number + 1} of {rounds}, {scheduler.name}")
                starts.append(await _start(load, plane, scheduler, f"start-{number}-{scheduler.name}"))
    return starts


async def _start(load: Load, plane: ControlPlane, scheduler: SchedulerUnderTest, namespace: str) -> Start:
    log = plane.directory / "logs" / f"{ECLECTUS}.log"
    async with load.namespace(namespace) as binds:
        await load.create_pods(namespace, [pod("pod", scheduler.scheduler_name)])
        offset = len(_text_after(log, 0).encode())
        began, began_at = time.monotonic(), time.time()
        with scheduler.running() as pid:
            await binds.wait_for(1, pid, lambda _: None)
            seconds = min(binds.seen_at.values()) - began
            stages = await _stages(log, offset, began_at) if scheduler.name == ECLECTUS else {}
    return Start(scheduler.name, seconds, stages)


def _text_after(log: Path, offset: int) -> str:
    return log.read_bytes()[offset:].decode() if log.exists() else ""


async def _stages(log: Path, offset: int, began_at: float) -> dict[str, float]:
    """Duration of each stage, by the log that is written after `offset`."""
    text = ""
    while "bound" not in text:  # its last line is written after the watch has shown the bind
        await asyncio.sleep(0.05)
        text = _text_after(log, offset)
    found, before = {}, began_at
    for stage, words in STAGES.items():
        line = next(line for line in text.splitlines() if re.search(rf"\b{words}\b", line))
        at = datetime.fromisoformat(line.split()[0]).timestamp()
        found[stage], before = at - before, at
    return found
