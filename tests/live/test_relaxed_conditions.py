"""The condition of pods whose node does not meet all of their preferences."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from eclectus.live.write import relaxed_conditions as module
from eclectus.live.write.relaxed_conditions import IN_FLIGHT, RelaxedConditions, relaxation_patch
from eclectus.model.commands import Bind

PATCH = "PATCH /api/v1/namespaces/d/pods/p/status"
BIND = Bind("u", "d", "p", "n1", "eclectus")


@asynccontextmanager
async def working(server, holds_lease=lambda: True, seconds=10.0):
    async with server.context(seconds) as context:
        conditions = RelaxedConditions(context, holds_lease)
        running = asyncio.create_task(conditions.workers.run())
        try:
            yield conditions
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def write(server, **options):
    async def work():
        async with working(server, **options) as conditions:
            conditions.add(BIND, "disk=ssd (weight 50)")
            async with asyncio.timeout(10):
                await conditions.workers.wait_below(1)

    asyncio.run(work())


def test_the_patch_is_of_one_condition_of_this_pod_alone():
    patch = relaxation_patch(BIND, "disk=ssd (weight 50)", datetime(2026, 1, 1, tzinfo=UTC))
    assert patch == {
        "metadata": {"uid": "u"},
        "status": {
            "conditions": [
                {
                    "type": "eclectus.dev/preferences-met",
                    "status": "False",
                    "reason": "NodeDoesNotMeetThem",
                    "message": "node n1 does not meet: disk=ssd (weight 50)",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    }


def test_it_is_repeated_until_the_server_takes_it(server, answers):
    server.on(PATCH, answers.says({}, 429), answers.resets, answers.says({}, 200))
    write(server)
    assert server.count(PATCH) == 3


def test_a_pod_that_is_gone_needs_none(server, caplog):
    write(server)
    assert server.count(PATCH) == 1
    assert caplog.records == []


def test_a_condition_that_is_refused_is_logged(server, answers, caplog):
    server.on(PATCH, answers.says({"message": "no"}, 403))
    write(server)
    assert server.count(PATCH) == 1
    assert "condition not written" in caplog.text


def test_without_the_lease_nothing_is_written(server):
    write(server, holds_lease=lambda: False)
    assert server.requests == []


def test_beside_binds_one_is_written_at_a_time(server, answers, until):
    server.on(PATCH, answers.hangs)

    async def work():
        async with working(server) as conditions:
            conditions.yield_to_binds(True)
            for _ in range(2 * IN_FLIGHT):
                conditions.add(BIND, "disk=ssd (weight 50)")
            await until(lambda: server.requests)
            beside_binds = server.count(PATCH)
            conditions.yield_to_binds(False)
            await until(lambda: server.count(PATCH) == IN_FLIGHT)
            return beside_binds

    assert asyncio.run(work()) == 1


def test_of_very_many_none_is_queued(server, answers, until, monkeypatch):
    monkeypatch.setattr(module, "WAITING_MOST", 3)
    server.on(PATCH, answers.says({}, 200))

    async def work():
        async with working(server) as conditions:
            for _ in range(9):
                conditions.add(BIND, "disk=ssd (weight 50)")
            await until(lambda: not len(conditions.workers))

    asyncio.run(work())
    assert server.count(PATCH) == 3
