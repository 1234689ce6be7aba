"""The paths below /explain: who is answered, what, and how many."""

import asyncio

import pytest

from eclectus.kubeclient.api_errors import UnsureError
from eclectus.kubeclient.serving.access import ACCESS_REVIEWS
from eclectus.live import limits as bounds
from eclectus.live import pages as reader
from eclectus.model.explanation import OtherPod, PoolAhead, PoolsAhead
from explain_pages import JOB, NODE, POD, RIGHTS, World, answer, answers, serving


@pytest.fixture
def world():
    return World()


# -- what is answered ------------------------------------------------------------------------------------


def test_the_engine_explains_the_pod_without_a_request_to_the_api_server(world):
    status, body = answer(world, POD, "admin")
    assert (status, body["state"], body["summary"]) == (200, "unschedulable", "No room.")
    assert (world.asked, world.paths_read) == ([("shop", "web", 1234.0)], [])


def test_a_node_is_explained(world):
    status, body = answer(world, NODE, "admin")
    assert (status, body["conditions"]) == (200, ["full"])


def test_a_job_is_explained(world):
    status, body = answer(world, JOB, "tenant")
    assert (status, body["summary"]) == (200, "2 of its pods wait.")
    assert world.asked == [("shop", "sort", 1234.0)]


def test_a_pod_that_the_engine_does_not_know_is_explained_by_the_object(world):
    status, body = answer(world, "/explain/pods/shop/late", "admin")
    assert (status, body["state"], body["uid"]) == (200, "unknown", "uid-late")
    assert world.paths_read == ["/api/v1/namespaces/shop/pods/late"]


# -- to whom ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        (POD, "", 401),
        (POD, "made-up", 401),
        (POD, "other", 403),
        (POD, "tenant", 200),
        (POD, "one-pod", 200),
        ("/explain/pods/shop/late", "one-pod", 403),
        ("/explain/pods/bank/vault", "tenant", 403),
        ("/explain/pods/bank/none", "tenant", 403),
        (JOB, "one-pod", 403),
        (JOB, "other", 403),
        (JOB, "admin", 200),
        (NODE, "tenant", 403),
        (NODE, "other", 403),
        (NODE, "admin", 200),
    ],
)
def test_who_may_read_the_object_is_answered(world, path, token, status):
    assert answer(world, path, token)[0] == status


def test_who_may_not_read_it_learns_not_even_whether_it_exists(world):
    there, gone = answers(
        world, ("/explain/pods/bank/vault", "tenant"), ("/explain/pods/bank/none", "tenant")
    )
    assert there[2]["message"].replace("vault", "none") == gone[2]["message"]
    assert (world.paths_read, world.asked) == ([], [])


def test_the_refusal_is_that_of_the_api_server(world):
    status, body = answer(world, POD, "other")
    assert (status, body["kind"], body["reason"]) == (403, "Status", "Forbidden")
    asked = 'User "other" cannot get resource "pods" in API group "" in the namespace "shop"'
    assert body["message"] == f'pods "web" is forbidden: {asked}'


def test_other_pods_are_named_to_whom_may_read_them(world):
    (whole,), (part,), (none,) = (
        answer(world, POD, token)[1]["nearest"] for token in ("admin", "tenant", "one-pod")
    )
    hidden = {"namespace": "", "name": ""}
    assert [each["name"] for each in whole["fitsWithout"]] == ["beside", "vault"]
    assert [each["name"] for each in part["fitsWithout"]] == ["beside", ""]
    assert part["fitsWithout"][1].items() >= {**hidden, "priority": 3}.items()
    assert [each["name"] for each in none["fitsWithout"]] == ["", ""]


