"""PodGroups as the scheduler watches them, in whichever version of whichever API the cluster serves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from eclectus.live.inbox import Inbox
from eclectus.live.watch import reflector as module
from eclectus.live.watch.reflector import ObjectStore, Reflector, WatchedKind
from eclectus.live.watch.watched_kinds import POD_GROUP_KINDS
from eclectus.model.events import GangGone, GangSeen
from eclectus.model.objects import Gang, GangKey

ALPHA = "GET /apis/scheduling.k8s.io/v1alpha2/podgroups"
BETA = "GET /apis/scheduling.k8s.io/v1beta1/podgroups"
KEY = GangKey("scheduling.k8s.io", "d", "g")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.01, 0.02))


def body(spec: Any) -> Any:
    return {"metadata": {"name": "g", "namespace": "d", "resourceVersion": "7"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "spec", "api"),
    [
        (POD_GROUP_KINDS[0], {"schedulingPolicy": {"gang": {"minCount": 3}}}, "scheduling.k8s.io"),
        (POD_GROUP_KINDS[1], {"minMember": 3}, "scheduling.x-k8s.io"),
    ],
)
def test_a_group_is_seen_and_gone(kind: WatchedKind, spec: Any, api: str) -> None:
    store, key = ObjectStore(kind, pytest.fail), GangKey(api, "d", "g")
    lines = [json.dumps({"type": what, "object": body(spec)}).encode() for what in ("ADDED", "DELETED")]
    assert [store.apply(line, 0.0) for line in lines] == [GangSeen(Gang(key, 3)), GangGone(key)]


def groups(answers: Any) -> Any:
    """A list of one group, whatever is asked."""
    found = body({"schedulingPolicy": {"gang": {"minCount": 3}}})
    return answers.says({"metadata": {"resourceVersion": "100"}, "items": [found]})


def test_the_newest_version_that_is_served_is_taken(server, answers) -> None:
    server.on(ALPHA, groups(answers))
    watched = asyncio.Event()

    async def beta(request: Any) -> Any:
        if "watch" in request.query:
            watched.set()
        return await groups(answers)(request)

    async def work() -> None:
        async with server.context() as context:
            inbox = Inbox()
            reflector = Reflector(POD_GROUP_KINDS[0], context, inbox, lambda: 0.0)
            task = asyncio.create_task(reflector.run())
            async with asyncio.timeout(10):
                await reflector.synced.wait()
                assert await inbox.take(1.0) == [GangSeen(Gang(KEY, 3))]
                # The API server is upgraded: it serves another version.
                del server.answers[ALPHA]
                server.on(BETA, beta)
                await watched.wait()
            task.cancel()

    asyncio.run(work())


def test_a_cluster_without_pod_groups_is_ready_and_warns_of_nothing(server, caplog) -> None:
    async def work() -> None:
        async with server.context() as context:
            tasks = []
            for kind in POD_GROUP_KINDS:
                reflector = Reflector(kind, context, Inbox(), lambda: 0.0)
                tasks.append(asyncio.create_task(reflector.run()))
                async with asyncio.timeout(10):
                    await reflector.synced.wait()
            for task in tasks:
                task.cancel()

    asyncio.run(work())
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []
