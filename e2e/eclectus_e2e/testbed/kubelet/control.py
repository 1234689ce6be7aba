"""The control socket of a running fake kubelet: JSON over HTTP on a unix socket of the user's own.

GET  /state               counters and every node's speed, group, state and number of running pods
GET  /journal?since=N     entries from index N on
POST /speed               {"nodes": [...] or "group": "...", "speed": 2.0, "class_factors": {...} or null}
POST /freeze /thaw /kill /recover     {"nodes": [...] or "group": "..."}
POST /nodes               {"nodes": [NodeSpec, ...]}
POST /reset               forget journal and counters
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


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which nodes, by name or by group."""

    nodes: list[str] | None = None
    group: str | None = None


class SpeedChange(Choice, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which nodes, and their new true speed; null leaves what multiplies it for some classes as it is."""

    speed: float
    class_factors: dict[str, float] | None = None


@asynccontextmanager
async def serving(agent: Agent, socket: Path) -> AsyncIterator[None]:
    """Serve the control socket for the length of the block."""
    application = web.Application(middlewares=[_told_in_words])
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
async def _told_in_words(request: web.Request, handler: Handler) -> web.StreamResponse:
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
            "running": len(machine.room.residents),
        }
        for machine in agent.machines.values()
    }
    return _json({"counters": agent.journal.counters(), "nodes": nodes})


async def _journal(request: web.Request) -> web.Response:
    return _json(request.app[_AGENT].journal.read(int(request.query.get("since", "0"))))


async def _speed(request: web.Request) -> web.Response:
    agent, change = request.app[_AGENT], msgspec.json.decode(await request.read(), type=SpeedChange)
    agent.set_speed(agent.chosen(change.nodes, change.group), change.speed, change.class_factors)
    return _json()


async def _verb(request: web.Request) -> web.Response:
    agent, choice = request.app[_AGENT], msgspec.json.decode(await request.read(), type=Choice)
    machines = agent.chosen(choice.nodes, choice.group)
    match request.path:
        case "/freeze":
            agent.stop(machines, NodeState.FROZEN)
        case "/kill":
            agent.stop(machines, NodeState.DEAD)
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
    request.app[_AGENT].journal.reset()
    return _json()


_ROUTES = [
    web.get("/state", _state),
    web.get("/journal", _journal),
    web.post("/speed", _speed),
    *(web.post(path, _verb) for path in ("/freeze", "/thaw", "/kill", "/recover")),
    web.post("/nodes", _add),
    web.post("/reset", _reset),
]
