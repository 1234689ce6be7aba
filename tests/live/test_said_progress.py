"""Pods say how far they are: who is believed, how often, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.kubeclient.serving.callers import Caller, Subject, Token
from eclectus.live import limits as bounds
from eclectus.live.inbox import Inbox
from eclectus.live.limits import Limits
from eclectus.live.said_progress import APART_SECONDS, POD_NAME, POD_UID, PODS_MOST, ProgressPage
from eclectus.live.watch.watched_kinds import WatchedPods
from eclectus.model.events import NodeSeen, ProgressSaid, Resumed, TaskSeen
from eclectus.policies.place.fit import BestFit
from eclectus.policies.speculate.late import Late
from pod_objects import raw


def account(name: str = "a", namespace: str = "default", uid: str = "") -> Subject:
    """As the API server names the account of a pod by the token that the pod was given."""
    extra = ((POD_NAME, (name,)), (POD_UID, (uid or f"uid-{name}",)))
    return Subject(f"system:serviceaccount:{namespace}:builder", "u", ("system:serviceaccounts",), extra)


class World:
    """A leader of which pod `a` runs and has opted in."""

    def __init__(self) -> None:
        self.engine = make_engine(BestFit(), speculate=Late())
        task = make_task("a", node="n0", phase="Running", started=0.0, speculative=True)
        plain = replace(make_task("plain", node="n0", phase="Running", started=0.0))
        self.engine.step([NodeSeen(make_node("n0")), TaskSeen(task), TaskSeen(plain), Resumed()], 0.0)
        self.inbox, self.now, self.standby = Inbox(), 0.0, ""
        self.weights: dict[str, str] = {}
        self.page = ProgressPage(
            self.engine,
            self.inbox,
            self.weights.get,
            Limits(lambda: self.now),
            lambda: self.standby,
            lambda request: request["caller"],
            lambda: self.now,
        )

    def say(
        self, text: str, name: str = "a", namespace: str = "default", caller: Caller | None = None
    ) -> tuple[int, Any]:
        """The status and the body of an answer."""

        async def read() -> bytes:
            return text.encode()

        class Request(SimpleNamespace):
            def __getitem__(self, key: str) -> Any:
                return getattr(self, key)

        named = {"namespace": namespace, "name": name}
        request: Any = Request(match_info=named, read=read, caller=caller or account(name, namespace))
        answer = asyncio.run(self.page.say(request))
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    def taken(self) -> list[Any]:
        """What has come to the engine since."""
        return asyncio.run(self.inbox.take(0.0))


def test_the_progress_of_a_pod_that_is_followed_counts() -> None:
    world = World()
    assert world.say("0.42\n") == (200, {"progress": 0.42, "followed": True})
    assert world.taken() == [ProgressSaid("uid-a", 0.42)]
    world.engine.step([ProgressSaid("uid-a", 0.42)], 1.0)
    said = explain_pod(world.engine, "default", "a", 1.0).copies
    assert said.endswith("Of its work 42% is done, as it says")


def test_phases_count_by_the_weights_of_the_template() -> None:
    world = World()
    world.weights["uid-a"] = "1, 1, 8"
    assert world.say("1, 0.4, 0")[1]["progress"] == pytest.approx(0.14)


def test_weights_are_those_of_the_annotation_and_forgotten_with_the_pod() -> None:
    pods = WatchedPods(lambda name: name == "eclectus")
    ours = {"schedulerName": "eclectus", "nodeName": "n1"}
    for text, kept in (("1, 8", "1, 8"), ("1," * 300, None)):
        annotations = {"eclectus.dev/phase-weights": text}
        pods.observe(raw(ours, labels={"eclectus.dev/speculative": "true"}, annotations=annotations), 0.0)
        assert pods.phase_weights("uid-1") == kept
    pods.gone("uid-1")
    assert pods.phase_weights("uid-1") is None


@pytest.mark.parametrize(
    "caller",
    [
        account("b"),
        account("a", "others"),
        Subject("system:serviceaccount:default:builder", "u"),
        Subject("anna", "", (), account().extra),
        Subject("", "", (), account().extra),
        Token("text"),
    ],
    ids=["another pod", "another namespace", "no token of a pod", "a user", "nobody", "not known"],
)
def test_nobody_says_it_for_another_pod(caller: Caller) -> None:
    world = World()
    status, body = world.say("0.9", caller=caller)
    assert (status, body["reason"]) == (403, "Forbidden")
    assert world.taken() == []


def test_a_pod_of_another_namespace_is_not_taken_for_one_by_its_uid() -> None:
    world = World()
    status, body = world.say("0.9", "a", "others", account("a", "others"))
    assert (status, body["followed"]) == (200, False)
    assert world.taken() == []


def test_what_a_pod_says_that_is_not_followed_counts_for_nothing_and_the_answer_says_so() -> None:
    world = World()
    assert world.say("0.9", "plain") == (200, {"progress": 0.9, "followed": False})
    assert world.taken() == []


@pytest.mark.parametrize("text", ["", "half", "0.5;", "nan", "\xe9", ",".join(["0.1"] * 17)])
def test_what_is_no_progress_is_a_bad_request(text: str) -> None:
    world = World()
    status, body = world.say(text)
    assert (status, "is not a list of 1 to 16 numbers" in body["message"]) == (400, True)
    assert world.taken() == []


def test_it_is_remembered_of_so_many_pods_when_they_have_spoken() -> None:
    world = World()
    for at in range(PODS_MOST + 10):
        world.page._spoken.put(f"uid-{at}", 0.0)
    assert len(world.page._spoken) == PODS_MOST
    assert world.say("0.5", "0", caller=account("0", uid="uid-0"))[0] == 200


def test_a_pod_may_speak_every_five_seconds() -> None:
    world = World()
    assert world.say("0.1")[0] == 200
    world.now = APART_SECONDS - 1.0
    status, body = world.say("0.2")
    assert (status, body["code"]) == (429, 429)
    world.now = APART_SECONDS
    assert world.say("0.2")[0] == 200
    assert [each.progress for each in world.taken()] == [0.1, 0.2]


def test_the_pods_of_one_namespace_leave_half_to_others() -> None:
    world = World()
    said = [world.say("0.5", f"p{at}")[0] for at in range(bounds.SAID_IN_A_ROW)]
    assert said.count(200) == bounds.SAID_IN_A_ROW / 2
    assert said[-1] == 429
    assert world.say("0.5", "p", "others")[0] == 200


def test_a_replica_that_does_not_decide_says_so() -> None:
    world = World()
    world.standby = "this replica does not lead; b does"
    status, body = world.say("0.5")
    assert (status, body["message"]) == (503, world.standby)


def test_progress_is_an_event_of_tapes() -> None:
    event = ProgressSaid("uid-a", 0.42)
    assert msgspec.json.decode(msgspec.json.encode(event), type=ProgressSaid) == event
