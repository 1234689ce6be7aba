"""Runs graphs: each run has a control plane and a contestant of its own. A graph of one step comes first."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
import uvloop

from eclectus_bench.api_writes import writes
from eclectus_bench.dags.contestants import CONTESTANTS, Contestant
from eclectus_bench.dags.executor import Executor
from eclectus_bench.dags.plan import Sizes, Step
from eclectus_bench.dags.reckoning import Run
from eclectus_bench.dags.writes import of_engine_and_scheduler, of_executor
from eclectus_bench.load import IN_FLIGHT, Load
from eclectus_bench.match import OUTPUT, PLANE, bench_plane
from eclectus_e2e.errors import StartError
from eclectus_e2e.pairs import alternating
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.usage import Reading, cores_of_others, read, spent_seconds

NAMESPACE, WARM = "graphs", "warm"
WARM_STEPS = (Step("only"),)
STALL_SECONDS = 120.0  # without an end of a graph for so long, the contestant counts as failed
SETTLED_SECONDS = 12.0  # without a write for so long, no more are expected: more than Argo waits with events
SUCCEEDED, ENDED = "Succeeded", ("Succeeded", "Failed", "Error")
PLANE_PROCESSES = ("kube-apiserver", "etcd", "kube-controller-manager")
_POLL_SECONDS = 0.1
Say = Callable[[str], None]


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class Status(msgspec.Struct, frozen=True):
    """How far a DagJob or a Workflow is: by its conditions, and by its phase."""

    phase: str = ""
    conditions: list[_Condition] = []

    @property
    def outcome(self) -> str:
        """One of ENDED, or empty while it runs."""
        named = (self.phase, *(each.type for each in self.conditions if each.status == "True"))
        return next((name for name in named if name in ENDED), "")


class _Name(msgspec.Struct, frozen=True):
    name: str


class _Graph(msgspec.Struct, frozen=True):
    metadata: _Name
    status: Status = Status()


def measure(sizes: Sizes, contestants: Sequence[Contestant] = CONTESTANTS) -> Iterator[Run]:
    """All runs, each as soon as it is over; the contestants take turns to begin."""
    for pair, contestant in alternating(contestants, sizes.pairs):
        with Progress(f"dags {pair + 1}, {contestant.name}") as progress:
            yield _measure(contestant, sizes, pair, progress.update)


def _measure(contestant: Contestant, sizes: Sizes, pair: int, say: Say) -> Run:
    say("starting a control plane")
    with (
        bench_plane(PLANE) as plane,
        handle.started(plane.directory, plane.load_kubeconfig, sizes.node_specs()),
    ):
        say("starting the contestant")
        with contestant.running(plane):
            return uvloop.run(_run(contestant, sizes, plane, pair, say))


async def _run(contestant: Contestant, sizes: Sizes, plane: ControlPlane, pair: int, say: Say) -> Run:
    async with Api(read_access(plane.load_kubeconfig)) as api:
        load = Load(api)
        await load.create_namespace(NAMESPACE)
        await load.until_served(contestant.path(NAMESPACE))
        graphs = _Graphs(api, contestant, say)
        helpers = [asyncio.create_task(each) for each in (graphs.follow(), Executor(api, NAMESPACE).run())]
        try:
            await graphs.run({WARM: WARM_STEPS}, helpers)
            await graphs.settled()
            return await _counted(graphs, contestant, sizes, plane, pair=pair, helpers=helpers)
        finally:
            for each in helpers:
                each.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)


async def _counted(
    graphs: "_Graphs",
    contestant: Contestant,
    sizes: Sizes,
    plane: ControlPlane,
    *,
    pair: int,
    helpers: Sequence[asyncio.Task[None]],
) -> Run:
    """Run the graphs; CPU and writes count until no more writes come."""
    names = [f"graph-{number:04d}" for number in range(sizes.graphs)]
    counted, before = writes(await graphs.metrics()), _read(plane)
    await graphs.run(dict.fromkeys(names, sizes.steps), helpers)
    await graphs.settled()
    after, written = _read(plane), writes(await graphs.metrics()) - counted
    spent = partial(spent_seconds, before, after)
    return Run(
        contestant=contestant.name,
        pair=pair,
        steps=len(names) * len(sizes.steps),
        seconds=graphs.seconds(names),
        graph_seconds=graphs.graph_seconds(names),
        writes=of_engine_and_scheduler(written),
        executor_writes=of_executor(written),
        engine_cpu_seconds=spent(contestant.engine),
        scheduler_cpu_seconds=spent(contestant.scheduler),
        plane_cpu_seconds=sum(map(spent, PLANE_PROCESSES)),
        strangers_cores=cores_of_others(before, after),
    )


class _Graphs:
    """The graphs of one run: when each was submitted, and when the bench's watch saw its end."""

    def __init__(self, api: Api, contestant: Contestant, say: Say) -> None:
        self._api, self._contestant, self._say = api, contestant, say
        self._path = contestant.path(NAMESPACE)
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)
        self._sent_at: dict[str, float] = {}
        self._ended_at: dict[str, float] = {}

    async def follow(self) -> None:
        """Watch until cancelled. Raises StartError when a graph fails."""
        async for change in self._api.changes(self._path, _Graph):
            now = time.monotonic()
            for graph in change.items if change.kind != "deleted" else ():
                if (outcome := graph.status.outcome) not in ("", SUCCEEDED):
                    raise StartError(f"{self._contestant.name}: {graph.metadata.name} has ended as {outcome}")
                if outcome:
                    self._ended_at.setdefault(graph.metadata.name, now)

    async def run(self, graphs: Mapping[str, Sequence[Step]], helpers: Sequence[asyncio.Task[None]]) -> None:
        """Submit graphs and wait until all have succeeded. Raises StartError when no more of them end."""
        async with asyncio.TaskGroup() as group:
            for name, steps in graphs.items():
                group.create_task(self._submit(name, steps))
        ended, moved_at = -1, time.monotonic()
        while (now := len(self._ended_at.keys() & graphs.keys())) < len(graphs):
            if now > ended:
                ended, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STALL_SECONDS:
                raise StartError(
                    f"{self._contestant.name}: {ended} of {len(graphs)} graphs have ended, and no more for"
                    f" {STALL_SECONDS:g} s; see {OUTPUT / 'logs'}"
                )
            for helper in helpers:
                if helper.done():
                    helper.result()
            self._say(f"{now} of {len(graphs)} graphs have ended")
            await asyncio.sleep(_POLL_SECONDS)

    async def settled(self) -> None:
        """Wait until the API server has answered no write but those of Leases for SETTLED_SECONDS."""
        count, since = -1, time.monotonic()
        while time.monotonic() - since < SETTLED_SECONDS:
            now = of_engine_and_scheduler(writes(await self.metrics()))
            if (total := sum(now.values())) != count:
                count, since = total, time.monotonic()
            await asyncio.sleep(1.0)

    async def metrics(self) -> str:
        """The API server's metrics."""
        return (await self._api.request("GET", "/metrics")).decode()

    def seconds(self, names: Sequence[str]) -> float:
        """From the first submission to the last end."""
        return max(self._ended_at[name] for name in names) - min(self._sent_at[name] for name in names)

    def graph_seconds(self, names: Sequence[str]) -> float:
        """Mean, from the submission of a graph to its end."""
        return sum(self._ended_at[name] - self._sent_at[name] for name in names) / len(names)

    async def _submit(self, name: str, steps: Sequence[Step]) -> None:
        async with self._in_flight:
            self._sent_at[name] = time.monotonic()
            await self._api.request("POST", self._path, self._contestant.make(name, steps))


def _read(plane: ControlPlane) -> Reading:
    pids = {each.name: each.pid for each in processes.recorded(plane.directory)}
    return read(pids | {"bench": os.getpid()})
