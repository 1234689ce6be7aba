"""Start-up: from the start of the process to its first bind, for both schedulers, and where the time goes.

One pod waits before the scheduler starts. The stages of Eclectus are the times of its log lines, so they
include what the API server needs; the imports are those of a scheduler with a configuration of one profile,
in a process of its own. An installed program is compiled, so the checkout is compiled before.
"""

import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus_bench.load import Load, pod
from eclectus_bench.match import OUTPUT, PLANE
from eclectus_bench.schedulers import (
    ECLECTUS,
    KUBE_SCHEDULER,
    SchedulerUnderTest,
    compile_checkout,
    eclectus,
    kube_scheduler,
)
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubelet.api import Api, read_access

NODES = 50
TARGET_RATIO = 1.6  # of Eclectus to kube-scheduler, to the first bind
STAGES = {
    "imports, configuration, credentials": "serving health checks",
    "connection, first lists": "deciding from now on",
    "decision, bind": "bound",
}
"""What ends with the first log line that contains these words."""
_CONFIGURATION = {
    "apiVersion": API_VERSION,
    "kind": SCHEDULER_CONFIGURATION,
    "profiles": [{"schedulerName": "eclectus", "relieve": {"policy": "preemption"}}],
}
_IMPORTS = f"""
import gc, eclectus.cli.main, eclectus.cli.scheduler
gc.set_threshold(*eclectus.cli.scheduler.GC_THRESHOLD)
from eclectus.config.configuration import parse
from eclectus.kubeclient import credentials
from eclectus.live import logs, scheduler_process
parse({json.dumps(_CONFIGURATION)!r}).engine()
import uvloop
"""
_FLOOR = "import asyncio, ssl, httptools, msgspec, numpy, uvloop"
"""What a scheduler in Python starts with, whatever its own code."""
_LIBRARIES = "the standard library"


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
    theirs, ours = (median(start.seconds for start in runs[name]) for name in (KUBE_SCHEDULER, ECLECTUS))
    found.append(f"  {ours / theirs:.2f} times as long; wanted: at most {TARGET_RATIO:g}")
    for stage in STAGES:
        seconds = median(start.stages[stage] for start in runs[ECLECTUS])
        found.append(f"  {stage}: {seconds:.2f} s")
    imports, floor = import_seconds(_IMPORTS), import_seconds(_FLOOR)
    found.append(f"  imports alone: {imports:.2f} s of CPU, of it {floor:.2f} s `{_FLOOR}`")
    shares = (f"{name} {seconds * 1000:.0f} ms ({modules})" for name, seconds, modules in import_shares()[:6])
    return [*found, f"    by package, in modules: {', '.join(shares)}"]


def import_seconds(code: str, tries: int = 5) -> float:
    """The least CPU time of these imports with the interpreter's own, whatever else the machine does."""
    compile_checkout()
    return min(_cpu_seconds(code) for _ in range(tries))


def import_shares(tries: int = 5) -> list[tuple[str, float, int]]:
    """(package, seconds, modules) of the scheduler's imports, the most first, by `-X importtime`."""
    least: dict[str, int] = {}
    for _ in range(tries):
        command = [sys.executable, "-X", "importtime", "-c", _IMPORTS]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        for own, name in re.findall(r"^import time: +(\d+) \|[^|]+\| +(\S+)$", printed, re.MULTILINE):
            least[name] = min(int(own), least.get(name, int(own)))
    seconds, modules = Counter[str](), Counter[str]()
    for name, own in least.items():
        package = name.partition(".")[0]
        of_it = _LIBRARIES if package in sys.stdlib_module_names else package
        seconds[of_it] += own
        modules[of_it] += 1
    return [(name, own / 1e6, modules[name]) for name, own in seconds.most_common()]


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
