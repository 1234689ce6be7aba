"""The path that answers what would be different: who must be permitted to read what, and how many ask."""

import asyncio
from urllib.parse import urlencode

import pytest

from eclectus.live import limits as bounds
from explain_pages import POD, World, answer, serving


def path(*texts, pod=POD, **parameters):
    return f"{pod}/what-if?{urlencode([*(('whatIf', each) for each in texts), *parameters.items()])}"


@pytest.fixture
def world():
    return World()


def test_the_question_reaches_the_engine(world):
    texts = ("node=n1,taint+=a=b:NoExecute", "request.cpu=1")
    status, body = answer(world, path(*texts, asPolicy="least-allocated"), "admin")
    assert (status, body["changes"], body["summary"]) == (200, list(texts), "it would fit on no node")
    assert world.asked[0] == ("shop", "web", texts, "place/least-allocated")


@pytest.mark.parametrize(
    ("texts", "token", "status"),
    [
        (["request.cpu=1"], "", 401),
        (["request.cpu=1"], "other", 403),
        (["request.cpu=1"], "one-pod", 200),
        (["node=n1,cordon=true"], "tenant", 403),
        (["add-node-like=n1"], "tenant", 403),
        (["node=n1,cordon=true"], "admin", 200),
        (["delete-pod=beside"], "tenant", 200),
        (["delete-pod=beside"], "one-pod", 403),
        (["delete-pod=bank/vault"], "tenant", 403),
        (["delete-pod=bank/vault"], "admin", 200),
    ],
)
def test_who_may_read_all_that_is_named_is_answered(world, texts, token, status):
    assert answer(world, path(*texts), token)[0] == status
    assert bool(world.asked) == (status == 200)


def test_a_policy_is_asked_for_by_whoever_may_read_the_pod(world):
    assert answer(world, path(asPolicy="least-allocated"), "one-pod")[0] == 200


def test_other_pods_are_named_to_whom_may_read_them(world):
    shown = answer(world, path("request.cpu=1"), "tenant")[1]["pod"]["nearest"][0]["fitsWithout"]
    assert [each["name"] for each in shown] == ["beside", ""]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (path("colour=red"), "colour=red: unknown; known are: request.RESOURCE="),
        (path(asPolicy="nobody"), "there is no Place policy 'nobody'; known are: best-fit"),
        (path(), "nothing is asked"),
        (
            path(colour="red"),
            "there is no parameter 'colour'; known are whatIf, any number of them, and asPolicy",
        ),
    ],
)
def test_what_is_wrong_with_the_question_is_named(world, asked, message):
    status, body = answer(world, asked, "admin")
    assert (status, body["reason"]) == (400, "BadRequest")
    assert message in body["message"]
    assert world.asked == []


def test_what_does_not_exist_is_named_in_the_engines_words(world):
    world.question_error = "there is no node 'n9'; there are n1"
    status, body = answer(world, path("node=n9,cordon=true"), "admin")
    assert (status, body["message"]) == (400, world.question_error)


def test_a_replica_that_does_not_lead_is_not_asked(world):
    world.why_not = "this replica does not lead; other_1 does"
    assert answer(world, path("request.cpu=1"), "admin")[0] == 503
    assert world.asked == []


def test_a_person_asks_ten_times_in_a_row_of_a_large_cluster_and_then_learns_when_to_ask_again(world):
    """Each answer takes a tenth of a second there, and a fortieth of each second is given back."""
    world.cost = 0.11

    async def work():
        async with serving(world) as ask:
            found = [await ask(path("request.cpu=1"), "admin") for _ in range(12)]
            world.clock += int(found[-1][1]["Retry-After"])
            return found, await ask(path("request.cpu=1"), "admin"), await ask(POD, "admin")

    found, later, plain = asyncio.run(work())
    statuses = [status for status, _, _ in found]
    assert statuses == [*[200] * 10, 429, 429]
    assert found[-1][1]["Retry-After"] == "3"
    assert "what-if explanations about namespace shop" in found[-1][2]["message"]
    assert (later[0], plain[0]) == (200, 200), "who asks for what is has a bound of their own"


def test_of_a_flood_some_are_answered_and_plain_questions_are_too(world):
    async def work():
        async with serving(world) as ask:
            changed = await asyncio.gather(*(ask(path("request.cpu=1"), "admin") for _ in range(50)))
            return changed, await ask(POD, "admin")

    changed, plain = asyncio.run(work())
    statuses = [status for status, _, _ in changed]
    assert set(statuses) == {200, 429}
    assert 0 < statuses.count(200) <= bounds.SHARE_OF_ONE * bounds.IN_A_ROW
    assert plain[0] == 200
