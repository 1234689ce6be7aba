"""What is measured of Pools is written into their status, the newest, for the version that was seen.

The writer shares its queue with the plans of DAG jobs (test_plans.py), whose tests cover repeats and limits.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eclectus.api.pool import PoolStatus
from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import PoolState
from eclectus.model.commands import RecordPool
from eclectus.model.pool import PoolRecord
from outboxes import outbox_of

PATCH = "PATCH /apis/eclectus.dev/v1alpha1/pools/research/status"


def record(waiting: int = 0, name: str = "research") -> RecordPool:
    return RecordPool(name, PoolRecord(held=(("cpu", 500),), waiting_pods=waiting))


@pytest.fixture
def pools() -> dict[str, PoolState]:
    return {"research": PoolState("7", PoolStatus(held={"memory": "1Gi"}))}


def send(server: Any, pools: dict[str, PoolState], *records: RecordPool, **options: Any) -> Any:
    """Accept the records in one step; returns how many writes had which result."""

    async def work() -> Any:
        async with server.context() as context:
            outbox = outbox_of(context, Inbox(), pools=pools, **options)
            sending = asyncio.create_task(outbox.run())
            outbox.accept(records)
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            return {result: series.value for (result,), series in context.metrics.pool_writes.series.items()}

    return asyncio.run(work())


def bodies(server: Any) -> list[Any]:
    return [body for sent, _, body in server.requests if sent == PATCH]


def test_it_is_written_for_the_version_that_was_seen(server: Any, answers: Any, pools: Any) -> None:
    server.on(PATCH, answers.says({}))
    assert send(server, pools, record(3)) == {"written": 1}
    (body,) = bodies(server)
    assert body["metadata"] == {"resourceVersion": "7"}
    assert "conditions" not in body["status"], "these are the operator's"
    assert body["status"]["held"] == {"cpu": "500m", "memory": None}
    assert body["status"]["waitingPods"] == 3


def test_only_the_newest_of_a_pool_is_written(server: Any, answers: Any, pools: Any) -> None:
    server.on(PATCH, answers.says({}))
    assert send(server, pools, record(1), record(2)) == {"written": 1}
    assert [body["status"]["waitingPods"] for body in bodies(server)] == [2]


def test_after_a_conflict_it_is_made_again_for_the_new_version(server: Any, answers: Any, pools: Any) -> None:
    async def conflict(request: Any) -> Any:
        pools["research"] = PoolState("8", PoolStatus(held={"pods": "3"}))
        server.on(PATCH, answers.says({}))
        return await answers.says({"message": "modified"}, 409)(request)

    server.on(PATCH, conflict)
    assert send(server, pools, record()) == {"written": 1}
    assert [body["metadata"]["resourceVersion"] for body in bodies(server)] == ["7", "8"]
    assert bodies(server)[1]["status"]["held"] == {"cpu": "500m", "pods": None}


def test_what_is_measured_of_a_pool_that_is_gone_is_dropped(server: Any, pools: Any) -> None:
    assert send(server, pools, record(), record(name="gone")) == {"gone": 2}
    assert server.count(PATCH) == 1


def test_a_refusal_is_counted_and_named(
    server: Any, answers: Any, pools: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.on(PATCH, answers.says({"message": "pools is forbidden"}, 403))
    assert send(server, pools, record()) == {"refused": 1}
    assert "what is measured of Pool research not written: pools is forbidden" in caplog.text


def test_nothing_is_written_without_the_lease(server: Any, pools: Any) -> None:
    assert send(server, pools, record(), holds_lease=lambda: False) == {"failed": 1}
    assert server.requests == []
