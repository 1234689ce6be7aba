"""One soak: a cluster is built, both processes are started, and everything is watched for the time given."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from eclectus.api.names import NODE_PROBES_PATH, PROBED_LABEL
from eclectus_bench.experiments.perturbations.timeline import node_probe
from eclectus_bench.load import Load, node_name
from eclectus_bench.match import bench_plane, with_nodes
from eclectus_bench.soak import attack, objects, scrape
from eclectus_bench.soak.renewals import Renewals
from eclectus_bench.soak.scrape import Scrape
from eclectus_bench.soak.sizes import Sizes
from eclectus_bench.soak.traffic import ADDRESSES, ARRIVING, Traffic
from eclectus_bench.soak.verdict import OPERATOR, SCHEDULER, Reading, Soak
from eclectus_e2e.errors import StartError
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubelet.api import MERGE, STRATEGIC, Api, read_access
from eclectus_e2e.testbed.kubelet.objects import Pod
from eclectus_e2e.testbed.kubelet.pods import status
from eclectus_e2e.testbed.processes import Process, log_path, log_tail
from eclectus_e2e.usage import cpu_seconds, memory_mebibytes, peak_mebibytes

STANDING, PENDING = "standing", "pending"  # namespaces
API_SERVER, BENCH = "kube-apiserver", "bench"
# Readings of a soak, more where it lasts longer than ten seconds for each, and how many of them are printed.
READINGS, READING_SECONDS, LINES = 120, 10.0, 20
NODE_PROBE = "soak"
QUOTA = "eclectus-operator-probes"  # the chart's
# How logs of the scheduler and of the operator begin a line of an error.
ERROR_LINE = re.compile(r"\S+ (ERROR|CRITICAL) |\[[^\]]*\] .{20} \[(ERROR|CRITICAL)\b|Traceback ")
NOT_PROBED = "no probe has ended, so the pods that find no room were not created"
SERVED_SECONDS, POLL_SECONDS = 60.0, 0.2
HEAD = "minute   scheduler    operator  API server  longest step  renewals    bound"
Print = Callable[[str], None]


@dataclass(frozen=True)
class _Running:
    """What runs on a control plane during a soak."""

    plane: ControlPlane
    release: product.Product
    processes: dict[str, Process]
    traffic: Traffic
    renewals: Renewals


class _ProbeCounts(msgspec.Struct, frozen=True):
    succeeded: int = 0
    failed: int = 0


class _Probe(msgspec.Struct, frozen=True):
    status: _ProbeCounts = _ProbeCounts()


def measure(sizes: Sizes, say: Print) -> Soak:
    """Run a soak on a control plane that is removed afterwards; `say` gets a line from time to time.

    Raises StartError when the scheduler or the operator does not start, or ends.
    """
    with bench_plane() as plane, Progress("soak") as progress:
        return uvloop.run(_measure(sizes, plane, progress, say))


async def _measure(sizes: Sizes, plane: ControlPlane, progress: Progress, say: Print) -> Soak:
    async with (
        with_nodes(sizes.nodes, plane, progress) as load,
        Api(read_access(plane.load_kubeconfig)) as api,
    ):
        await _build(load, api, sizes, progress)
        progress.update("starting scheduler and operator")
        running = await _start(plane, api, sizes)
        progress.update("running")
        return await _soak(running, load, api, sizes, say)


async def _build(load: Load, api: Api, sizes: Sizes, progress: Progress) -> None:
    """The namespaces, the pods that stand, and the nodes that are probed, whose pods run."""
    for namespace in (STANDING, PENDING, ARRIVING, attack.NAMESPACE):
        await load.create_namespace(namespace)
    progress.update(f"creating {sizes.pods} pods")
    await load.create_pods(STANDING, (objects.standing(index, sizes) for index in range(sizes.pods)))
    for node in range(sizes.probed):
        labels = {"metadata": {"labels": {PROBED_LABEL: "true"}}}
        await api.request("PATCH", f"/api/v1/nodes/{node_name(node)}", labels, MERGE)
        # No probe starts on a node where a pod is about to start.
        for name in objects.standing_on(node, sizes):
            path = f"/api/v1/namespaces/{STANDING}/pods/{name}"
            pod = msgspec.json.decode(await api.request("GET", path), type=Pod)
            patch = status.running(pod, ADDRESSES, time.time(), 0)
            await api.request("PATCH", f"{path}/status", patch, STRATEGIC)


async def _start(plane: ControlPlane, api: Api, sizes: Sizes) -> _Running:
    """Install the chart and start both processes; they lead when this returns. Raises StartError."""
    release = product.install(plane.kubeconfig, plane.directory, {"operator": {"enabled": True}})
    await Load(api).until_served(NODE_PROBES_PATH)  # or the operator's first list is refused and logged
    # The controller that counts for it is off, because it would watch all pods of the cluster.
    await api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/{QUOTA}")
    processes = {
        SCHEDULER: product.start_scheduler(release, dies_with_caller=True),
        OPERATOR: product.start_operator(release, dies_with_caller=True),
    }
    await api.request("POST", NODE_PROBES_PATH, node_probe(NODE_PROBE))
    return _Running(plane, release, processes, Traffic(api, sizes), Renewals())


async def _soak(running: _Running, load: Load, api: Api, sizes: Sizes, say: Print) -> Soak:
    work: list[Coroutine[Any, Any, None]] = [
        running.traffic.run(),
        running.renewals.follow(api),
        _create_pending(load, sizes, running.traffic.probed),
    ]
    if sizes.attackers:
        work.append(attack.attack(load, sizes))
    began = time.monotonic()
    tasks = [asyncio.create_task(each) for each in work]
    try:
        readings = await _observe(running, tasks, sizes, say)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    after = await _scraped_at_last(running)
    soak = await _result(running, api, sizes, readings, after)
    return replace(soak, sent=[each - began for each in running.traffic.sent])


async def _create_pending(load: Load, sizes: Sizes, probed: asyncio.Event) -> None:
    await asyncio.sleep(sizes.pending_from)
    await probed.wait()  # a slow operator has not begun by then
    await load.create_pods(PENDING, (objects.pending(index, sizes) for index in range(sizes.pending)))


async def _observe(
    running: _Running, tasks: list[asyncio.Task[None]], sizes: Sizes, say: Print
) -> list[Reading]:
    """Read at equal intervals. Raises StartError when a process ends, and what one of the tasks raised."""
    began, readings = time.monotonic(), list[Reading]()
    say(HEAD)
    count = max(READINGS, round(sizes.seconds / READING_SECONDS))
    for number in range(count + 1):
        await asyncio.sleep(began + number * sizes.seconds / count - time.monotonic())
        for task in tasks:
            if task.done():
                task.result()
        for name, process in running.processes.items():
            if not process.alive:
                tail = log_tail(running.plane.directory, process.name)
                raise StartError(f"the {name} has ended during the soak\n{tail}")
        readings.append(await _read(running, time.monotonic() - began))
        if number % (count // LINES) == 0:
            say(_line(readings[-1]))
    return readings


async def _read(running: _Running, seconds: float) -> Reading:
    found = await _scraped(running)
    started = {name: process.pid for name, process in running.processes.items()}
    watched = {**started, API_SERVER: running.plane.pids[API_SERVER]}
    every = {**started, **running.plane.pids, BENCH: os.getpid()}
    return Reading(
        seconds,
        {name: memory_mebibytes(pid) for name, pid in watched.items()},
        None if found is None else found.values[scrape.LONGEST_STEP],
        {} if found is None else found.steps,
        len(running.traffic.waits),
        sum(running.renewals.counts().values()),
        {} if found is None else found.times(),
        {name: cpu_seconds(pid) for name, pid in every.items()},
    )


async def _scraped_at_last(running: _Running) -> Scrape:
    """The metrics at the end; without them there is no verdict. Raises StartError when none come."""
    deadline = time.monotonic() + SERVED_SECONDS
    while time.monotonic() < deadline:
        if (found := await _scraped(running)) is not None:
            return found
        await asyncio.sleep(POLL_SECONDS)
    raise StartError(f"the scheduler gave no metrics at the end of the soak, for {SERVED_SECONDS:g} s")


async def _scraped(running: _Running) -> Scrape | None:
    """The scheduler's metrics; None without an answer in time."""
    text = await asyncio.to_thread(product.body, f"{running.release.address}/metrics")
    return scrape.parse(text.decode()) if text else None


