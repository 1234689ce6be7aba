"""An eviction is two writes, and each is sent only while this process holds the Lease."""

import asyncio

import pytest
from aiohttp import web

from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import ConditionState
from eclectus.model.commands import Bind, Evict
from eclectus.model.events import EvictRefused
from outboxes import outbox_of

POD = "/api/v1/namespaces/d/pods/p"
MARK, DELETE = f"PATCH {POD}/status", f"DELETE {POD}"
BIND = "POST /api/v1/namespaces/d/pods/q/binding"
EVICT = Evict("u", "d", "p", "n", "eclectus", preemptor="v", preemptor_namespace="d", preemptor_name="q")


@pytest.fixture
def evict(server, answers):
    """Evict one pod; returns the events.

    `lose_after` is the request with which the Lease is lost, `placed_after` the one with which the pod that
    is to get the room is bound, `bound_in_step_after` that with which a step binds it.
    """

    def run(lose_after="", marked=200, placed_after="", bound_in_step_after=""):
        leads, states, outboxes = [True], {"v": ConditionState("1", 1, is_false=True)}, []

        def answer(request, status):
            async def respond(_):
                leads[0] = leads[0] and request != lose_after
                if request == placed_after:
                    states.pop("v", None)
                if request == bound_in_step_after:
                    outboxes[0].accept([Bind("v", "d", "q", "n", "eclectus")])
                return web.json_response({}, status=status)

            return respond

        async def work():
            async with server.context() as context:
                inbox = Inbox()
                outbox = outbox_of(context, inbox, holds_lease=lambda: leads[0], states=states)
                outboxes.append(outbox)
                server.on(BIND, answers.says({}, 201))
                server.on(MARK, answer(MARK, marked), answer(MARK, 200))
                server.on(DELETE, answer(DELETE, 200))
                server.on("POST /apis/events.k8s.io/v1/namespaces/d/events", answers.says({}, 201))
                sending = asyncio.create_task(outbox.run())
                outbox.accept([EVICT])
                async with asyncio.timeout(10):
                    for _ in range(2):  # a bind that is accepted meanwhile is sent, too
                        await outbox.wait_until_empty()
                sending.cancel()
                return await inbox.take(0.0)

        return asyncio.run(work())

    return run


def test_a_pod_is_marked_then_deleted(server, evict):
    assert evict() == []
    assert [what for what, _, _ in server.requests][:2] == [MARK, DELETE]


def test_it_is_not_deleted_once_the_lease_is_lost(server, evict):
    (event,) = evict(lose_after=MARK)
    assert isinstance(event, EvictRefused)
    assert "no longer holds the Lease" in event.reason
    assert server.count(DELETE) == 0


def test_neither_is_repeated_once_the_lease_is_lost(server, evict):
    (event,) = evict(lose_after=MARK, marked=503)
    assert isinstance(event, EvictRefused)
    assert (server.count(MARK), server.count(DELETE)) == (1, 0)


@pytest.mark.parametrize(("marked", "marks"), [(200, 1), (503, 1)], ids=["deletion", "repetition"])
def test_nothing_more_is_written_once_the_pod_has_found_room_elsewhere(server, evict, marked, marks):
    (event,) = evict(placed_after=MARK, marked=marked)
    assert (event.uid, event.reason) == ("u", "the pod that needs the room waits no more")
    assert (server.count(MARK), server.count(DELETE)) == (marks, 0)


def test_nothing_more_is_written_once_a_step_binds_the_pod_though_the_bind_is_under_way(server, evict):
    (refused,) = (each for each in evict(bound_in_step_after=MARK) if isinstance(each, EvictRefused))
    assert (refused.uid, refused.reason) == ("u", "the pod that needs the room waits no more")
    assert (server.count(MARK), server.count(DELETE), server.count(BIND)) == (1, 0, 1)


def test_a_mark_that_failed_is_repeated_before_the_pod_is_deleted(server, evict):
    assert evict(marked=503) == []
    requests = [what for what, _, _ in server.requests]
    marks = requests[: requests.index(DELETE)]
    assert len(marks) > 1
    assert set(marks) == {MARK}
