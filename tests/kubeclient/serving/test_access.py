"""Who may read a page, and how little the API server is asked about it."""

import asyncio
import logging

import pytest

from eclectus.kubeclient.api_errors import NotDoneError, RejectedError, UnsureError
from eclectus.kubeclient.serving import access as accesses
from eclectus.kubeclient.serving.access import (
    ACCESS_REVIEWS,
    AccessControl,
    PageRight,
    ReadObject,
    access_of,
)
from eclectus.kubeclient.serving.callers import TOKEN_REVIEWS, Subject, Token
from eclectus.kubeclient.serving.server_settings import ServerSettings
from reviewing_api import ReviewingApi

TOKENS = {"prometheus-token": "prometheus", "other-token": "other"}
NO_PODS = 'User "other" cannot get resource "pods" in API group ""'
RIGHTS = {"prometheus": ["/metrics", "/speeds"], "other": []}


class World:
    """An AccessControl, the API server that it asks, and the time."""

    def __init__(self):
        self.now = 1000.0
        self.api = ReviewingApi(TOKENS, RIGHTS)
        self.access = AccessControl(self.api, lambda: self.now)

    async def status(self, token, path="/metrics"):
        return int((await self.access.decision(Token(token), PageRight(path))).status)


def in_world(work):
    async def run():
        return await work(World())

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        ("prometheus-token", "/metrics", 200),
        ("prometheus-token", "/configz", 403),
        ("other-token", "/metrics", 403),
        ("made-up", "/metrics", 401),
        ("", "/metrics", 401),
    ],
)
def test_a_token_is_judged_by_its_user_and_the_path(token, path, status):
    assert in_world(lambda world: world.status(token, path)) == status


