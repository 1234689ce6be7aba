"""An API server as the page of `eclectus ui` asks it: lists of any length, explanations, a DAG job."""

from __future__ import annotations

from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from eclectus.api.names import API_VERSION, DAG_JOB_LABEL, DAG_JOBS, STAGE_LABEL, VISIBILITY_API
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.live.lists import NODE_SPEED, PENDING_POD, POOL_STANDING
from eclectus.model import explanation as said
from eclectus.model.learned import LearnedNode, LearnedWork

VISIBILITY, DAG = f"/apis/{VISIBILITY_API}", f"/apis/{API_VERSION}"
HOSTILE = "<img src=x onerror=alert(1)>"  # what a tenant may write into a message


def status(code, message, headers=None):
    return web.json_response(
        {"kind": "Status", "message": message, "code": code}, status=code, headers=headers
    )


def pending(at):
    return said.PendingPod(
        namespace="shop",
        name=f"web-{at:05d}",
        uid=f"u{at}",
        scheduler_name="eclectus",
        state="unschedulable" if at % 3 else "heldBack",
        reason=f"0/3 nodes are available: {HOSTILE}"
        if at == 0
        else "0/3 nodes are available: 3 Insufficient cpu.",
        priority=at % 2,
        created=1e9 + at,
        age=9000.0 - at,
        since=30.0,
        ahead=at,
        group="research" if at % 5 == 0 else "",
    )


def speed_of(at):
    work = LearnedWork(f"shop/kind-{at % 3}", 0.1, 12, 0.7)
    learned = () if at % 10 == 9 else (work,)
    speed = 0.25 + (at % 8) / 4
    return LearnedNode(f"node-{at:05d}", 1, 0.0, "live" if learned else "unknown", speed, 0.8, learned)


def resource(name, held, share, least=0, most=None):
    return said.PoolResource(name, held, held, share, least, most)


GI = 2**30
POOLS = (
    said.PoolStanding(
        "research", (resource("cpu", 60_000, 64_000, 16_000), resource("memory", 90 * GI, 128 * GI))
    ),
    said.PoolStanding("research/night", (resource("cpu", 52_000, 32_000, 0, 60_000),), running_jobs=4),
    said.PoolStanding(
        "research/vision", (resource("cpu", 8_000, 32_000, 16_000),), 12, 1, below_minimum=75.0
    ),
    said.PoolStanding("shop", (resource("cpu", 20_000, 36_000),), 3),
)

STAGES = [("read", [], 4), ("left", ["read"], 2), ("right", ["read"], 3), ("sum", ["left", "right"], 1)]


def dag_job(now="2026-03-01T12:05:00Z", deadline="2026-03-01T12:12:00Z", name="diamond"):
    at = "2026-03-01T12:00:00Z"
    template = {"spec": {"containers": [{"name": "main", "image": "work"}]}}
    stages = [
        {"name": n, "dependsOn": after, "tasks": tasks, "template": template} for n, after, tasks in STAGES
    ]
    counts = {"read": {"succeeded": 4}, "left": {"running": 2}, "right": {"running": 1, "waiting": 2}}
    of_stages = [
        {"name": n, "estimateSeconds": 90.0, "estimateSource": "declared", **counts.get(n, {"waiting": 1})}
        for n, _, _ in STAGES
    ]
    plan = {"share": {"cpu": "4"}, "lent": {"cpu": "1500m"}, "borrowed": {}, "finishSeconds": 200.0}
    plan |= {"deadline": deadline, "lentSeconds": {"cpu": 310.0}, "borrowedSeconds": {"cpu": 42.0}}
    ready = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": at}
    return {
        "apiVersion": API_VERSION,
        "kind": "DagJob",
        "metadata": {"namespace": "shop", "name": name, "uid": "j1", "creationTimestamp": at},
        "spec": {"stages": stages},
        "status": {"conditions": [ready], "startTime": at, "stages": of_stages, "plan": plan},
    }


def task_pod(stage, name, start="2026-03-01T12:01:00Z", end=None, node="node-00001"):
    terminated = [{"state": {"terminated": {"finishedAt": end}}}] if end else []
    return {
        "metadata": {
            "namespace": "shop",
            "name": name,
            "labels": {STAGE_LABEL: stage, DAG_JOB_LABEL: "diamond"},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": "Succeeded" if end else "Running",
            "containerStatuses": terminated,
            **({"startTime": start} if start else {}),
        },
    }


