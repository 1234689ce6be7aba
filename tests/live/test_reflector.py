"""List and watch against a server that misbehaves."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from eclectus.kubeclient.client import PAGE_BYTES
from eclectus.live.inbox import Inbox
from eclectus.live.watch import reflector as module
from eclectus.live.watch.watched_kinds import nodes_kind
from eclectus.model.events import NodeGone, NodeSeen, Paused
from watched_nodes import NODES, event, following, node, running


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.3)


class NodeApi:
    """GET /api/v1/nodes: lists from one queue of answers, watches from another."""

    def __init__(self, answers, server, lists, watches):
        self.lists, self.watches, self.hangs = list(lists), list(watches), answers.hangs
        self.watched_from, self.pages, self.limits, self.seconds = [], [], [], []
        server.on(NODES, self.answer)

    async def answer(self, request):
        if "watch" in request.query:
            self.watched_from.append(request.query["resourceVersion"])
            self.seconds.append(request.query["timeoutSeconds"])
            return await (self.watches.pop(0) if self.watches else self.hangs)(request)
        self.pages.append(request.query.get("continue", ""))
        self.limits.append(request.query.get("limit"))
        return await (self.lists.pop(0) if len(self.lists) > 1 else self.lists[0])(request)


@pytest.fixture
def listing(answers):
    def page(*items, version="100", more=""):
        return answers.says({"metadata": {"resourceVersion": version, "continue": more}, "items": items})

    return page


async def received(inbox, count):
    """So many events of nodes; that decisions are paused is no such."""
    events = []
    async with asyncio.timeout(10):
        while len(events) < count:
            events += (each for each in await inbox.take(0.05) if not isinstance(each, Paused))
    return [(type(e), e.name if isinstance(e, NodeGone) else e.node.name) for e in events]


def restarts(metrics):
    return metrics.watch_restarts.labels("nodes").value


def test_a_list_is_read_page_by_page_and_the_watch_starts_where_it_ended(server, answers, listing):
    api = NodeApi(answers, server, [listing(node("a"), more="next"), listing(node("b"))], [])

    async def work():
        async with following(server) as (reflector, inbox, _):
            await reflector.synced.wait()
            return await received(inbox, 2)

    assert asyncio.run(work()) == [(NodeSeen, "a"), (NodeSeen, "b")]
    assert api.pages == ["", "next"]


@pytest.mark.parametrize("where", ["in the stream", "as the answer"])
def test_410_lists_again_and_reports_what_is_gone(server, answers, listing, where, until):
    status = {"kind": "Status", "code": 410, "message": "too old resource version"}
    if where == "in the stream":
        # The event before the error in the same read has happened and must not be lost.
        stale = answers.streams(event("ADDED", node("c", "101")) + b"\n" + event("ERROR", status))
    else:
        stale = answers.says(status, 410)
    again = listing(node("a", "1"), node("c", "101"), version="200")
    api = NodeApi(answers, server, [listing(node("a"), node("b")), again], [stale])

    async def work():
        async with following(server) as (_, inbox, metrics):
            events = await received(inbox, 4)
            await until(lambda: len(api.watched_from) == 2)
            return events, restarts(metrics)

    events, count = asyncio.run(work())
    assert sorted(events[2:], key=str) == sorted([(NodeSeen, "c"), (NodeGone, "b")], key=str)
    assert api.watched_from == ["100", "200"]
    assert count == 1


def test_nothing_is_decided_from_a_410_until_the_new_list_is_complete(server, answers, listing, until):
    """Where etcd was restored, the new list may show pods on nodes that seem free."""
    status = {"kind": "Status", "code": 410, "message": "too old resource version"}
    stale = answers.streams(event("ERROR", status))
    again = listing(node("a"), node("b"), version="200")
    NodeApi(answers, server, [listing(node("a")), again], [stale])

    async def work():
        async with following(server) as (reflector, inbox, _):
            events = list[object]()
            async with asyncio.timeout(10):
                while NodeSeen not in map(type, events[-1:]) or len(events) < 3:
                    events += await inbox.take(0.05)
            await until(lambda: not reflector.is_stale)
            return [type(each) for each in events], reflector.stale_times

    assert asyncio.run(work()) == ([NodeSeen, Paused, NodeSeen], 1)


def test_nodes_are_current_while_a_watch_is_open_that_was_not_refused(server, answers, listing, until):
    """A watch is refused in its own stream, where etcd was restored: not before it is opened."""
    clock, ends = [0.0], asyncio.Event()
    first = answers.streams(event("ADDED", node("b", "105")), then_wait=ends.wait)
    api = NodeApi(answers, server, [listing(node("a"))], [first])

    async def work():
        async with following(server, now=lambda: clock[0]) as (reflector, inbox, _):
            found = [reflector.is_current()]
            await received(inbox, 2)
            found.append(reflector.is_current())
            clock[0] += module.SETTLED_SECONDS
            found.append(reflector.is_current())
            ends.set()
            await until(lambda: len(api.watched_from) == 2)
            return [*found, reflector.is_current()]

    assert asyncio.run(work()) == [False, False, True, False]


def test_a_broken_watch_resumes_from_the_last_version_it_received(server, answers, listing, until):
    first = answers.streams(event("ADDED", node("b", "105")), then_wait=None)
    bookmark = answers.streams(event("BOOKMARK", {"metadata": {"resourceVersion": "110"}}), then_wait=None)
    api = NodeApi(answers, server, [listing(node("a"))], [first, answers.resets, bookmark])

    async def work():
        async with following(server):
            await until(lambda: len(api.watched_from) == 4)

    asyncio.run(work())
    assert api.watched_from == ["100", "105", "105", "110"]
    assert len(api.pages) == 1


def test_a_silent_watch_is_restarted(server, answers, listing, until):
    api = NodeApi(answers, server, [listing(node("a"))], [answers.streams()])

    async def work():
        async with following(server) as (_, _, metrics):
            await until(lambda: len(api.watched_from) == 2)
            return restarts(metrics)

    assert asyncio.run(work()) == 1


def test_a_malformed_object_is_counted_and_skipped(server, answers, listing):
    lines = [event("ADDED", node("bad", "101", cpu={})), event("ADDED", node("good", "102"))]
    NodeApi(answers, server, [listing(node("worse", cpu=[]), node("a"))], [answers.streams(*lines)])

    async def work():
        async with following(server) as (_, inbox, metrics):
            events = await received(inbox, 2)
            return events, metrics.malformed_objects.labels("nodes").value

    assert asyncio.run(work()) == ([(NodeSeen, "a"), (NodeSeen, "good")], 2)


def test_a_throttled_list_waits_as_long_as_the_server_says(server, answers, listing):
    api = NodeApi(answers, server, [answers.says({}, 429, {"Retry-After": "1"}), listing(node("a"))], [])

    async def work():
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with following(server) as (_, inbox, _):
            return await received(inbox, 1), loop.time() - began

    events, took = asyncio.run(work())
    assert events == [(NodeSeen, "a")]
    assert took >= 1.0
    assert api.pages == ["", ""]


OPTIONAL_NODES = replace(nodes_kind(), undefined="install it")
"""A kind that a cluster need not define."""


def test_nothing_waits_for_a_kind_that_is_not_defined_and_it_is_looked_for_again(server, answers, listing):
    missing = answers.says({"message": "the server could not find the requested resource"}, 404)
    api = NodeApi(answers, server, [missing, missing, listing(node("a"))], [])

    async def work():
        async with following(server, OPTIONAL_NODES) as (reflector, inbox, metrics):
            await reflector.synced.wait()
            listed = len(api.pages)
            return listed, await received(inbox, 1), restarts(metrics)

    assert asyncio.run(work()) == (1, [(NodeSeen, "a")], 0)


def test_objects_of_a_kind_that_is_not_defined_for_a_moment_are_not_gone(server, answers, listing, caplog):
    expired = answers.streams(event("ERROR", {"kind": "Status", "code": 410}))
    missing = answers.says({"message": "no such kind"}, 404)
    both = listing(node("a"), node("b"))
    NodeApi(answers, server, [listing(node("a")), missing, both], [expired])

    async def work():
        async with following(server, OPTIONAL_NODES) as (_, inbox, _):
            return await received(inbox, 2)

    assert asyncio.run(work()) == [(NodeSeen, "a"), (NodeSeen, "b")]
    assert "nodes: not defined in this cluster; install it" in caplog.text


def test_a_page_of_too_many_bytes_is_asked_for_again_with_fewer_objects(server, answers):
    """A tenant decides how large its objects are: 500 of them may be more than the memory of a scheduler."""
    nodes, limits = [node(f"n{number}") for number in range(12)], []
    for each in nodes:
        each["metadata"]["annotations"] = {"large": "x" * 2**20}

    async def answer(request):
        if "watch" in request.query:
            return await answers.hangs(request)
        limit, start = int(request.query["limit"]), int(request.query.get("continue", 0))
        limits.append(limit)
        more = str(start + limit) if start + limit < len(nodes) else ""
        page = {"metadata": {"resourceVersion": "1", "continue": more}, "items": nodes[start : start + limit]}
        return await answers.says(page)(request)

    server.on(NODES, answer)

    async def work():
        async with following(server) as (reflector, inbox, _):
            await reflector.synced.wait()
            return await received(inbox, len(nodes))

    assert asyncio.run(work()) == [(NodeSeen, f"n{number}") for number in range(12)]
    assert limits[0] == 500
    assert max(limits[-3:]) * 2**20 <= PAGE_BYTES


# -- run again by a new leader -------------------------------------------------------------------------


@pytest.fixture
def many(monkeypatch):
    """Two nodes are not few."""
    monkeypatch.setattr(module, "FEW_OBJECTS", 1)
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", 0.2)
    monkeypatch.setattr(module, "SILENCE_SECONDS", 30.0)


@asynccontextmanager
async def run_again(server):
    """A reflector and its inbox without the events of its first list, when the second run begins."""
    inbox = Inbox()
    async with server.context() as context:
        reflector = module.Reflector(nodes_kind(), context, inbox, lambda: 0.0)
        async with running(reflector):
            await reflector.synced.wait()
        await inbox.take(0.0)
        reflector.synced.clear()
        async with running(reflector), asyncio.timeout(10):
            yield reflector, inbox


def bookmark(version):
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


@pytest.mark.usefixtures("many")
def test_a_new_leader_watches_on_past_a_consistent_read(server, answers, listing, until):
    """It is synced when what led there is in the inbox, and not before; then it watches as long as ever."""
    more = asyncio.Event()

    async def slowly(request):
        response = await answers.streams(bookmark("119"), then_wait=None)(request)
        await more.wait()
        await response.write(event("ADDED", node("c", "120")) + b"\n" + bookmark("121") + b"\n")
        await answers.hangs(request)

    first = listing(node("a"), node("b"))
    api = NodeApi(answers, server, [first, listing(node("a"), version="120")], [answers.hangs, slowly])

    async def work():
        async with run_again(server) as (reflector, inbox):
            await until(lambda: reflector._store.resource_version == "119")
            assert not reflector.synced.is_set()
            more.set()
            await reflector.synced.wait()
            events = await received(inbox, len(inbox))
            await until(lambda: len(api.watched_from) == 3)
            return events

    assert asyncio.run(work()) == [(NodeSeen, "c")]
    assert api.limits == ["500", "1"]
    assert api.watched_from == ["100", "100", "121"]
    assert api.seconds[1] == "3"
    assert int(api.seconds[2]) >= 300


@pytest.mark.usefixtures("many")
def test_a_new_leader_that_knows_the_newest_version_is_synced_at_once(server, answers, listing, until):
    """What that watch misses is listed, as ever."""
    lists = [listing(node("a"), node("b")), listing(node("a")), listing(version="200")]
    stale = answers.streams(event("ERROR", {"kind": "Status", "code": 410}))
    api = NodeApi(answers, server, lists, [answers.hangs, stale])

    async def work():
        async with run_again(server) as (reflector, _):
            await reflector.synced.wait()
            await until(lambda: len(api.watched_from) == 3)

    asyncio.run(work())
    assert api.limits == ["500", "1", "500"]
    assert api.watched_from == ["100", "100", "200"]
    assert int(api.seconds[1]) >= 300


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "case",
    [
        # The version of the consistent read, its status, and the watch.
        ("120", None, ["streams", bookmark("119")]),
        ("120", None, ["streams", event("ERROR", {"kind": "Status", "code": 410})]),
        ("120", None, ["resets"]),
        ("120", None, ["ends"]),
        ("99", None, ["hangs"]),  # etcd was restored
        ("a1", None, ["hangs"]),
        ("120", 500, ["hangs"]),
    ],
    ids=["silent", "compacted", "reset", "ended", "restored", "no number", "error"],
)
def test_a_new_leader_that_does_not_get_there_lists_again(server, answers, listing, case):
    version, read, watch = case
    name, *lines = watch
    how = {"streams": answers.streams(*lines), "ends": answers.streams(then_wait=None)}
    watch = how.get(name) or getattr(answers, name)
    lists = [listing(node("a"), node("b")), answers.says({}, read) if read else listing(version=version)]
    api = NodeApi(answers, server, [*lists, listing(node("b"), version=version)], [answers.hangs, watch])

    async def work():
        async with run_again(server) as (reflector, inbox):
            await reflector.synced.wait()
            return await received(inbox, len(inbox))

    assert asyncio.run(work()) == [(NodeGone, "a")]
    assert api.limits == ["500", "1", "500"]


def test_a_new_leader_lists_few_objects_again(server, answers, listing):
    api = NodeApi(answers, server, [listing(node("a")), listing(node("a", "2"))], [])

    async def work():
        async with run_again(server) as (reflector, inbox):
            await reflector.synced.wait()
            return await received(inbox, len(inbox))

    assert asyncio.run(work()) == [(NodeSeen, "a")]
    assert api.limits == ["500", "500"]


@pytest.mark.usefixtures("many")
def test_a_new_leader_lists_again_where_a_list_was_not_complete(server, answers, listing, until):
    """A list after a gap is under way: a watch from its version would not show what its later pages do."""
    stale = answers.streams(event("ERROR", {"kind": "Status", "code": 410}))
    first, page = listing(node("a"), node("b")), listing(node("a"), version="200", more="next")
    whole = listing(node("a"), node("b", "150"), version="201")
    api = NodeApi(answers, server, [first, page, answers.hangs, whole], [stale])

    async def work():
        async with server.context() as context:
            reflector = module.Reflector(nodes_kind(), context, Inbox(), lambda: 0.0)
            async with running(reflector):
                await until(lambda: len(api.pages) == 3)
            async with running(reflector):
                await until(lambda: api.watched_from[1:] == ["201"])

    asyncio.run(work())
    assert api.limits == ["500"] * 4
