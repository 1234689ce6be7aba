"""Whatever happens to a bind, its answer is correct in the end."""

import asyncio

import pytest

from eclectus.live.watch.watched_kinds import ClaimStates
from eclectus.live.write import binder as module
from eclectus.live.write.binder import Binder, VolumeSteps
from eclectus.live.write.status_patches import Nominator
from eclectus.live.write.write_queues import Persistence
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, BindRefused

BIND = Bind("u", "d", "p", "n1", "eclectus")
NOTHING = {}
POST, GET = "POST /api/v1/namespaces/d/pods/p/binding", "GET /api/v1/namespaces/d/pods/p"


def pod(uid="u", node=""):
    return {"metadata": {"name": "p", "namespace": "d", "uid": uid}, "spec": {"nodeName": node}}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "MARGIN_SECONDS", 0.05)


def binder(context, holds_lease, seconds, annotations):
    persistence, state_of = Persistence(context.rng, holds_lease), {}.get
    nominator = Nominator(context, persistence, state_of)
    volume_steps = VolumeSteps(context, persistence, ClaimStates(), state_of)
    return Binder(context, persistence, seconds, lambda uid: annotations, nominator, volume_steps)


def bind(server, holds_lease=lambda: True, seconds=0.2, annotations=NOTHING):
    async def work():
        async with server.context() as context:
            return await binder(context, holds_lease, seconds, annotations).bind(BIND)

    return asyncio.run(work())


def test_a_bind_carries_the_uid_and_a_time_limit_for_the_server(server, answers):
    server.on(POST, answers.says({}, 201))
    assert bind(server) == BindConfirmed("u", "n1")
    _, query, body = server.requests[0]
    assert query == {"timeout": "0.2s"}
    assert body["metadata"]["uid"] == "u"
    assert body["target"]["name"] == "n1"
    assert "annotations" not in body["metadata"]


def test_a_pod_gets_its_annotations_with_the_bind(server, answers):
    server.on(POST, answers.says({}, 201))
    bind(server, annotations={"a/b": "c"})
    _, _, body = server.requests[0]
    assert body["metadata"] == {"namespace": "d", "name": "p", "uid": "u", "annotations": {"a/b": "c"}}


@pytest.mark.parametrize("fault", ["hangs", "resets", "500"])
def test_an_uncertain_bind_that_happened_is_confirmed_by_reading_the_pod_and_never_repeated(
    server, answers, fault
):
    server.on(POST, answers.says({}, 500) if fault == "500" else getattr(answers, fault))
    server.on(GET, answers.says(pod(node="n1")))
    assert bind(server) == BindConfirmed("u", "n1")
    assert server.count(POST) == 1


@pytest.fixture
def clock(server, monkeypatch):
    """The time limit of the request is over once the pod was read, however fast this machine is."""
    monkeypatch.setattr(module, "elapsed", lambda: 60.0 if server.count(GET) else 0.0)


@pytest.mark.usefixtures("clock")
def test_an_uncertain_bind_that_takes_effect_late_is_confirmed(server, answers):
    server.on(POST, answers.resets)
    server.on(GET, answers.says(pod()), answers.says(pod(node="n1")))
    assert bind(server) == BindConfirmed("u", "n1")
    assert server.count(GET) == 2


@pytest.mark.usefixtures("clock")
def test_an_uncertain_bind_is_refused_only_after_the_servers_time_limit(server, answers):
    server.on(POST, answers.resets)
    server.on(GET, answers.says(pod()))
    answer = bind(server)
    assert isinstance(answer, BindRefused)
    assert server.count(GET) == 2  # one at once, one when the request can no longer be under way


def test_a_bind_that_was_sent_after_a_pause_of_the_process_is_not_given_up_too_early(
    server, answers, monkeypatch
):
    """Its time limit has passed when it is sent, and begins for the server only then."""

    def elapsed():
        return 60.0 if server.count(GET) else 30.0 if server.count(POST) else 0.0

    monkeypatch.setattr(module, "elapsed", elapsed)
    server.on(POST, answers.hangs)
    server.on(GET, answers.says(pod()), answers.says(pod(node="n1")))
    assert bind(server) == BindConfirmed("u", "n1")


def test_the_pod_is_read_until_that_succeeds(server, answers):
    server.on(POST, answers.resets)
    server.on(GET, answers.says({}, 503), answers.resets, answers.says({}, 429), answers.says(pod(node="n1")))
    assert bind(server) == BindConfirmed("u", "n1")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(node="n1"), BindConfirmed("u", "n1")),
        (pod(node="n2"), BindRefused("u", "n1", "taken")),
        (pod(), BindRefused("u", "n1", "taken")),
        (pod(uid="other", node="n1"), BindRefused("u", "n1", "taken")),
    ],
    ids=["our own bind", "another bind", "refused for another reason", "a new pod of the same name"],
)
def test_a_conflict_is_settled_by_reading_the_pod(server, answers, found, expected):
    server.on(POST, answers.says({"message": "taken"}, 409))
    server.on(GET, answers.says(found))
    assert bind(server) == expected


def test_a_bind_of_a_deleted_pod_is_refused(server):
    assert isinstance(bind(server), BindRefused)


def test_a_throttled_bind_waits_for_retry_after_and_is_sent_again(server, answers):
    server.on(POST, answers.says({}, 429, {"Retry-After": "1"}), answers.says({}, 201))

    async def work():
        loop = asyncio.get_running_loop()
        async with server.context() as context:
            began = loop.time()
            return await binder(context, lambda: True, 0.2, {}).bind(BIND), loop.time() - began

    answer, took = asyncio.run(work())
    assert answer == BindConfirmed("u", "n1")
    assert took >= 1.0
    assert server.count(GET) == 0


def test_nothing_is_sent_without_the_lease(server):
    assert isinstance(bind(server, holds_lease=lambda: False), BindRefused)
    assert not server.requests


def test_a_throttled_bind_is_refused_once_the_lease_is_lost(server, answers):
    leads = iter([True, True])
    server.on(POST, answers.says({}, 429))
    assert isinstance(bind(server, holds_lease=lambda: next(leads, False)), BindRefused)
    assert server.count(POST) == 2


def test_a_bind_that_cannot_be_sent_is_refused_after_a_while(monkeypatch, server, answers):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.1)
    server.on(POST, answers.says({"message": "busy"}, 429))
    assert bind(server) == BindRefused("u", "n1", "busy")