class VisibilityServer:
    """What it answers may be changed; `refusal` is answered to everything, where it is not None.

    `busy`: Retry-After of the answers 429 to what-if before the first other one.
    """

    def __init__(self, pods=3, nodes=3):
        self.pods = [pending(at) for at in range(pods)]
        self.nodes = [speed_of(at) for at in range(nodes)]
        self.jobs = [dag_job()]
        self.task_pods = [
            task_pod("read", "read-0", end="2026-03-01T12:02:30Z"),
            task_pod("left", "left-0", "2026-03-01T12:02:40Z"),
        ]
        self.more_pods = ""
        self.refusal, self.busy = None, []
        self.asked = []  # (path, query)

    async def handle(self, request):
        self.asked.append((request.path, dict(request.query)))
        if self.refusal is not None:
            return status(*self.refusal)
        path = request.path
        if path.endswith(("/explanation", "/what-if")):
            return self.explained(request)
        if path.startswith(VISIBILITY):
            return self.listed(request)
        if path.startswith(DAG):
            return self.of_jobs(path)
        if self.task_pods is None:
            return status(403, 'pods is forbidden: User "anna" cannot list resource "pods"')
        return web.json_response({"metadata": {"continue": self.more_pods}, "items": self.task_pods})

    def listed(self, request):
        lists = {
            "pendingpods": (
                PENDING_POD,
                self.pods,
                lambda pod: said.Oldest(pod.created, pod.namespace, pod.name),
            ),
            "nodespeeds": (NODE_SPEED, self.nodes, lambda node: node.node),
            "poolstandings": (POOL_STANDING, list(POOLS), lambda pool: pool.path),
        }
        name = request.path.rpartition("/")[2]
        if name not in lists or (name == "pendingpods" and "/namespaces/others/" in request.path):
            return status(403, f'{name} is forbidden: User "anna" cannot list resource "{name}"')
        kind, items, key = lists[name]
        asked = kind.asked(request.query, "application/json")
        left = [each for each in items if asked.after is None or key(each) > asked.after]
        shown, rest = left[: asked.limit], len(left) - asked.limit
        page = said.Listed(tuple(shown), max(rest, 0), key(shown[-1]) if shown else None)
        return web.Response(body=kind.page(page, is_table=False), content_type="application/json")

    def explained(self, request):
        _, _, kind, name, _ = request.path.rsplit("/", 4)
        if name == "none":
            return status(404, f'{kind} "{name}" not found')
        found = {
            "pods": said.PodExplanation(
                namespace="shop", name=name, state="unschedulable", summary=f"no room {HOSTILE}"
            ),
            "jobs": said.JobExplanation(namespace="shop", name=name, known=True, summary="3 pods wait"),
            "nodes": said.NodeExplanation(
                name=name,
                conditions=("takesPods",),
                summary="takes pods",
                resources=(
                    said.ResourceUse("cpu", 8000, 5500, 0, 500),
                    said.ResourceUse("memory", 32 * GI, 12 * GI),
                ),
                pods=(said.OtherPod("shop", "api-0", 5),),
                pod_count=1,
            ),
        }[kind]
        if request.path.endswith("/what-if") and self.busy:
            return status(429, "too many: ask again later", {"Retry-After": str(self.busy.pop(0))})
        if request.path.endswith("/what-if"):
            answer = said.PolicyAnswer("place/least-allocated", "places", "node-00002")
            changes = tuple(request.query.getall("whatIf", []))
            found = said.WhatIfExplanation(
                changes=changes,
                summary="it would be placed on node node-00002",
                with_room_before=0,
                with_room=1,
                rules=(),
                placement=answer,
                pod=found,
            )
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    def of_jobs(self, path):
        if path.endswith(f"/{DAG_JOBS}"):
            return web.json_response({"metadata": {}, "items": self.jobs})
        name = path.rpartition("/")[2]
        found = [each for each in self.jobs if each["metadata"]["name"] == name]
        return web.json_response(found[0]) if found else status(404, f'{DAG_JOBS} "{name}" not found')

    @asynccontextmanager
    async def client(self):
        """A client of it, on the loop of the caller."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self.stop = runner.cleanup
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with connected(Credentials(Endpoint(url)), 5.0) as client:
                yield client
        finally:
            await runner.cleanup()
