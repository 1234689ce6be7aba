"""List and watch against a server that fails at random: what was reported in the end is the truth."""

import asyncio
from collections import Counter
from random import Random

import pytest
from aiohttp import web

from eclectus.live.watch import reflector as module
from eclectus.model.events import NodeGone, Paused
from watched_nodes import NODES, event, following, node

FAILING = 0.25  # of the requests
CUT = 0.02  # of the lines of a watch
PAGE = 7  # nodes


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.005, 0.02))
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(module, "LIST_SECONDS", 0.2)


class FaultyApi:
    """Nodes that change at random; requests fail while `fails` is set."""

    def __init__(self, server, answers, seed):
        self.rng, self.fails, self.faults = Random(seed), True, Counter()
        self.nodes, self._history, self._oldest = {}, [], 0
        self._lists, self._changed = {}, asyncio.Condition()
        self._answers = {
            "429": answers.says({}, 429, {"Retry-After": "0"}),
            "500": answers.says({}, 500),
            "403": answers.says({}, 403),
            "410": answers.says({}, 410),
            "no JSON": answers.says("proxy"),
            "reset": answers.resets,
            "hang": answers.hangs,
        }
        server.on(NODES, self._answer)

    async def change(self):
        """A node is added, changed or deleted."""
        version, name = len(self._history) + 1, f"n{self.rng.randrange(20)}"
        known, item = name in self.nodes, node(name, str(version), cpu=str(version))
        if known and self.rng.random() < 0.4:
            del self.nodes[name]
            kind = "DELETED"
        else:
            self.nodes[name] = item
            kind = "MODIFIED" if known else "ADDED"
        self._history.append((version, event(kind, item)))
        if self.rng.random() < 0.05:
            self._oldest = version - self.rng.randrange(10)
        async with self._changed:
            self._changed.notify_all()

    def has_failed_enough(self):
        return len(self.faults) >= 5 and self.faults.total() >= 10

    def truth(self):
        """Cores of each node, in thousandths."""
        return {name: 1000 * int(each["status"]["allocatable"]["cpu"]) for name, each in self.nodes.items()}

    async def _answer(self, request):
        if self._draw(FAILING):
            kind = self.rng.choice(list(self._answers))
            self.faults[kind] += 1
            return await self._answers[kind](request)
        return await (self._watch if "watch" in request.query else self._list)(request)

    def _draw(self, share):
        return self.fails and self.rng.random() < share

    async def _list(self, request):
        """A page of the nodes as they were when the list began."""
        version, _, begin = request.query.get("continue", f"{len(self._history)}:0").partition(":")
        items = self._lists.setdefault(version, [self.nodes[name] for name in sorted(self.nodes)])
        end = int(begin) + PAGE
        more = f"{version}:{end}" if end < len(items) else ""
        metadata = {"resourceVersion": version, "continue": more}
        return web.json_response({"metadata": metadata, "items": items[int(begin) : end]})

    async def _watch(self, request):
        response, at = web.StreamResponse(), int(request.query["resourceVersion"])
        await response.prepare(request)
        if at < self._oldest:
            self.faults["expired"] += 1
            await response.write(event("ERROR", {"kind": "Status", "code": 410}) + b"\n")
            return response
        while True:
            for version, line in self._history[at:]:
                if self._draw(CUT):
                    self.faults["cut"] += 1
                    await response.write(line[: len(line) // 2])
                    request.transport.abort()
                    return response
                if self._draw(CUT):
                    self.faults["bad line"] += 1
                    await response.write(b'{"type":"ADDED","obj\n')
                await response.write(line + b"\n")
                at = version
            async with self._changed:
                await self._changed.wait()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_after_any_faults_the_reported_nodes_are_those_that_exist(server, answers, seed):
    api, reported = FaultyApi(server, answers, seed), {}

    async def take(inbox):
        for each in await inbox.take(0.01):
            if isinstance(each, Paused):
                continue
            if isinstance(each, NodeGone):
                del reported[each.name]
            else:
                reported[each.node.name] = dict(each.node.allocatable)["cpu"]

    async def work():
        async with following(server) as (_, inbox, _):
            changes = 0
            async with asyncio.timeout(60):
                while changes < 300 or not api.has_failed_enough():
                    await api.change()
                    await take(inbox)
                    changes += 1
            api.fails = False
            async with asyncio.timeout(20):
                while reported != api.truth():
                    await take(inbox)

    asyncio.run(work())
