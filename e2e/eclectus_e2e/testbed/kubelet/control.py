"""The control socket of a running fake kubelet: JSON over HTTP on a unix socket that only the user can open.

GET  /state               counters and every node's speed, group, state and number of running pods
GET  /pod-times?since=N   records of pods from index N on
POST /speed               {"nodes": [...] or "group": "...", "speed": 2.0, "class_factors": {...} or null}
POST /freeze /thaw /kill /recover     {"nodes": [...] or "group": "..."}
POST /nodes               {"nodes": [NodeSpec, ...]}
POST /reset               drop pod times and counters
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from eclectus_e2e.errors import E2EError
from eclectus_e2e.testbed.kubelet.agent import Agent
from eclectus_e2e.testbed.kubelet.machine import NodeState
from eclectus_e2e.testbed.kubelet.nodes import NodesFile

_AGENT = web.AppKey("agent", Agent)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NodeSelection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes by name or by group."""

    nodes: list[str] | None = None
    group: str | None = None


class SpeedChange(NodeSelection, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Nodes and their new true speed; `class_factors` null leaves the factors as they are."""

    speed: float
    class_factors: dict[str, float] | None = None


@asynccontextmanager
async def control_socket(agent: Agent, socket: Path) -> AsyncIterator[None]:
    """Serve the control socket within the block."""
    application = web.Application(middlewares=[_errors_as_text])
    application[_AGENT] = agent
    application.add_routes(_ROUTES)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(socket)).start()
        yield
    finally:
        await runner.cleanup()


@web.middleware
async def _errors_as_text(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (E2EError, msgspec.DecodeError, ValueError) as error:
        return web.Response(status=400, text=str(error))


def _json(value: Any = None) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


async def _state(request: web.Request) -> web.Response:
    agent = request.app[_AGENT]
    nodes = {
        machine.name: {
            "group": machine.spec.group,
            "speed": machine.speed,
            "class_factors": machine.class_factors,
            "state": machine.state.value,
            "running": len(machine.info.admitted),
        }
        for machine in agent.machines.values()
    }
    return _json({"counters": agent.pod_times.counters(), "nodes": nodes})


async def _pod_times(request: web.Request) -> web.Response:
    return _json(request.app[_AGENT].pod_times.read(int(request.query.get("since", "0"))))


async def _speed(request: web.Request) -> web.Response:
    agent, change = request.app[_AGENT], msgspec.json.decode(await request.read(), type=SpeedChange)
    agent.set_speed(agent.chosen(change.nodes, change.group), change.speed, change.class_factors)
    return _json()


async def _change_state(request: web.Request) -> web.Response:
    agent, choice = request.app[_AGENT], msgspec.json.decode(await request.read(), type=NodeSelection)
    machines = agent.chosen(choice.nodes, choice.group)
    match request.path:
        case "/freeze":
            agent.stop_nodes(machines, NodeState.FROZEN)
        case "/kill":
            agent.stop_nodes(machines, NodeState.DEAD)
        case "/thaw":
            agent.thaw(machines)
        case "/recover":
            agent.recover(machines)
    return _json()


async def _add(request: web.Request) -> web.Response:
    added = msgspec.json.decode(await request.read(), type=NodesFile)
    await request.app[_AGENT].add(added.nodes)
    return _json()


async def _reset(request: web.Request) -> web.Response:
    request.app[_AGENT].pod_times.reset()
    return _json()


_ROUTES = [
    web.get("/state", _state),
    web.get("/pod-times", _pod_times),
    web.post("/speed", _speed),
    *(web.post(path, _change_state) for path in ("/freeze", "/thaw", "/kill", "/recover")),
    web.post("/nodes", _add),
    web.post("/reset", _reset),
]