def test_the_review_of_access_names_all_that_is_known_of_the_user():
    async def work(world):
        await world.status("prometheus-token")
        return world.api.specs

    token, access = in_world(work)
    assert token == {"token": "prometheus-token"}
    assert access == {
        "user": "prometheus",
        "uid": "u1",
        "groups": ["readers"],
        "extra": {"scopes": ["a"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


def test_the_refusal_names_user_and_path():
    async def work(world):
        return await world.access.decision(Token("other-token"), PageRight("/speeds"))

    assert in_world(work).message == 'forbidden: User "other" cannot get path "/speeds"'


@pytest.mark.parametrize(
    ("right", "attributes", "refusal"),
    [
        (
            ReadObject("pods", "a", "x"),
            {"verb": "get", "resource": "pods", "namespace": "a", "name": "x"},
            f'pods "x" is forbidden: {NO_PODS} in the namespace "a"',
        ),
        (
            ReadObject("pods", "a"),
            {"verb": "get", "resource": "pods", "namespace": "a"},
            f'pods is forbidden: {NO_PODS} in the namespace "a"',
        ),
        (
            ReadObject("nodes", name="n"),
            {"verb": "get", "resource": "nodes", "name": "n"},
            'nodes "n" is forbidden: User "other" cannot get resource "nodes" in API group "" '
            "at the cluster scope",
        ),
    ],
)
def test_rights_on_objects_are_asked_for_and_refused_as_the_api_server_does(right, attributes, refusal):
    async def work(world):
        return await world.access.decision(Token("other-token"), right), world.api.specs[1]

    decided, asked = in_world(work)
    assert (decided.status, decided.message) == (403, refusal)
    assert asked["resourceAttributes"] == attributes


@pytest.mark.parametrize("token", ["", "\udce9", "täken"])
def test_about_what_can_be_no_token_nobody_is_asked(token):
    async def work(world):
        return await world.status(token), world.api.asked.total()

    assert in_world(work) == (401, 0)


@pytest.mark.parametrize(
    ("token", "first"), [("prometheus-token", 200), ("made-up", 401), ("other-token", 403)]
)
def test_a_decision_is_kept_for_ten_seconds_and_no_longer(token, first):
    async def work(world):
        assert await world.status(token) == first
        world.api.tokens, world.api.rights = {"made-up": "prometheus", "other-token": "prometheus"}, RIGHTS
        world.now += accesses.DECISION_SECONDS - 0.1
        assert await world.status(token) == first
        assert world.api.asked[TOKEN_REVIEWS] == 1
        world.now += 0.2
        return await world.status(token)

    assert in_world(work) == (401 if first == 200 else 200)


def test_many_requests_with_one_token_ask_once():
    async def work(world):
        world.api.gate.clear()
        asking = [asyncio.create_task(world.status("prometheus-token")) for _ in range(50)]
        await asyncio.sleep(0)
        world.api.gate.set()
        return await asyncio.gather(*asking), dict(world.api.asked)

    statuses, asked = in_world(work)
    assert set(statuses) == {200}
    assert asked == {TOKEN_REVIEWS: 1, ACCESS_REVIEWS: 1}


def test_a_flood_of_made_up_tokens_is_asked_about_at_a_bounded_rate():
    async def work(world):
        statuses = []
        for number in range(1000):  # in ten seconds
            world.now += 0.01
            statuses.append(await world.status(f"made-up-{number}"))
        return statuses, world.api.asked[TOKEN_REVIEWS]

    statuses, asked = in_world(work)
    assert set(statuses) == {401, 429}
    assert asked == statuses.count(401) <= accesses.REVIEWS_IN_A_ROW + 10 * accesses.REVIEWS_A_SECOND


def test_no_more_reviews_than_eight_wait_for_an_api_server_that_hangs():
    async def work(world):
        world.api.gate.clear()
        asking = [asyncio.create_task(world.status(f"made-up-{number}")) for number in range(100)]
        done, waiting = await asyncio.wait(asking, timeout=1, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 100 - accesses.REVIEWS_IN_FLIGHT:
            done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        world.api.gate.set()
        return {task.result() for task in done}, await asyncio.gather(*waiting)

    refused, waited = in_world(work)
    assert refused == {429}
    assert waited == [401] * accesses.REVIEWS_IN_FLIGHT


def test_who_was_permitted_before_is_not_locked_out_by_a_flood():
    async def work(world):
        assert await world.status("prometheus-token") == 200
        world.now += accesses.DECISION_SECONDS + 1
        for number in range(200):
            await world.status(f"made-up-{number}")
        assert await world.status("other-token") == 429
        return await world.status("prometheus-token")

    assert in_world(work) == 200


@pytest.mark.parametrize(
    "error",
    [
        UnsureError("POST", message="no answer"),
        NotDoneError("POST", 429),
        RejectedError("POST", 403, "tokenreviews is forbidden"),
    ],
)
def test_an_api_server_that_cannot_be_asked_is_an_error_of_the_request_and_logged_once(error, caplog):
    async def work(world):
        world.api.error = error
        found = [
            await world.access.decision(Token("prometheus-token"), PageRight("/metrics")) for _ in range(5)
        ]
        world.api.error = None
        return found, await world.status("prometheus-token")

    found, later = in_world(work)
    assert {int(each.status) for each in found} == {500}
    assert "this server's log says why" in found[0].message
    assert later == 200, "an error is not kept"
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warnings) == 1, "the level of other messages is what earlier tests have set"
    assert str(error) in caplog.text


@pytest.mark.parametrize(
    "answer", [{}, {"status": None}, {"status": {"authenticated": "true", "user": None}}]
)
def test_an_answer_that_does_not_say_yes_is_a_no(answer):
    class Odd:
        async def send(self, *_, **__):
            return answer

    async def work():
        return await AccessControl(Odd()).decision(Token("token"), PageRight("/metrics"))

    assert asyncio.run(work()).status == 401


def test_no_token_is_kept_and_the_number_of_decisions_is_bounded(monkeypatch):
    monkeypatch.setattr(accesses, "DECISIONS_MOST", 5)

    async def work(world):
        for number in range(20):
            world.now += 1
            await world.status(f"made-up-{number}")
        return world.access._decided

    decided = in_world(work)
    assert len(decided) == 5
    assert "made-up" not in str(decided._kept)


def test_the_number_of_tokens_that_are_known_as_permitted_is_bounded(monkeypatch):
    monkeypatch.setattr(accesses, "PERMITTED_MOST", 3)

    async def work(world):
        for number in range(9):
            world.now += 1
            world.api.tokens[f"token-{number}"] = "prometheus"
            assert await world.status(f"token-{number}") == 200
        return world.access._known

    assert len(in_world(work)) == 3


def test_without_authentication_everybody_has_access():
    assert access_of(ServerSettings(), ReviewingApi()) is None
    assert access_of(ServerSettings(authentication="delegated"), ReviewingApi()) is not None


ANNA = Subject("anna", "u7", ("dev", "system:authenticated"), (("scopes", ("a", "b")),))


def test_of_a_user_who_is_known_already_only_the_right_is_asked_for():
    async def work(world):
        world.api.rights = {"anna": ["/metrics"]}
        decided = await world.access.decision(ANNA, PageRight("/metrics"))
        return int(decided.status), world.api.specs

    status, (spec,) = in_world(work)
    assert status == 200
    assert spec == {
        "user": "anna",
        "uid": "u7",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize(
    "other",
    [
        Subject("berta", ANNA.uid, ANNA.groups, ANNA.extra),
        Subject("anna", "u8", ANNA.groups, ANNA.extra),
        Subject("anna", ANNA.uid, ("dev",), ANNA.extra),
        Subject("anna", ANNA.uid, ANNA.groups, ()),
        Token("anna"),
    ],
)
def test_a_decision_about_one_subject_holds_for_no_other(other):
    async def work(world):
        world.api.rights = {"anna": ["/metrics"]}
        await world.access.decision(ANNA, PageRight("/metrics"))
        await world.access.decision(ANNA, PageRight("/metrics"))
        before = world.api.asked.total()
        await world.access.decision(other, PageRight("/metrics"))
        return before, world.api.asked.total()

    assert in_world(work) == (1, 2)


def test_a_user_without_a_name_is_nobody():
    async def work(world):
        world.api.rights = {"": ["/metrics"]}
        return (await world.access.decision(Subject(""), PageRight("/metrics"))).status

    assert in_world(work) == 401


def test_a_user_who_asks_too_much_locks_out_no_other():
    async def work(world):
        world.api.rights = {"anna": ["pods"], "berta": ["pods"]}
        flood = [
            int((await world.access.decision(Subject("anna"), ReadObject("pods", "a", f"x{at}"))).status)
            for at in range(200)
        ]
        other = await world.access.decision(Subject("berta"), ReadObject("pods", "a", "x"))
        return flood.count(200), flood.count(429), int(other.status)

    assert in_world(work) == (accesses.REVIEWS_IN_A_ROW, 200 - accesses.REVIEWS_IN_A_ROW, 200)


def test_of_all_users_together_a_bounded_number_waits_for_an_api_server_that_hangs():
    async def work(world):
        world.api.gate.clear()
        users = [Subject(f"u{number}") for number in range(2 * accesses.ASKING_MOST)]
        asking = [asyncio.create_task(world.access.decision(each, PageRight("/metrics"))) for each in users]
        while not any(each.done() for each in asking):  # noqa: ASYNC110 — the fake sets no event
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        refused = [each.result().status for each in asking if each.done()]
        world.api.gate.set()
        await asyncio.gather(*asking)
        return refused

    assert in_world(work) == [429] * accesses.ASKING_MOST


def test_the_number_of_users_with_a_budget_is_bounded(monkeypatch):
    monkeypatch.setattr(accesses, "USERS_MOST", 5)

    async def work(world):
        for number in range(20):
            await world.access.decision(Subject(f"u{number}"), PageRight("/metrics"))
        return len(world.access._of_users)

    assert in_world(work) == 5
