"""Commands are sent, answers come back, and neither conditions nor events delay a bind."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.live.inbox import Inbox
from eclectus.live.metrics_page import registry_of, text
from eclectus.live.watch.watched_kinds import ConditionState, Ignored
from eclectus.live.write import outbox as outboxes
from eclectus.live.write.write_queues import LEASE_LOST
from eclectus.model.commands import Bind, EndProbe, Fault, Renominate, Report, Warn
from eclectus.model.events import BindConfirmed, BindRefused
from outboxes import outbox_of

FEW = ClientConnectionSettings(writes_beside_binds=3, requests_in_flight=10)
PATH = "/api/v1/namespaces/d/pods/p"
EVENTS = "POST /apis/events.k8s.io/v1/namespaces/d/events"
BIND = Bind("u", "d", "p", "n1", "eclectus")
STATES = {"u": ConditionState("7", 1, is_false=False, prefers_nodes=True)}


def report(message="no room", reason="Unschedulable"):
    return Report("u", "d", "p", "eclectus", reason, message)


@asynccontextmanager
async def working(server, *, unmet=(), **options):
    async with server.context() as context:
        inbox = Inbox()
        outbox = outbox_of(context, inbox, unmet=lambda uid: unmet, **{"states": STATES, **options})
        running = asyncio.create_task(outbox.run())
        try:
            yield outbox, inbox, context.metrics
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def send(server, *commands, **options):
    async def work():
        async with working(server, **options) as (outbox, inbox, _):
            outbox.accept(commands)
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            return await inbox.take(0.01)

    return asyncio.run(work())


def bodies(server, request):
    return [body for sent, _, body in server.requests if sent == request]


def test_a_bind_is_answered_and_recorded_as_an_event(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    assert send(server, BIND) == [BindConfirmed("u", "n1")]
    (event,) = bodies(server, EVENTS)
    assert event["note"] == "Successfully assigned d/p to n1"


def test_a_bind_is_not_sent_again_with_a_renewed_token_when_the_lease_is_lost_meanwhile(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 401), answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    (answer,) = send(server, BIND, holds_lease=lambda: server.count(f"POST {PATH}/binding") == 0)
    assert answer == BindRefused("u", "n1", f"not sent: {LEASE_LOST}")
    assert server.count(f"POST {PATH}/binding") == 1


def test_preferences_that_the_node_does_not_meet_are_on_the_pod_and_in_its_event(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}, 200))
    server.on(EVENTS, answers.says({}, 201))
    send(server, BIND, unmet=("disk=ssd (weight 50)",))
    (binding,), (event,) = bodies(server, f"POST {PATH}/binding"), bodies(server, EVENTS)
    assert binding["metadata"]["annotations"] == {"eclectus.dev/relaxed-preferences": "disk=ssd (weight 50)"}
    assert event["note"] == "Successfully assigned d/p to n1. Preferences not met: disk=ssd (weight 50)"
    assert len(server.requests) == 2, "it costs no request of its own"


def test_what_is_wrong_with_a_pod_that_is_placed_all_the_same_is_an_event_and_nothing_else(server, answers):
    server.on(EVENTS, answers.says({}, 201))
    send(server, Warn("u", "d", "p", "eclectus", "PoolRefused", "no Pool lab admits it"))
    (event,) = bodies(server, EVENTS)
    assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "PoolRefused", "p")
    assert event["note"] == "no Pool lab admits it"
    assert len(server.requests) == 1


def test_where_all_preferences_are_met_nothing_is_said_of_them(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    send(server, BIND)
    assert len(server.requests) == 2


def test_events_that_hang_do_not_hold_up_binds(server, answers, until):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.hangs)

    async def work():
        async with working(server) as (outbox, inbox, _):
            outbox.accept([BIND] * 40)
            await until(lambda: len(inbox) == 40)

    asyncio.run(work())


def test_events_take_the_requests_of_binds_once_no_bind_waits(server, answers, until):
    connection = ClientConnectionSettings(writes_beside_binds=2, requests_in_flight=10)
    free, slow = asyncio.Event(), [Bind(f"u{i}", "d", "slow", "n1", "eclectus") for i in range(4)]

    async def answers_when_free(request):
        await free.wait()
        return await answers.says({}, 201)(request)

    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on("POST /api/v1/namespaces/d/pods/slow/binding", answers_when_free)
    server.on(EVENTS, answers.hangs)

    async def work():
        async with working(server, connection=connection) as (outbox, inbox, _):
            outbox.accept([BIND] * 40 + slow)
            await until(lambda: len(inbox) == 40 and server.count(EVENTS) == 2)
            beside_binds = server.count(EVENTS)
            free.set()
            await until(lambda: server.count(EVENTS) == 10)
            return beside_binds

    assert asyncio.run(work()) == 2


@pytest.mark.parametrize("most", [3, 1])
def test_few_conditions_and_events_are_under_way_beside_a_bind(server, answers, until, monkeypatch, most):
    monkeypatch.setattr(outboxes, "SLOW_SECONDS", 60.0 if most > 1 else 0.0)
    pods = [Report(f"u{i}", "d", f"p{i}", "eclectus", "Unschedulable", "no room") for i in range(9)]
    states = {pod.uid: STATES["u"] for pod in pods}
    under_way, counts = [], []

    async def counted(request):
        under_way.append(request)
        await asyncio.sleep(0)
        counts.append(len(under_way))
        under_way.remove(request)
        return await answers.says({})(request)

    for pod in pods:
        server.on(f"PATCH /api/v1/namespaces/d/pods/{pod.name}/status", counted)
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on("POST /api/v1/namespaces/d/pods/slow/binding", answers.hangs)
    server.on(EVENTS, counted)
    beside_a_bind(server, pods, states, until, lambda: len(counts) == 1 + 2 * len(pods))
    assert max(counts) == most


def test_conditions_come_before_events(server, answers, until, monkeypatch):
    monkeypatch.setattr(outboxes, "SLOW_SECONDS", 0.0)
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on("PATCH /api/v1/namespaces/d/pods/q/status", answers.says({}))
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on("POST /api/v1/namespaces/d/pods/slow/binding", answers.hangs)
    server.on(EVENTS, answers.says({}))
    reports = [report(), Report("uq", "d", "q", "eclectus", "Unschedulable", "no room")]
    states = {"u": STATES["u"], "uq": STATES["u"]}
    beside_a_bind(server, reports, states, until, lambda: server.count(EVENTS) == 3)
    written = [request.split()[0] for request, _, _ in server.requests if "binding" not in request]
    assert written == ["POST", "PATCH", "PATCH", "POST", "POST"]


def beside_a_bind(server, reports, states, until, done):
    """Report while a bind is under way; another one has been answered before."""

    async def work():
        async with working(server, states=states, connection=FEW, bind_seconds=30.0) as (outbox, inbox, _):
            outbox.accept([BIND])
            await until(lambda: len(inbox) == 1 and server.count(EVENTS) == 1)
            outbox.accept([Bind("us", "d", "slow", "n1", "eclectus"), *reports])
            await until(done)
            return len(inbox)

    assert asyncio.run(work()) == 1, "the second bind is still under way"


def test_writes_that_wait_to_be_repeated_keep_no_others_waiting(server, answers, until, monkeypatch):
    monkeypatch.setattr(outboxes, "SLOW_SECONDS", 0.0)
    refused = answers.says({}, 429, {"Retry-After": "100"})
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on("POST /api/v1/namespaces/d/pods/slow/binding", answers.hangs)
    server.on(f"PATCH {PATH}/status", refused)
    server.on(EVENTS, answers.says({}, 201), refused, refused, refused, answers.says({}, 201))
    pods = [Report(f"u{i}", "d", f"p{i}", "eclectus", "Unschedulable", "no room") for i in range(4)]
    beside_a_bind(server, [report(), *pods], STATES, until, lambda: server.count(EVENTS) == 6)


def test_a_bound_pod_has_no_event_that_it_could_not_be_scheduled_and_a_newer_one_replaces_an_older(
    server, answers
):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))
    send(server, report("late"), BIND)
    assert [event["reason"] for event in bodies(server, EVENTS)] == ["Scheduled"]
    server.requests.clear()
    send(server, report("old"), report("new"))
    assert [event["note"] for event in bodies(server, EVENTS)] == ["new"]


def test_an_event_that_was_refused_is_not_repeated_once_its_pod_is_bound(server, answers, until):
    refused = answers.says({}, 503)
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, refused, answers.says({}, 201))

    async def work():
        async with working(server) as (outbox, _, _):
            outbox.accept([report()])
            await until(lambda: server.count(EVENTS) == 1)
            outbox.accept([BIND])
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()

    asyncio.run(work())
    assert [event["reason"] for event in bodies(server, EVENTS)] == ["FailedScheduling", "Scheduled"]


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_pod_costs_no_more_writes_than_with_kube_scheduler(server, answers, failures):
    """With it a bind is two, and so is each attempt that fails: a changed condition, and an event."""
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))

    async def work():
        async with working(server) as (outbox, _, _):
            for command in [*(report(str(at)) for at in range(failures)), BIND]:
                outbox.accept([command])
                async with asyncio.timeout(10):
                    await outbox.wait_until_empty()

    asyncio.run(work())
    assert len(server.requests) == 2 + 2 * failures


def test_a_report_becomes_a_condition_and_an_event(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))
    send(server, report("x" * 2000))
    (patch,) = bodies(server, f"PATCH {PATH}/status")
    assert patch["status"]["conditions"][0]["message"] == "x" * 2000
    assert bodies(server, EVENTS)[0]["note"].endswith(" ...")


def test_a_pod_that_waits_for_a_faster_node_has_no_event(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    send(server, report(reason="WaitingForNode"))
    assert server.count(f"PATCH {PATH}/status") == 1
    assert server.count(EVENTS) == 0


def test_a_newer_report_replaces_the_older_one_and_a_bind_cancels_it(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(EVENTS, answers.says({}, 201))
    send(server, report("old"), report("new"))
    assert [
        body["status"]["conditions"][0]["message"] for body in bodies(server, f"PATCH {PATH}/status")
    ] == ["new"]
    server.requests.clear()
    send(server, report("late"), BIND)
    assert server.count(f"PATCH {PATH}/status") == 0


def test_a_condition_that_conflicts_is_written_for_the_new_version(server, answers):
    states = dict(STATES)

    async def conflict_once(request):
        states["u"] = ConditionState("8", 1, is_false=False)
        server.on(f"PATCH {PATH}/status", answers.says({}))
        return await answers.says({"message": "modified"}, 409)(request)

    server.on(f"PATCH {PATH}/status", conflict_once)
    server.on(EVENTS, answers.says({}, 201))
    send(server, report(), states=states)
    versions = [body["metadata"]["resourceVersion"] for body in bodies(server, f"PATCH {PATH}/status")]
    assert versions == ["7", "8"]


def test_conditions_and_events_are_repeated_after_an_outage(server, answers):
    server.on(f"PATCH {PATH}/status", answers.resets, answers.says({}, 503), answers.says({}))
    server.on(EVENTS, answers.says({}, 429), answers.resets, answers.says({"message": "exists"}, 409))
    send(server, report())
    assert server.count(f"PATCH {PATH}/status") == 3
    names = {body["metadata"]["name"] for body in bodies(server, EVENTS)}
    assert len(names) == 1  # the same name each time, so that a lost answer makes no second event


def test_events_beyond_the_queue_are_dropped_and_counted(server, answers):
    server.on(EVENTS, answers.hangs)

    async def work():
        connection = ClientConnectionSettings(events_waiting=3)
        async with working(server, states={}, connection=connection) as (outbox, _, metrics):
            outbox.accept([report(str(i)) for i in range(5)])
            return metrics.dropped_events.labels("queue full").value

    assert asyncio.run(work()) == 2


def test_a_fault_of_a_policy_is_counted(server):
    async def work():
        async with working(server) as (outbox, _, metrics):
            outbox.accept([Fault("rosella", "two nodes for one pod")])
            return metrics.faults.labels("rosella").value

    assert asyncio.run(work()) == 1


def test_there_is_room_again_when_binds_have_been_sent(server, answers):
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))

    async def work():
        async with working(server) as (outbox, inbox, _):
            outbox.accept([BIND] * 100)
            await outbox.wait_for_room()
            return len(inbox)

    assert asyncio.run(work()) > 90


def test_an_ignored_preference_is_noted_once_for_each_class_and_counted_for_each_pod(server, answers):
    server.on("POST /apis/events.k8s.io/v1/namespaces/d/events", answers.says({}, 201))
    for name in ("a", "b", "c"):
        server.on(f"POST /api/v1/namespaces/d/pods/{name}/binding", answers.says({}, 201))
    web = Ignored(("preferred pod affinity",), "web")
    ignored = {"ua": web, "ub": web}
    binds = [Bind(f"u{name}", "d", name, "n", "eclectus") for name in "abc"]

    async def work():
        async with working(server, ignored=ignored) as (outbox, _, metrics):
            outbox.accept(binds)
            async with asyncio.timeout(10):
                await outbox.wait_until_empty()
            return text(registry_of(metrics)).decode()

    page = asyncio.run(work())
    events = bodies(server, "POST /apis/events.k8s.io/v1/namespaces/d/events")
    (note,) = [event for event in events if event["reason"] == "PreferenceIgnored"]
    assert (note["type"], note["regarding"]["name"]) == ("Warning", "a")
    assert note["note"].startswith("Eclectus does not read preferred pod affinity yet: pods of class web")
    assert 'eclectus_ignored_preferences_total{feature="preferred pod affinity"} 2.0' in page


# -- binds with steps ------------------------------------------------------------------------------

STEPPED = Bind("u", "d", "p", "n1", "eclectus", before=(Renominate("n1", from_node="n9"),))


def nominations(server):
    return [body["status"]["nominatedNodeName"] for body in bodies(server, f"PATCH {PATH}/status")]


def test_a_step_is_done_before_the_bind(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    assert send(server, STEPPED) == [BindConfirmed("u", "n1")]
    assert nominations(server) == ["n1"]
    assert [request for request, *_ in server.requests][:2] == [
        f"PATCH {PATH}/status",
        f"POST {PATH}/binding",
    ]


def test_a_step_is_undone_before_a_refused_bind_is_answered(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({}))
    server.on(f"POST {PATH}/binding", answers.says({"message": "no such node"}, 403))
    server.on(f"GET {PATH}", answers.says({"metadata": {"name": "p", "uid": "u"}, "spec": {}}))
    (answer,) = send(server, STEPPED)
    assert isinstance(answer, BindRefused)
    assert nominations(server) == ["n1", "n9"]


def test_a_step_that_fails_refuses_the_bind_unsent(server, answers):
    server.on(f"PATCH {PATH}/status", answers.says({"message": "forbidden"}, 403))
    (answer,) = send(server, STEPPED)
    assert answer == BindRefused("u", "n1", "not nominated before the bind: forbidden")
    assert server.count(f"POST {PATH}/binding") == 0
    assert nominations(server) == ["n1"]


DISPLACING = Bind("u", "d", "p", "n1", "eclectus", before=(EndProbe("uid-probe", "probes", "probe"),))
DELETE_PROBE = "DELETE /api/v1/namespaces/probes/pods/probe"


@pytest.mark.parametrize("status", [200, 403, 404, 409, 500])
def test_a_probe_is_ended_once_before_the_bind_and_hinders_it_in_no_case(server, answers, status):
    server.on(DELETE_PROBE, answers.says({}, status))
    server.on(f"POST {PATH}/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    assert send(server, DISPLACING) == [BindConfirmed("u", "n1")]
    assert [request for request, *_ in server.requests][:2] == [DELETE_PROBE, f"POST {PATH}/binding"]
    (options,) = bodies(server, DELETE_PROBE)
    assert options["preconditions"] == {"uid": "uid-probe"}


def test_the_end_of_a_probe_is_not_undone(server, answers):
    server.on(DELETE_PROBE, answers.says({}))
    server.on(f"POST {PATH}/binding", answers.says({"message": "no such node"}, 403))
    server.on(f"GET {PATH}", answers.says({"metadata": {"name": "p", "uid": "u"}, "spec": {}}))
    (answer,) = send(server, DISPLACING)
    assert isinstance(answer, BindRefused)
    assert server.count(f"PATCH {PATH}/status") == 0


def test_a_step_that_hangs_does_not_hold_up_other_binds(server, answers, until):
    server.on(f"PATCH {PATH}/status", answers.hangs)
    server.on("POST /api/v1/namespaces/d/pods/q/binding", answers.says({}, 201))
    server.on(EVENTS, answers.says({}, 201))
    others = [Bind(f"u{number}", "d", "q", "n1", "eclectus") for number in range(20)]

    async def work():
        async with working(server) as (outbox, _, _):
            outbox.accept([STEPPED, *others])
            await until(lambda: server.count("POST /api/v1/namespaces/d/pods/q/binding") == len(others))

    asyncio.run(work())