async def _result(running: _Running, api: Api, sizes: Sizes, readings: list[Reading], after: Scrape) -> Soak:
    now, traffic = time.monotonic(), running.traffic
    found = await api.request("GET", f"{NODE_PROBES_PATH}/{NODE_PROBE}")
    probes = msgspec.json.decode(found, type=_Probe).status
    directory, started = running.plane.directory, running.processes
    logs = {name: log_path(directory, process.name) for name, process in started.items()}
    return Soak(
        sizes=sizes,
        readings=readings,
        peaks={name: peak_mebibytes(process.pid) for name, process in started.items()},
        renewals=running.renewals.counts(),
        longest_gaps=running.renewals.longest_gaps(time.time()),
        waits=traffic.waits,
        unbound=[now - sent_at for sent_at in traffic.waiting.values()],
        probes={"succeeded": probes.succeeded, "failed": probes.failed},
        errors=[
            *([] if traffic.probed.is_set() else [NOT_PROBED]),
            *(f"{name}: {count}" for name, count in after.defects().items()),
            *(f"request of the bench: {each}" for each in traffic.problems),
            *(f"log of {name}: {line}" for name, log in logs.items() for line in _error_lines(log)),
        ],
    )


def _error_lines(log: Path) -> Iterator[str]:
    with log.open(errors="replace") as lines:
        yield from (line.strip() for line in lines if ERROR_LINE.match(line))


def _line(reading: Reading) -> str:
    memory, step = reading.memory, reading.longest_step
    longest = "no answer" if step is None else f"{step * 1000:.0f} ms"
    columns = "".join(f"{memory[name]:>8.0f} MiB" for name in (SCHEDULER, OPERATOR, API_SERVER))
    return f"{reading.seconds / 60:>6.1f}{columns}{longest:>14}{reading.renewals:>10}{reading.bound:>9}"
