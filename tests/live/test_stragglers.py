"""Pods that are late are marked: a condition for the present version, under the Lease."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import StragglerState, WatchedPods
from eclectus.live.write.status_patches import straggling_patch
from eclectus.model.commands import MarkStraggling
from outboxes import outbox_of
from pod_objects import raw

PATCH = "PATCH /api/v1/namespaces/shop/pods/web-0/status"
EVENT = "POST /apis/events.k8s.io/v1/namespaces/shop/events"


def mark(message="expected to need 30 s more", *, is_straggling=True, uid="uid-1"):
    reason = "ExpectedToEndLate" if is_straggling else "NoLongerLate"
    return MarkStraggling(uid, "shop", "web-0", "eclectus", is_straggling, reason, message)


@asynccontextmanager
async def working(server, **options):
    async with server.context() as context:
        outbox = outbox_of(context, Inbox(), **options)
        sending = asyncio.create_task(outbox.run())
        try:
            yield outbox, context.metrics.straggler_writes
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


def send(server, answers, *marks, states=None, **options):
    """Accept the marks in one step; returns how many writes had which result."""
    server.on(EVENT, answers.says({}))
    states = {"uid-1": StragglerState("7", is_straggling=False)} if states is None else states

    async def work():
        async with working(server, stragglers=states, **options) as (outbox, counter):
            outbox.accept(marks)
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            return {result: series.value for (result,), series in counter.series.items()}

    return asyncio.run(work())


def bodies(server, request=PATCH):
    return [body for sent, _, body in server.requests if sent == request]


def test_a_mark_is_a_condition_for_the_version_that_was_seen_and_an_event(server, answers):
    server.on(PATCH, answers.says({}))
    assert send(server, answers, mark()) == {"written": 1}
    (body,) = bodies(server)
    assert body["metadata"] == {"uid": "uid-1", "resourceVersion": "7"}
    (condition,) = body["status"]["conditions"]
    assert condition["type"] == "eclectus.dev/Straggling"
    assert (condition["status"], condition["reason"]) == ("True", "ExpectedToEndLate")
    (event,) = bodies(server, EVENT)
    assert (event["reason"], event["note"]) == ("ExpectedToEndLate", "expected to need 30 s more")


def test_only_the_newest_mark_of_a_pod_is_written(server, answers):
    server.on(PATCH, answers.says({}))
    assert send(server, answers, mark(), mark(is_straggling=False)) == {"written": 1}
    (body,) = bodies(server)
    assert body["status"]["conditions"][0]["status"] == "False"


def test_a_pod_that_has_ended_gets_no_mark(server, answers):
    assert send(server, answers, mark(), states={}) == {"gone": 1}
    assert bodies(server) == []


def test_nothing_is_written_without_the_lease(server, answers):
    assert send(server, answers, mark(), holds_lease=lambda: False) == {"failed": 1}
    assert bodies(server) == []


def test_a_mark_that_is_refused_is_counted(server, answers):
    server.on(PATCH, answers.says({"kind": "Status", "code": 403}, status=403))
    assert send(server, answers, mark()) == {"refused": 1}


@pytest.mark.parametrize("was", [True, False])
def test_the_time_of_a_mark_is_when_its_status_changed(was):
    body = straggling_patch(mark(), StragglerState("7", was), datetime(2026, 3, 1, tzinfo=UTC))
    (condition,) = body["status"]["conditions"]
    assert ("lastTransitionTime" in condition) == (not was)


def test_the_version_is_known_of_pods_of_ours_on_nodes_that_may_have_copies():
    pods = WatchedPods(lambda name: name == "eclectus")
    ours = {"schedulerName": "eclectus", "nodeName": "n1"}
    labels = {"eclectus.dev/speculative": "true"}

    def seen(spec, labels=labels, **fields):
        pods.observe(raw(spec, labels=labels, resourceVersion="9", **fields), 0.0)
        return pods.straggler_states.get("uid-1")

    assert seen(ours) == StragglerState("9", is_straggling=False)
    late = {"conditions": [{"type": "eclectus.dev/Straggling", "status": "True"}]}
    assert seen(ours, status=late) == StragglerState("9", is_straggling=True)
    assert seen(ours, status={"phase": "Succeeded"}) is None
    assert seen(ours | {"schedulerName": "other"}) is None
    assert seen(ours, labels={}) is None
    seen(ours)
    pods.gone("uid-1")
    assert pods.straggler_states == {}
