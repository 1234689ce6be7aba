"""Commands out, answers in, and words that never stand in a bind's way."""

import asyncio
from contextlib import asynccontextmanager

from eclectus.config.shell import ClientConnection
from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched import Standing
from eclectus.live.write.binder import Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import Recorder
from eclectus.live.write.outbox import Outbox
from eclectus.model.commands import Bind, Fault, Report
from eclectus.model.events import BindConfirmed

PATH = "/api/v1/namespaces/d/pods/p"
EVENTS = "POST /apis/events.k8s.io/v1/namespaces/d/events"
BIND = Bind("u", "d", "p", "n1", "eclectus")
CONNECTION = ClientConnection()
STANDING = {"u": Standing("7", 1, refused=False)}


def report(message="no room", reason="Unschedulable"):
    return Report("u", "d", "p", "eclectus", reason, message)


@asynccontextmanager
async def working(server, standing=None, connection=CONNECTION):
    known = STANDING if standing is None else standing
    async with server.means() as means:
        inbox = Inbox()
        outbox = Outbox(
            Binder(means, lambda: True, 0.2),
            Conditions(means, known.get, lambda: True, connection),
            Recorder(means, "host", connection),
            inbox,
            in_flight=4,
            metrics=means.metrics,
        )
        running = asyncio.create_task(outbox.run())
        try:
            yield outbox, inbox, means.metrics
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def done(server, *commands, **options):
    async def work():
        async with working(server, **options) as (outbox, inbox, _):
            outbox.accept(commands)
            async with asyncio.timeout(10):
                await outbox.drained()
            return await inbox.gather(0.01)

    return asyncio.run(work())


def bodies(server, what):
    return [body for asked, _, body in server.asked if asked == what]


def test_a_bind_is_answered_and_told_in_an_event(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    assert done(server, BIND) == [BindConfirmed("u", "n1")]
    (event,) = bodies(server, EVENTS)
    assert event["note"] == "Successfully assigned d/p to n1"


def test_events_that_hang_do_not_hold_up_binds(server, answers, until):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.hangs)

    async def work():
        async with working(server) as (outbox, inbox, _):
            outbox.accept([BIND] * 40)
            await until(lambda: len(inbox) == 40)

    asyncio.run(work())


def test_a_refusal_is_written_on_the_pod_and_told_in_an_event(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))
    done(server, report("x" * 2000))
    (patch,) = bodies(server, f"PATCH {PATH}/status")
    assert patch["status"]["conditions"][0]["message"] == "x" * 2000
    assert bodies(server, EVENTS)[0]["note"].endswith(" ...")


def test_a_pod_that_waits_for_a_good_place_has_no_failed_event(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    done(server, report(reason="WaitingForNode"))
    assert server.count(f"PATCH {PATH}/status") == 1
    assert server.count(EVENTS) == 0


def test_newer_words_overtake_older_ones_and_a_bind_takes_them_back(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))
    done(server, report("old"), report("new"))
    assert [
        body["status"]["conditions"][0]["message"] for body in bodies(server, f"PATCH {PATH}/status")
    ] == ["new"]
    server.asked.clear()
    done(server, report("late"), BIND)
    assert server.count(f"PATCH {PATH}/status") == 0


def test_words_for_a_pod_that_has_changed_wait_for_its_new_version(server, answers):
    standing = dict(STANDING)

    async def conflict_once(request):
        standing["u"] = Standing("8", 1, refused=False)
        server.on(f"PATCH {PATH}/status", answers.says({}))
        return await answers.says({"message": "modified"}, 409)(request)

    server.on(f"PATCH {PATH}/status", conflict_once)
    server.on(EVENTS, answers.says({}, 201))
    done(server, report(), standing=standing)
    versions = [body["metadata"]["resourceVersion"] for body in bodies(server, f"PATCH {PATH}/status")]
    assert versions == ["7", "8"]


def test_words_outlast_an_outage(server, answers):
    server.on(f"PATCH {PATH}/status", answers.resets, answers.says({}, 503), answers.says({}))
    server.on(EVENTS, answers.says({}, 429), answers.resets, answers.says({"message": "exists"}, 409))
    done(server, report())
    assert server.count(f"PATCH {PATH}/status") == 3
    names = {body["metadata"]["name"] for body in bodies(server, EVENTS)}
    assert len(names) == 1  # the same event each time, so that a lost answer makes no second one


def test_events_beyond_the_queue_are_dropped_and_counted(server, answers):
    server.on(EVENTS, answers.hangs)

    async def work():
        async with working(server, {}, ClientConnection(events_waiting=3)) as (outbox, _, metrics):
            outbox.accept([report(str(i)) for i in range(5)])
            return metrics.dropped_events.labels("queue full")._value.get()

    assert asyncio.run(work()) == 2


def test_a_policys_fault_is_counted(server):
    async def work():
        async with working(server) as (outbox, _, metrics):
            outbox.accept([Fault("rosella", "two places for one pod")])
            return metrics.faults.labels("rosella")._value.get()

    assert asyncio.run(work()) == 1


def test_there_is_room_again_when_binds_have_gone_out(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))

    async def work():
        async with working(server) as (outbox, inbox, _):
            outbox.accept([BIND] * 100)
            await outbox.room()
            return len(inbox)

    assert asyncio.run(work()) > 90
