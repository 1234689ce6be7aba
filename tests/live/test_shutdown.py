"""The Lease is free only when no bind is under way any more: after SIGTERM none is committed without it."""

import asyncio
import logging
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiohttp import web

from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.leadership import Leadership
from eclectus.live import scheduler_process
from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import ConditionState
from eclectus.live.write import binder as binding
from eclectus.model.commands import Bind, Evict
from fake_api import FakeApi
from outboxes import IN_FLIGHT, outbox_of

TIMES = ElectionSettings("one", "eclectus", lease_duration=15, renew_deadline=10, retry_period=0.1)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/one/leases/eclectus"
POD = "/api/v1/namespaces/d/pods/p"
BIND = Bind("u", "d", "p", "n", "eclectus")
EVICT = Evict("u", "d", "p", "n", "eclectus", preemptor="v", preemptor_namespace="d", preemptor_name="q")
EVENTS = "POST /apis/events.k8s.io/v1/namespaces/d/events"
UNBOUND = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {}}


class Leader:
    """A leader with an outbox on a fake API server; the Lease is in another one, which never fails."""

    def __init__(self, context, request_seconds):
        self.api, self._seconds = FakeApi(), request_seconds
        self.leadership = Leadership(self.api, "me", TIMES, Random(1), [])
        holds_lease = self.leadership.holds_lease
        waiting = {"v": ConditionState("1", 1, is_false=True)}
        self.outbox = outbox_of(
            context, Inbox(), holds_lease=holds_lease, bind_seconds=request_seconds, states=waiting
        )

    @property
    def holder(self):
        return self.api.objects[LEASE]["spec"]["holderIdentity"]

    async def release(self):
        loop_end = asyncio.create_task(asyncio.sleep(0))
        if await scheduler_process.release(loop_end, self.outbox, self.leadership, self._seconds):
            await self.leadership.resign()


@asynccontextmanager
async def leading(server, request_seconds=20.0):
    async with server.context(seconds=request_seconds) as context:
        leader = Leader(context, request_seconds)
        tasks = [asyncio.create_task(work) for work in (leader.leadership.run(), leader.outbox.run())]
        try:
            async with asyncio.timeout(10):
                await leader.leadership.leading.wait()
            yield leader
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(scheduler_process, "DRAIN_SECONDS", 0.05)
    for module in (scheduler_process, binding):
        monkeypatch.setattr(module, "MARGIN_SECONDS", 0.5)


def writes_late(leader, until, holders):
    """An answer that comes when the process writes nothing more; notes who holds the Lease then."""

    async def answer(_):
        await until(lambda: not leader.leadership.holds_lease())
        holders.append(leader.holder)
        return web.json_response({}, status=201)

    return answer


def test_no_slow_bind_is_committed_after_the_lease_is_free(server, answers, until):
    holders = []

    async def work():
        async with leading(server) as leader:
            server.on(f"POST {POD}/binding", writes_late(leader, until, holders))
            server.on(EVENTS, answers.says({}, 201))
            leader.outbox.accept([BIND] * 3 * IN_FLIGHT)
            await until(lambda: server.count(f"POST {POD}/binding") == IN_FLIGHT)
            await leader.release()
            return leader.holder

    assert asyncio.run(work()) == ""
    assert holders == ["me"] * IN_FLIGHT
    assert server.count(f"POST {POD}/binding") == IN_FLIGHT, "none is sent any more"


def test_no_slow_eviction_arrives_after_the_lease_is_free(server, answers, until):
    holders = []

    async def work():
        async with leading(server) as leader:
            server.on(f"PATCH {POD}/status", answers.says({}))
            server.on(f"DELETE {POD}", writes_late(leader, until, holders))
            server.on(EVENTS, answers.says({}, 201))
            leader.outbox.accept([EVICT])
            await until(lambda: server.count(f"DELETE {POD}") == 1)
            await leader.release()
            return leader.holder

    assert asyncio.run(work()) == ""
    assert holders == ["me"]


def test_a_lost_answer_is_settled_before_the_lease_is_free(server, answers, until):
    holders, reads = [], answers.says(UNBOUND)

    async def work():
        async with leading(server, request_seconds=0.3) as leader:

            async def read(request):
                holders.append(leader.holder)
                return await reads(request)

            server.on(f"POST {POD}/binding", answers.hangs)
            server.on(f"GET {POD}", read)
            leader.outbox.accept([BIND])
            await until(lambda: server.count(f"POST {POD}/binding") == 1)
            await leader.release()
            return leader.holder

    assert asyncio.run(work()) == ""
    assert set(holders) == {"me"}


def test_the_lease_is_kept_while_the_end_of_a_bind_is_not_known(server, answers, until, caplog):
    async def work():
        async with leading(server, request_seconds=0.3) as leader:
            server.on(f"POST {POD}/binding", answers.hangs)
            server.on(f"GET {POD}", answers.resets)
            leader.outbox.accept([BIND])
            await until(lambda: server.count(f"POST {POD}/binding") == 1)
            await leader.release()
            return leader.holder, leader.leadership.holds_lease()

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(work()) == ("me", False)
    assert "keeping the lease until it expires" in caplog.text


def test_events_that_wait_do_not_keep_the_lease(server, answers, until):
    async def work():
        async with leading(server) as leader:
            server.on(f"POST {POD}/binding", answers.says({}, 201))
            server.on(EVENTS, answers.hangs)
            leader.outbox.accept([BIND])
            await until(lambda: server.count(EVENTS) == 1)
            await leader.release()
            return leader.holder

    assert asyncio.run(work()) == ""
