"""Before a bind volumes are reserved or ordered, and the bind waits until the claims are bound."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eclectus.live.inbox import Inbox
from eclectus.live.watch.watched_kinds import ClaimState, ClaimStates, ConditionState
from eclectus.live.write import binder
from eclectus.live.write.binder import WRITES_IN_FLIGHT, VolumeSteps
from eclectus.live.write.outbox import WAIT_FOR_VOLUMES
from eclectus.model.commands import AwaitVolume, Bind, ReserveVolume, SelectNode
from eclectus.model.events import BindConfirmed, BindRefused
from outboxes import outbox_of

POD = "/api/v1/namespaces/d/pods/p"
BIND, PLAIN = f"POST {POD}/binding", "/api/v1/namespaces/d/pods/plain"
VOLUME, CLAIM = "/api/v1/persistentvolumes/v", "/api/v1/namespaces/d/persistentvolumeclaims/c"
RESERVE = ReserveVolume("v", "d", "c", "uid-c")
SELECT = SelectNode("d", "c", "uid-c", "n1")
STATIC = (RESERVE, AwaitVolume("d", "c", "uid-c", "v"))
DYNAMIC = (SELECT, AwaitVolume("d", "c", "uid-c", node="n1"))
UNBOUND = ClaimState("uid-c", "", "")
BOUND = ClaimState("uid-c", "v", "")


def bind(*before):
    return Bind("u", "d", "p", "n1", "eclectus", before=before)


def volume(**claim):
    return {"metadata": {"name": "v", "resourceVersion": "5"}, "spec": {"claimRef": claim} if claim else {}}


def claim(uid="uid-c", node="", name=""):
    annotations = {"volume.kubernetes.io/selected-node": node} if node else {}
    metadata = {"name": "c", "namespace": "d", "uid": uid, "resourceVersion": "6", "annotations": annotations}
    return {"metadata": metadata, "spec": {"volumeName": name}}


@asynccontextmanager
async def working(server, claims, pods=("u",), **options):
    async with server.context() as context:
        inbox = Inbox()
        states = {uid: ConditionState("7", 1, is_false=False) for uid in pods}
        outbox = outbox_of(context, inbox, states=states, claims=claims, **options)
        running = asyncio.create_task(outbox.run())
        try:
            yield outbox, inbox
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def answer_of(server, command, *states, **options):
    """The answer to the bind; the watch shows these states of the claim one after the other."""
    claims = ClaimStates()

    async def work():
        async with working(server, claims, **options) as (outbox, inbox), asyncio.timeout(10):
            if states:
                claims.set("d/c", states[0])
            outbox.accept([command])
            for state in states[1:]:
                while "d/c" not in claims._changed and not len(inbox):  # noqa: ASYNC110 — it sets no event
                    await asyncio.sleep(0.01)
                claims.set("d/c", state)
            await outbox.wait_until_binds_ended()
            (answer,) = await inbox.take(1.0)
            return answer

    return asyncio.run(work())


@pytest.fixture
def ready(server, answers):
    """A server on which every write succeeds."""
    server.on(f"GET {VOLUME}", answers.says(volume()))
    server.on(f"GET {CLAIM}", answers.says(claim()))
    for each in (f"PATCH {VOLUME}", f"PATCH {CLAIM}"):
        server.on(each, answers.says({}))
    server.on(BIND, answers.says({}, 201))
    server.on(f"POST {PLAIN}/binding", answers.says({}, 201))
    server.on("POST /apis/events.k8s.io/v1/namespaces/d/events", answers.says({}, 201))
    return server


def bodies(server, request):
    return [body for what, _, body in server.requests if what == request]


def test_a_volume_is_reserved_and_the_pod_bound_once_the_claim_is(ready):
    assert answer_of(ready, bind(*STATIC), UNBOUND, BOUND) == BindConfirmed("u", "n1")
    (patch,) = bodies(ready, f"PATCH {VOLUME}")
    assert patch == {
        "metadata": {"resourceVersion": "5", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "d",
                "name": "c",
                "uid": "uid-c",
            }
        },
    }
    order = [what for what, _, _ in ready.requests if what in (f"PATCH {VOLUME}", BIND)]
    assert order == [f"PATCH {VOLUME}", BIND]


def test_a_node_is_selected_and_the_pod_bound_once_the_volume_is_there(ready):
    selected = ClaimState("uid-c", "", "n1")
    assert answer_of(ready, bind(*DYNAMIC), UNBOUND, selected, BOUND) == BindConfirmed("u", "n1")
    (patch,) = bodies(ready, f"PATCH {CLAIM}")
    annotations = {"volume.kubernetes.io/selected-node": "n1"}
    assert patch == {"metadata": {"resourceVersion": "6", "annotations": annotations}}


def test_a_volume_that_a_person_has_reserved_is_not_marked_as_bound_by_a_controller(ready, answers):
    ready.on(f"GET {VOLUME}", answers.says(volume(namespace="d", name="c")))
    answer_of(ready, bind(*STATIC), BOUND)
    (patch,) = bodies(ready, f"PATCH {VOLUME}")
    assert patch["metadata"] == {"resourceVersion": "5"}


def test_what_is_written_already_is_not_written_again(ready, answers):
    ready.on(f"GET {VOLUME}", answers.says(volume(namespace="d", name="c", uid="uid-c")))
    ready.on(f"GET {CLAIM}", answers.says(claim(node="n1")))
    answer_of(ready, bind(*STATIC, *DYNAMIC), BOUND)
    assert ready.count(f"PATCH {VOLUME}") == ready.count(f"PATCH {CLAIM}") == 0


def test_after_a_conflict_the_object_is_read_and_written_again(ready, answers):
    conflict = answers.says({"kind": "Status", "reason": "Conflict", "message": "changed"}, 409)
    ready.on(f"PATCH {VOLUME}", conflict, answers.says({}))
    assert answer_of(ready, bind(*STATIC), BOUND) == BindConfirmed("u", "n1")
    assert ready.count(f"GET {VOLUME}") == 2


@pytest.mark.parametrize(
    ("steps", "states", "reason"),
    [
        (
            STATIC,
            [UNBOUND, ClaimState("uid-c", "w", "")],
            'persistentvolumeclaim "c" got another volume: "w"',
        ),
        (DYNAMIC, [UNBOUND, ClaimState("uid-c", "", "n1"), UNBOUND], 'provisioning failed for PVC "c"'),
        (DYNAMIC, [ClaimState("another", "", "")], 'persistentvolumeclaim "c" not found'),
        (DYNAMIC, [], 'persistentvolumeclaim "c" not found'),
    ],
)
def test_the_bind_is_refused_when_waiting_helps_no_more(ready, steps, states, reason):
    assert answer_of(ready, bind(*steps), *states) == BindRefused("u", "n1", reason)
    assert ready.count(BIND) == 0


def test_few_writes_for_volumes_are_in_flight_at_a_time():
    running, most = 0, 0

    async def written():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    class AtOnce:
        async def why_not(self, write, *_):
            await write()
            return ""

    async def work():
        steps = VolumeSteps(None, AtOnce(), ClaimStates(), lambda _: None)
        await asyncio.gather(*(steps._written(written) for _ in range(3 * WRITES_IN_FLIGHT)))

    asyncio.run(work())
    assert most == WRITES_IN_FLIGHT


def test_the_wait_for_a_volume_ends(ready, monkeypatch):
    monkeypatch.setattr(binder, "BOUND_SECONDS", 0.05)
    answer = answer_of(ready, bind(*DYNAMIC), UNBOUND)
    assert answer == BindRefused("u", "n1", 'persistentvolumeclaim "c" is not bound after 0.05 s')


def test_the_wait_ends_when_the_pod_is_gone(ready):
    answer = answer_of(ready, bind(*DYNAMIC), UNBOUND, pods=())
    assert answer == BindRefused("u", "n1", "the pod is bound or gone")


def test_the_wait_ends_when_the_lease_is_lost(ready):
    answer = answer_of(ready, bind(AwaitVolume("d", "c", "uid-c")), UNBOUND, holds_lease=lambda: False)
    assert answer == BindRefused("u", "n1", "this process no longer holds the Lease for certain")


@pytest.mark.parametrize(
    ("what", "found", "words"),
    [
        (VOLUME, volume(namespace="d", name="other", uid="o"), "is reserved for d/other meanwhile"),
        (CLAIM, claim(node="n2"), "is provisioned for node n2"),
        (CLAIM, claim(uid="another"), "not found"),
    ],
)
def test_a_step_that_has_become_impossible_refuses_the_bind(ready, answers, what, found, words):
    ready.on(f"GET {what}", answers.says(found))
    answer = answer_of(ready, bind(*(STATIC if what == VOLUME else DYNAMIC)), UNBOUND)
    assert isinstance(answer, BindRefused)
    assert words in answer.reason
    assert ready.count(f"PATCH {what}") == 0


def test_plain_binds_do_not_wait_for_volumes(ready, until):
    claims = ClaimStates()
    claims.set("d/c", UNBOUND)

    async def work():
        async with working(ready, claims) as (outbox, inbox):
            outbox.accept([bind(*DYNAMIC)] * 100 + [Bind("w", "d", "plain", "n1", "eclectus")] * 40)
            await until(lambda: len(inbox) == 40)
            async with asyncio.timeout(5):
                await outbox.wait_until_empty()
            return ready.count(BIND)

    assert asyncio.run(work()) == 0


def test_volumes_that_are_never_made_keep_no_pods_of_other_namespaces_waiting(ready, answers, until):
    """A tenant may name a StorageClass of which no volume is ever made, in as many claims as it likes."""
    theirs = "/api/v1/namespaces/e/pods/p"
    ready.on(f"POST {theirs}/binding", answers.says({}, 201))
    ready.on("POST /apis/events.k8s.io/v1/namespaces/e/events", answers.says({}, 201))
    claims = ClaimStates()

    async def work():
        async with working(ready, claims, pods=("u", "u2")) as (outbox, inbox), asyncio.timeout(10):
            claims.set("d/c", UNBOUND)
            claims.set("e/c", BOUND)
            waiting = AwaitVolume("d", "c", "uid-c", node="n1")
            outbox.accept([bind(waiting) for _ in range(3 * WAIT_FOR_VOLUMES)])
            other = AwaitVolume("e", "c", "uid-c", "v")
            outbox.accept([Bind("u2", "e", "p", "n1", "eclectus", before=(other,))])
            await until(lambda: len(inbox))
            return await inbox.take(1.0)

    assert asyncio.run(work()) == [BindConfirmed("u2", "n1")]
