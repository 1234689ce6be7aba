"""How many files a pod runs through, from the watch to the bind, and from its end into the learner.

docs/architecture.md walks through them and quotes the counts: every file of which a function runs, also those
that only find that there is nothing to do. A change that divides a step of the walk is seen here.
"""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web

from eclectus.config.configuration import parse
from eclectus.kubeclient.client import ObjectApi
from eclectus.live.parts import build
from eclectus.model.events import Resumed
from executed_files import executed_files
from pod_objects import PAUSE
from span_collector import collecting

SERIAL = {"first": 1, "second": 2}
ROOT = "scheduler/eclectus/"
BIND_FILES_MOST = 47
COMPLETION_FILES_MOST = 37
CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: eclectus}]
"""
NODE = {
    "metadata": {"name": "n1", "uid": "n1", "resourceVersion": "1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


class Cluster:
    """An API server with one node that answers every write; `pods` become events of the pod watch."""

    def __init__(self):
        self.pods: asyncio.Queue[dict] = asyncio.Queue()
        self.writes: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.writes.append(request.path)
            return web.json_response({}, status=201)
        if "watch" in request.query:
            return await self._watch(request)
        items = [NODE] if request.path == "/api/v1/nodes" else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path != "/api/v1/pods":
            await asyncio.sleep(60)
        while True:
            await response.write(json.dumps(await self.pods.get()).encode() + b"\n")


@asynccontextmanager
async def scheduler(server, cluster: Cluster, tracing: str = ""):
    """The parts of a scheduler that leads, running."""
    server.handle = cluster.handle
    configuration = parse(CONFIGURATION + tracing)
    async with server.context(5.0) as context:
        engine = configuration.engine()
        process, names = configuration.process, frozenset({"eclectus"})
        parts = build(engine, names, process, context, (), lease_api=ObjectApi(context.client))
        work = [parts.outbox.run(), parts.loop.run(), *(each.run() for each in parts.reflectors)]
        tasks = [asyncio.create_task(each) for each in work]
        for reflector in parts.reflectors:
            await reflector.synced.wait()
        parts.inbox.put(Resumed())
        yield engine
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if parts.spans is not None:
            parts.spans.close()


def pod(name: str, version: int, **status) -> dict:
    """An event of the pod watch: the pod as it comes, or as it is on its node with this status."""
    spec = {"schedulerName": "eclectus", "containers": [{**PAUSE, "resources": {"requests": {"cpu": "1"}}}]}
    if status:
        spec["nodeName"] = "n1"
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": str(10 * SERIAL[name] + version),
    }
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "type": "ADDED" if not status else "MODIFIED",
        "object": {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status},
    }


def terminated() -> dict:
    """The status of a pod that has succeeded."""
    times = {"startedAt": "2026-01-01T00:00:02Z", "finishedAt": "2026-01-01T00:00:07Z"}
    state = {"terminated": {**times, "exitCode": 0, "reason": "Completed"}}
    return {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}


async def _walk(server, until) -> tuple[list[str], list[str]]:
    cluster = Cluster()
    async with scheduler(server, cluster) as engine:
        for name in ("first", "second"):  # the second pod is of a known class
            cluster.writes.clear()
            with executed_files(ROOT) as bind:
                await cluster.pods.put(pod(name, 1))
                await until(lambda: any(path.endswith("/events") for path in cluster.writes))
                await until(lambda: not engine.queue_counts().binding)
            await cluster.pods.put(pod(name, 2, phase="Running"))
            await until(lambda: any(task.phase == "Running" for task in engine._state.placed.tasks()))
            with executed_files(ROOT) as completion:
                await cluster.pods.put(pod(name, 3, **terminated()))
                await until(lambda: not any(engine._state.placed.tasks()))
    return bind, completion


def test_a_pod_runs_through_so_many_files(server, until):
    bind, completion = asyncio.run(_walk(server, until))
    assert len(bind) <= BIND_FILES_MOST, bind
    assert len(completion) <= COMPLETION_FILES_MOST, completion
    assert {"live/watch/reflector.py", "engine/scheduling_cycle.py", "live/write/binder.py"} <= set(bind)
    assert "policies/rosella/learn.py" in completion


def test_the_spans_of_a_pod_go_from_its_watch_to_a_collector(server, until):
    async def walk(tracing: str) -> None:
        cluster = Cluster()
        async with scheduler(server, cluster, tracing) as engine:
            await cluster.pods.put(pod("first", 1))
            await until(lambda: any(path.endswith("/events") for path in cluster.writes))
            await until(lambda: not engine.queue_counts().binding)

    with collecting() as collector:
        asyncio.run(walk(f"tracing: {{endpoint: '{collector.url}', sampledRatio: 1}}\n"))
        bind, seen, queue = collector.spans(3)
    assert [each.name for each in (bind, seen, queue)] == ["bind", "pod", "queue"]
    assert {each.key: each.value.string_value for each in seen.attributes}["k8s.pod.name"] == "first"
    assert seen.start_time_unix_nano <= queue.end_time_unix_nano <= bind.start_time_unix_nano
    assert bind.end_time_unix_nano == seen.end_time_unix_nano
