"""Plans of DAG jobs are written into their status: the newest, for the present version, under the Lease."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eclectus.api.dag_job import PlanStatus
from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import PlanState
from eclectus.live.write.status_patches import RECORDS_IN_FLIGHT
from eclectus.model.commands import RecordPlan
from eclectus.model.job import JobPlan
from outboxes import outbox_of

PATCH = "PATCH /apis/eclectus.dev/v1alpha1/namespaces/shop/dagjobs/etl/status"


def record(slips=0, uid="job-1"):
    plan = JobPlan((("cpu", 500),), finish_seconds=10.0, deadline=1772366410.0, slips=slips)
    return RecordPlan(uid, "shop", "etl", plan)


@pytest.fixture
def jobs():
    return {"job-1": PlanState("7", None)}


@asynccontextmanager
async def working(server, jobs, holds_lease=lambda: True):
    async with server.context() as context:
        outbox = outbox_of(context, Inbox(), jobs=jobs, holds_lease=holds_lease)
        sending = asyncio.create_task(outbox.run())
        try:
            yield outbox, context.metrics.plan_writes
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


def send(server, jobs, *records, **options):
    """Accept the records in one step; returns how many writes had which result."""

    async def work():
        async with working(server, jobs, **options) as (outbox, counter):
            outbox.accept(records)
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            return counts(counter)

    return asyncio.run(work())


def counts(counter):
    return {result: series.value for (result,), series in counter.series.items()}


def bodies(server):
    return [body for sent, _, body in server.requests if sent == PATCH]


def test_a_plan_is_written_for_the_version_that_was_seen(server, answers, jobs):
    server.on(PATCH, answers.says({}))
    assert send(server, jobs, record()) == {"written": 1}
    (body,) = bodies(server)
    assert body["metadata"] == {"resourceVersion": "7"}
    assert set(body["status"]) == {"plan"}, "the rest of the status is the operator's"
    assert body["status"]["plan"]["deadline"] == "2026-03-01T12:00:10.000000Z"


def test_an_older_plan_of_the_same_job_is_not_written(server, answers, jobs):
    server.on(PATCH, answers.says({}))
    assert send(server, jobs, record(1), record(2), record(3)) == {"written": 1}
    assert [body["status"]["plan"]["slips"] for body in bodies(server)] == [3]


def test_a_plan_that_comes_during_a_write_is_written_after_it(server, answers, jobs):
    async def work():
        async with working(server, jobs) as (outbox, counter):

            async def newer(request):
                outbox.accept([record(2)])
                server.on(PATCH, answers.says({}))
                return await answers.says({})(request)

            server.on(PATCH, newer)
            outbox.accept([record(1)])
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            return counts(counter)

    assert asyncio.run(work()) == {"written": 2}
    assert [body["status"]["plan"]["slips"] for body in bodies(server)] == [1, 2]


def test_after_a_conflict_it_is_made_again_for_the_new_version(server, answers, jobs):
    async def conflict(request):
        jobs["job-1"] = PlanState("8", PlanStatus(share={"memory": "1Gi"}))
        server.on(PATCH, answers.says({}))
        return await answers.says({"message": "modified"}, 409)(request)

    server.on(PATCH, conflict)
    assert send(server, jobs, record()) == {"written": 1}
    assert [body["metadata"]["resourceVersion"] for body in bodies(server)] == ["7", "8"]
    assert bodies(server)[1]["status"]["plan"]["share"] == {"cpu": "500m", "memory": None}


@pytest.mark.parametrize("status", [429, 503])
def test_after_an_outage_it_is_repeated(server, answers, jobs, status):
    server.on(PATCH, answers.says({}, status), answers.resets, answers.says({}))
    assert send(server, jobs, record()) == {"written": 1}
    assert server.count(PATCH) == 3


def test_the_plan_of_a_job_that_is_gone_is_dropped(server, answers, jobs):
    server.on(PATCH, answers.says({"message": "not found"}, 404))
    assert send(server, jobs, record(), record(uid="gone")) == {"gone": 2}
    assert server.count(PATCH) == 1, "a new job of the same name gets no plan of the old one"


def test_a_refusal_is_counted_and_logged_once(server, answers, jobs, caplog):
    server.on(PATCH, answers.says({"message": "dagjobs is forbidden"}, 403))
    jobs["job-2"] = PlanState("1", None)
    assert send(server, jobs, record(), record(uid="job-2")) == {"refused": 2}
    assert server.count(PATCH) == 2
    assert caplog.text.count("plan of DagJob shop/etl not written: dagjobs is forbidden") == 1


def test_nothing_is_written_without_the_lease(server, jobs):
    assert send(server, jobs, record(), holds_lease=lambda: False) == {"failed": 1}
    assert server.requests == []


def test_few_are_in_flight(server, answers, until):
    many = {f"job-{at}": PlanState("1", None) for at in range(20)}
    server.on(PATCH, answers.hangs)

    async def work():
        async with working(server, many) as (outbox, _):
            outbox.accept([record(uid=uid) for uid in many])
            await until(lambda: server.count(PATCH) == RECORDS_IN_FLIGHT)
            for _ in range(20):
                await asyncio.sleep(0)
            return server.count(PATCH)

    assert asyncio.run(work()) == RECORDS_IN_FLIGHT