def test_pools_that_come_before_its_own_are_named_to_whom_may_list_pools(world):
    own, other = PoolAhead("default/shop", "shop", 1), PoolAhead("default/bank", "bank", 2)
    world.pools_ahead = (
        PoolsAhead("", (PoolAhead("lab", waiting_pods=3),)),
        PoolsAhead("default", (own, other)),
    )
    world.others = ()
    world.reviewed.rights = {**RIGHTS, "other": ["pods shop/web", "list pools.eclectus.dev"]}

    def shown(token):
        levels = answer(world, POD, token)[1]["poolsAhead"]
        return [(each["path"], each["waitingPods"]) for level in levels for each in level["pools"]]

    assert shown("admin") == [("lab", 3), ("default/shop", 1), ("default/bank", 2)]
    assert shown("tenant") == [("", 3), ("default/shop", 1), ("", 2)]
    assert shown("one-pod") == [("", 3), ("", 1), ("", 2)]
    assert shown("other") == [("lab", 3), ("", 1), ("", 2)]


def test_of_very_many_namespaces_only_some_are_asked_about(world):
    world.others = tuple(OtherPod(f"ns-{number:02}", "x") for number in range(50))
    world.reviewed.rights = {"tenant": ["pods shop", *(f"pods ns-{number:02}" for number in range(50))]}
    status, body = answer(world, POD, "tenant")
    named = [each["namespace"] for each in body["nearest"][0]["fitsWithout"] if each["name"]]
    assert (status, named) == (200, [f"ns-{number:02}" for number in range(reader.NAMESPACES_MOST)])
    assert world.reviewed.asked[ACCESS_REVIEWS] == 2 + reader.NAMESPACES_MOST


def test_without_access_control_everybody_is_answered_everything(world):
    world.access = None
    status, body = answer(world, POD)
    assert (status, body["nearest"][0]["fitsWithout"][1]["name"]) == (200, "vault")
    assert not world.reviewed.asked


# -- when not --------------------------------------------------------------------------------------------


def test_what_does_not_exist_is_not_found(world):
    for path, words in (
        ("/explain/pods/shop/none", 'pods "none" not found'),
        ("/explain/nodes/n2", 'nodes "n2" not found'),
    ):
        status, body = answer(world, path, "admin")
        assert (status, body["reason"], body["message"]) == (404, "NotFound", words)


@pytest.mark.parametrize("name", ["..", "..%2F..%2Fsecrets%2Fx", "web%3Fwatch=1", "WEB", "a%00", "x" * 300])
def test_a_name_that_is_none_gets_into_no_request_to_the_api_server(world, name):
    assert answer(world, f"/explain/pods/shop/{name}", "admin")[0] == 404
    assert (world.paths_read, world.reviewed.asked.total()) == ([], 0)


def test_a_replica_that_does_not_lead_names_the_one_that_does(world):
    world.why_not = "this replica does not lead; other_1 does"
    status, body = answer(world, POD, "admin")
    assert (status, body["reason"], body["message"]) == (503, "ServiceUnavailable", world.why_not)
    assert world.asked == []
    assert answer(world, POD, "made-up")[0] == 401, "to strangers nobody is named"


def test_an_api_server_that_cannot_be_asked_is_a_500(world):
    world.pod_error = UnsureError("GET /x", message="no answer")
    status, body = answer(world, "/explain/pods/shop/late", "admin")
    assert (status, body["message"]) == (500, "the object could not be read: GET /x: no answer")


def test_of_a_flood_few_are_answered_and_the_others_learn_when_to_ask_again(world):
    async def work():
        async with serving(world) as ask:
            return await asyncio.gather(*(ask(POD, "admin") for _ in range(200)))

    found = asyncio.run(work())
    statuses = [status for status, _, _ in found]
    assert set(statuses) == {200, 429}
    assert len(world.asked) == statuses.count(200) < 60, "what a second or two admit"
    assert statuses.count(200) >= bounds.SHARE_OF_ONE * bounds.WAITING_MOST
    refused = next(each for each in found if each[0] == 429)
    assert (refused[1]["Retry-After"], refused[2]["reason"]) == ("1", "TooManyRequests")
