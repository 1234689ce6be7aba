"""Nodes as a fake API server lists and watches them, and a reflector that follows."""

import asyncio
import json
from contextlib import asynccontextmanager

from eclectus.live.inbox import Inbox
from eclectus.live.watch.reflector import Reflector
from eclectus.live.watch.watched_kinds import nodes_kind

NODES = "GET /api/v1/nodes"


def node(name, version="1", cpu="4"):
    """A node as the API server writes it."""
    return {"metadata": {"name": name, "resourceVersion": version}, "status": {"allocatable": {"cpu": cpu}}}


def event(kind, item):
    """A line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode()


@asynccontextmanager
async def running(reflector):
    """Let a reflector run, then cancel it."""
    task = asyncio.create_task(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def following(server, kind=None, now=lambda: 0.0):
    """A reflector of nodes that runs, its inbox and its metrics."""
    inbox = Inbox()
    async with server.context() as context:
        reflector = Reflector(kind or nodes_kind(), context, inbox, now)
        async with running(reflector):
            yield reflector, inbox, context.metrics
