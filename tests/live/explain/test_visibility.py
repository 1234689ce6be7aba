"""The aggregated API: who is believed, what is refused, and what an answer looks like.

Two authorities, one of which the ConfigMap names, and clients with certificates of each.
"""

import asyncio
import ssl
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from eclectus.api.names import VISIBILITY_API, VISIBILITY_GROUP
from eclectus.config.process_settings import VisibilitySettings
from eclectus.kubeclient.api_errors import UnsureError
from eclectus.kubeclient.serving.certificate import self_signed
from eclectus.kubeclient.serving.front_proxy import PUBLISHED
from eclectus.live import lists
from eclectus.live import visibility as visibilities
from eclectus.live.inbox import Inbox
from eclectus.live.said_progress import ProgressPage
from eclectus.live.visibility import Proven, Visibility, application, caller_of, resources_of
from eclectus.model.events import ProgressSaid
from eclectus.model.explanation import Listed
from eclectus_e2e.testbed.controlplane.certificates import Authority
from explain_pages import World

BASE = f"/apis/{VISIBILITY_API}"
POD = f"{BASE}/namespaces/shop/pods/web/explanation"
TENANT = {"X-Remote-User": "tenant", "X-Remote-Group": "system:authenticated"}


class Publishing:
    """The API server: the ConfigMap, and what is patched."""

    def __init__(self, authority, **data):
        self.data = {
            "client-ca-file": "",
            "requestheader-client-ca-file": authority.certificate.read_text(),
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            **data,
        }
        self.error, self.patched, self.has_patched = None, [], asyncio.Event()

    async def send(self, method, path, body=None, *, seconds):
        assert seconds, "each request has a time limit"
        if self.error is not None:
            raise self.error
        if method == "PATCH":
            self.patched.append((path, body))
            self.has_patched.set()
            return {}
        assert (method, path) == ("GET", PUBLISHED)
        return {"data": self.data}


class Place:
    """Both authorities, and clients of them."""

    def __init__(self, folder):
        self.front, self.users = Authority(folder / "front"), Authority(folder / "users")
        self.proxy = self.front.issue("proxy", "front-proxy-client")
        self.misnamed = self.front.issue("misnamed", "somebody")
        self.user = self.users.issue("user", "front-proxy-client", "system:masters")
        self.world = World()
        self.api = Publishing(self.front)
        self.now = 1000.0
        self.said = Inbox()
        self.progress = ProgressPage(
            self.world,
            self.said,
            lambda uid: None,
            self.world.limits,
            lambda: self.world.why_not,
            caller_of,
        )

    @asynccontextmanager
    async def serving(self):
        """Asks for a path with headers and as a client; answers with (status, JSON)."""
        proven = Proven(self.api, self_signed("visibility.eclectus-system.svc"))
        await proven.read()
        pages = self.world.pages()
        pages.caller = caller_of
        resources = resources_of(pages, self.progress)
        app = application(proven, resources, asyncio.get_running_loop(), lambda: self.now)
        listening = visibilities.listen("127.0.0.1", 0)
        async with visibilities.serving(app, listening, visibilities._Followed(proven)):
            self.proven, self.port = proven, listening.getsockname()[1]
            yield self

    @asynccontextmanager
    async def connected(self, pair):
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if pair is not None:
            tls.load_cert_chain(pair.certificate, pair.key)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:

            async def ask(path, headers=TENANT, said=None):
                url, method = f"https://127.0.0.1:{self.port}{path}", "GET" if said is None else "POST"
                async with session.request(method, url, headers=headers, data=said) as answer:
                    return answer.status, await answer.json()

            yield ask


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("authorities")


@pytest.fixture
def place(folder):
    return Place(folder)


def answers(place, *requests, pair="proxy"):
    async def work():
        async with place.serving(), place.connected(pair and getattr(place, pair)) as ask:
            return [await ask(*each) for each in requests]

    return asyncio.run(work())


def answer(place, *request, pair="proxy"):
    return answers(place, request, pair=pair)[0]


def test_who_may_get_the_pod_has_it_explained_as_an_object(place):
    status, body = answer(place, POD)
    assert status == 200
    assert (body["kind"], body["apiVersion"]) == ("PodExplanation", VISIBILITY_API)
    assert body["metadata"] == {"namespace": "shop", "name": "web"}
    assert (body["state"], body["summary"]) == ("unschedulable", "No room.")
    assert [each["name"] for each in body["nearest"][0]["fitsWithout"]] == ["beside", ""], "redacted"


def test_all_that_the_headers_say_of_the_user_is_asked_about(place):
    headers = [
        ("X-Remote-User", "tenant"),
        ("X-Remote-Uid", "u7"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Example.com%2fscopes", "a"),
        ("X-Remote-Extra-Example.com%2fscopes", "b"),
    ]
    assert answer(place, POD, headers)[0] == 200
    spec = place.world.reviewed.specs[0]
    assert (spec["user"], spec["uid"], spec["groups"]) == ("tenant", "u7", ["dev", "system:authenticated"])
    assert spec["extra"] == {"example.com/scopes": ["a", "b"]}
    assert spec["resourceAttributes"] == {
        "verb": "get",
        "resource": "pods",
        "namespace": "shop",
        "name": "web",
    }


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"X-Remote-User": "other"}, 403), ({}, 401), ({"X-Remote-User": ""}, 401)],
    ids=["no right", "nobody", "a name that is empty"],
)
def test_who_may_not_get_the_pod_learns_nothing(place, headers, status):
    found, body = answer(place, POD, headers)
    assert (found, body["kind"], "No room." in str(body)) == (status, "Status", False)
    assert not place.world.asked


def test_a_token_counts_for_nothing_here(place):
    assert answer(place, POD, {"Authorization": "Bearer admin"})[0] == 401


@pytest.mark.parametrize("path", [POD, BASE, "/apis", f"/apis/{VISIBILITY_GROUP}", "/elsewhere"])
@pytest.mark.parametrize("pair", [None, "user"], ids=["no certificate", "another authority's"])
def test_without_a_certificate_of_the_front_proxys_authority_there_is_no_connection(place, path, pair):
    with pytest.raises((aiohttp.ClientError, OSError)):
        answer(place, path, {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, pair=pair)
    assert not place.world.asked
    assert not place.world.reviewed.asked


@pytest.mark.parametrize("path", [POD, BASE, "/apis", f"/apis/{VISIBILITY_GROUP}", "/elsewhere"])
def test_of_a_certificate_for_another_name_no_header_is_believed(place, path):
    status, body = answer(place, path, {"X-Remote-User": "admin"}, pair="misnamed")
    assert (status, body["reason"]) == (401, "Unauthorized")
    assert "'somebody'" in body["message"]
    assert not place.world.asked
    assert not place.world.reviewed.asked


def test_without_allowed_names_whoever_the_authority_certifies_is_believed(place):
    place.api.data["requestheader-allowed-names"] = "[]"
    assert answer(place, POD, pair="misnamed")[0] == 200


def test_an_authority_of_users_is_believed_for_allowed_names_alone(place):
    """Else everybody with a client certificate could say that they are anybody."""
    place.api.data |= {
        "client-ca-file": place.front.certificate.read_text(),
        "requestheader-allowed-names": "[]",
    }
    proven = Proven(place.api, self_signed())
    asyncio.run(proven.read())
    assert proven.front_proxy is None
    place.api.data["requestheader-allowed-names"] = '["front-proxy-client"]'
    asyncio.run(proven.read())
    assert proven.front_proxy is not None


@pytest.mark.parametrize(
    "data",
    [
        {"requestheader-client-ca-file": ""},
        {"requestheader-client-ca-file": "nonsense"},
        {"requestheader-allowed-names": "nonsense"},
    ],
)
def test_as_long_as_it_is_not_known_whom_to_believe_nobody_is(place, data, caplog):
    place.api.data |= data
    proven = Proven(place.api, self_signed())
    asyncio.run(proven.read())
    assert (proven.front_proxy, proven.known.is_set()) == (None, False)
    assert next(iter(data)).removesuffix("-file") in caplog.text


def test_a_replaced_authority_counts_at_once_also_on_open_connections(place):
    async def work():
        async with place.serving(), place.connected(place.proxy) as ask:
            before = await ask(POD)
            place.api.data["requestheader-client-ca-file"] = place.users.certificate.read_text()
            await place.proven.read()
            on_the_old = await ask(POD)
            with pytest.raises((aiohttp.ClientError, OSError)):
                await ask(POD)
            async with place.connected(place.user) as new:
                return before[0], on_the_old[0], (await new(POD))[0]

    assert asyncio.run(work()) == (200, 401, 200)


def test_what_cannot_be_read_again_stays_as_it_was(place):
    async def work():
        async with place.serving(), place.connected(place.proxy) as ask:
            place.api.error = UnsureError("GET", message="no answer")
            await place.proven.read()
            return (await ask(POD))[0]

    assert asyncio.run(work()) == 200


def test_a_standby_says_who_leads_to_whom_may_get_the_pod(place):
    place.world.why_not = "this replica does not lead; b does"
    (status, body), (refused, _) = answers(place, (POD,), (POD, {"X-Remote-User": "other"}))
    assert (status, body["kind"], body["message"]) == (503, "Status", "this replica does not lead; b does")
    assert refused == 403


def test_the_api_describes_itself_and_knows_no_other_path(place):
    paths = ("/apis", f"/apis/{VISIBILITY_GROUP}", BASE, f"{BASE}/pods", "/openapi/v3")
    all_groups, group, resources, *others = answers(place, *((each,) for each in paths))
    assert all_groups[1]["groups"][0]["name"] == group[1]["name"] == VISIBILITY_GROUP
    served = {each["name"]: each for each in resources[1]["resources"]}
    assert served["pods/explanation"]["verbs"] == ["get"]
    assert (served["pods/explanation"]["namespaced"], served["nodes/explanation"]["namespaced"]) == (
        True,
        False,
    )
    assert served["pendingpods"] == {
        "name": "pendingpods",
        "singularName": "pendingpod",
        "namespaced": True,
        "kind": "PendingPod",
        "verbs": ["list"],
    }
    assert [(status, body["reason"]) for status, body in others] == [(404, "NotFound")] * 2


@pytest.mark.parametrize(
    ("path", "kind", "metadata", "user"),
    [
        (
            "/namespaces/shop/jobs/sort/explanation",
            "JobExplanation",
            {"namespace": "shop", "name": "sort"},
            "tenant",
        ),
        ("/nodes/n1/explanation", "NodeExplanation", {"name": "n1"}, "admin"),
        (
            "/namespaces/shop/pods/web/what-if?whatIf=request.cpu%3D1",
            "WhatIfExplanation",
            {"namespace": "shop", "name": "web"},
            "tenant",
        ),
    ],
    ids=["job", "node", "what-if"],
)
def test_jobs_nodes_and_what_would_be_different_are_explained_to_the_same_people_as_below_explain(
    place, path, kind, metadata, user
):
    status, body = answer(place, BASE + path, {"X-Remote-User": user})
    assert (status, body["kind"], body["metadata"]) == (200, kind, metadata)
    assert answer(place, BASE + path, {"X-Remote-User": "other"})[0] == 403


def test_what_is_wrong_with_a_what_if_is_a_bad_request(place):
    status, body = answer(place, f"{BASE}/namespaces/shop/pods/web/what-if?colour=red")
    assert (status, body["reason"]) == (400, "BadRequest")
    assert "there is no parameter 'colour'" in body["message"]


# -- how far pods are --------------------------------------------------------------------------------

PROGRESS = f"{BASE}/namespaces/shop/pods/web/progress"
OF_POD = {
    "X-Remote-User": "system:serviceaccount:shop:builder",
    "X-Remote-Group": "system:serviceaccounts:shop",
    "X-Remote-Extra-Authentication.kubernetes.io%2fpod-name": "web",
    "X-Remote-Extra-Authentication.kubernetes.io%2fpod-uid": "uid-web",
}


def test_a_pod_says_how_far_it_is_with_its_own_token(place):
    status, body = answer(place, PROGRESS, OF_POD, b"0.42")
    assert (status, body["kind"], body["metadata"]["name"]) == (200, "PodProgress", "web")
    assert (body["progress"], body["followed"]) == (0.42, True)
    assert asyncio.run(place.said.take(0.0)) == [ProgressSaid("uid-web", 0.42)]
    assert not place.world.reviewed.asked, "the API server has reviewed it already"


def test_nobody_else_does_and_nothing_large_is_read(place):
    other = OF_POD | {"X-Remote-Extra-Authentication.kubernetes.io%2fpod-name": "late"}
    requests = [
        (PROGRESS, other, b"0.42"),
        (PROGRESS, ADMIN, b"0.42"),
        (PROGRESS, OF_POD, b"1" * (visibilities.BODY_MOST + 1)),
    ]
    found = answers(place, *requests)
    assert [status for status, _ in found] == [403, 403, 413]
    assert found[2][1]["reason"] == "RequestEntityTooLarge"
    assert len(place.said) == 0


def test_the_api_says_that_progress_is_created(place):
    resources = answer(place, BASE)[1]["resources"]
    (found,) = (each for each in resources if each["name"] == "pods/progress")
    assert (found["verbs"], found["namespaced"], found["kind"]) == (["create"], True, "PodProgress")


# -- the pods that wait ------------------------------------------------------------------------------

PENDING, ALL_PENDING = f"{BASE}/namespaces/shop/pendingpods", f"{BASE}/pendingpods"
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
ADMIN = {"X-Remote-User": "admin"}


def test_who_may_list_the_pods_of_a_namespace_learns_which_of_them_wait(place):
    status, body = answer(place, PENDING)
    assert (status, body["kind"], body["apiVersion"]) == (200, "PendingPodList", VISIBILITY_API)
    first, last = body["items"]
    assert first["metadata"] == {
        "namespace": "shop",
        "name": "web",
        "uid": "uid-web",
        "creationTimestamp": "1970-01-01T00:18:20Z",
    }
    assert (first["state"], first["reason"], first["age"], first["ahead"]) == (
        "active",
        "No\nroom.",
        134.0,
        None,
    )
    assert (last["metadata"]["creationTimestamp"], last["ahead"]) == (None, 2)
    assert place.world.asked == [("shop", None, 500, 1234.0)]
    assert place.world.reviewed.specs[0]["resourceAttributes"] == {
        "verb": "list",
        "resource": "pods",
        "namespace": "shop",
    }


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        (PENDING, "other", 403),
        (PENDING, "one-pod", 403),
        (ALL_PENDING, "tenant", 403),
        (ALL_PENDING, "admin", 200),
    ],
)
def test_who_may_not_list_the_pods_learns_nothing_of_them(place, path, user, status):
    found, body = answer(place, path, {"X-Remote-User": user})
    assert (found, "web" in str(body)) == (status, status == 200)
    assert place.world.asked == ([] if status == 403 else [("", None, 500, 1234.0)])


def test_kubectl_gets_a_table_with_the_namespace_of_each_row(place):
    status, body = answer(place, PENDING, {**TENANT, "Accept": AS_TABLE})
    assert (status, body["kind"], body["apiVersion"]) == (200, "Table", "meta.k8s.io/v1")
    names = [each["name"] for each in body["columnDefinitions"] if each["priority"] == 0]
    assert names == ["Name", "State", "Ahead", "Priority", "Age", "Reason"]
    row, other = body["rows"]
    assert row["cells"] == ["web", "active", "-", 5, "2m", "-", "a", "-", "No room."]
    assert other["cells"][2:5] == ["2", 5, "-"]
    assert row["object"]["metadata"]["namespace"] == "shop"


def test_a_page_says_how_the_next_one_is_asked_for(place):
    place.world.listed = Listed(place.world.listed.items, 7, (1100.0, "shop", "late"))
    _, body = answer(place, f"{PENDING}?limit=2")
    assert body["metadata"]["remainingItemCount"] == 7
    answer(place, f"{PENDING}?limit=9000&continue={body['metadata']['continue']}")
    asked = [each[1:3] for each in place.world.asked]
    assert asked == [(None, 2), ((1100.0, "shop", "late"), lists.ITEMS_MOST)]


LONG = urlsafe_b64encode(b'[1,"shop","late"]'.ljust(lists.TOKEN_MOST)).decode()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=-1", "limit must be a whole number"),
        ("continue=x", "metadata.continue"),
        ("continue=WzEsMl0=", "metadata.continue"),
        (f"continue={LONG}", "metadata.continue"),
        ("watch=true", "watch is not served here"),
        ("labelSelector=a%3Db", "labelSelector is not served here"),
        ("fieldSelector=a%3Db", "fieldSelector is not served here"),
    ],
)
def test_what_a_list_does_not_serve_is_named(place, query, words):
    status, body = answer(place, f"{PENDING}?{query}")
    assert (status, body["reason"]) == (400, "BadRequest")
    assert words in body["message"]
    assert not place.world.asked


# -- nodes and pools -----------------------------------------------------------------------------------

SPEEDS, POOLS = f"{BASE}/nodespeeds", f"{BASE}/poolstandings"


def test_who_may_list_nodes_learns_how_fast_they_are_at_work_that_they_may_read(place):
    (item,) = answer(place, SPEEDS, ADMIN)[1]["items"]
    assert item["metadata"] == {"name": "n1"}
    assert (item["speed"], item["state"], [each["name"] for each in item["classes"]]) == (
        1.25,
        "live",
        ["shop/a", "bank/b"],
    )
    (item,) = answer(place, SPEEDS, {"X-Remote-User": "operator"})[1]["items"]
    assert [each["name"] for each in item["classes"]] == ["shop/a"]


def test_speeds_are_a_table(place):
    _, body = answer(place, SPEEDS, {**ADMIN, "Accept": AS_TABLE})
    assert body["rows"][0]["cells"] == ["n1", "1.25", "live", "90%", 12, "-", 2]


def test_who_may_list_pools_learns_how_they_stand(place):
    (item,) = answer(place, POOLS, ADMIN)[1]["items"]
    assert (item["metadata"], item["path"], item["waitingPods"]) == ({"name": "vision"}, "research/vision", 2)
    assert (item["resources"][0]["held"], item["belowMinimum"]) == (3000, 90.0)
    _, body = answer(place, POOLS, {**ADMIN, "Accept": AS_TABLE})
    assert body["rows"][0]["cells"] == ["vision", "1.5 cpu", "4 cpu", "3 cpu", 2, "90s", 1, "research/vision"]


@pytest.mark.parametrize(
    ("path", "user", "message"),
    [
        (SPEEDS, "tenant", 'nodes is forbidden: User "tenant" cannot list resource "nodes" in API group ""'),
        (
            POOLS,
            "operator",
            'pools.eclectus.dev is forbidden: User "operator" cannot list resource "pools" in API group '
            '"eclectus.dev"',
        ),
    ],
)
def test_who_may_not_list_them_learns_nothing(place, path, user, message):
    status, body = answer(place, path, {"X-Remote-User": user})
    assert (status, body["message"]) == (403, f"{message} at the cluster scope")


def test_a_standby_lists_nothing_and_says_who_leads(place):
    place.world.why_not = "this replica does not lead; b does"
    assert answer(place, PENDING)[1]["message"] == "this replica does not lead; b does"
    assert not place.world.asked


def test_a_new_leader_is_believed_by_the_same_connection(place):
    """As where the API server keeps a connection to a replica that lost the Lease and won it again."""

    async def work():
        async with place.serving(), place.connected(place.proxy) as ask:
            place.world.why_not = "this replica does not lead; b does"
            before = await ask(PENDING)
            place.world.why_not = ""
            return before[0], (await ask(PENDING))[0]

    assert asyncio.run(work()) == (503, 200)


def test_of_a_namespaces_flood_questions_about_others_are_still_answered(place):
    async def work():
        async with place.serving(), place.connected(place.proxy) as ask:
            flood = [await ask(PENDING) for _ in range(30)]
            return flood, await ask(ALL_PENDING, ADMIN)

    flood, other = asyncio.run(work())
    assert 429 in [status for status, _ in flood]
    assert other[0] == 200


def test_a_question_that_takes_too_long_is_answered(place, monkeypatch):
    monkeypatch.setattr(visibilities, "ANSWER_SECONDS", 0.01)
    place.world.reviewed.gate.clear()
    status, body = answer(place, POD)
    assert (status, body["reason"]) == (503, "ServiceUnavailable")


@pytest.mark.parametrize("leads", [True, False])
def test_only_the_leader_says_where_it_is(place, leads):
    settings = VisibilitySettings("eclectus-system/visibility", "127.0.0.1", 0, "192.0.2.7")

    async def work():
        looked = asyncio.Event()

        def asked():
            looked.set()
            return leads

        server = Visibility(settings, place.api, "https://127.0.0.1:6443", asked)
        resources = resources_of(place.world.pages(), place.progress)
        running = asyncio.create_task(server.run(resources, asyncio.get_running_loop()))
        await (place.api.has_patched if leads else looked).wait()
        while leads and len(place.api.patched) < 2:  # noqa: ASYNC110 — the fake sets no event
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return place.api.patched

    patched = asyncio.run(work())
    assert [path.rpartition("/")[2] for path, _ in patched] == (
        ["v1alpha1.visibility.eclectus.dev", "visibility"] if leads else []
    )
    if leads:
        assert patched[1][1]["endpoints"][0]["addresses"] == ["192.0.2.7"]


def test_a_replica_that_begins_to_lead_says_where_it_is(place, monkeypatch):
    monkeypatch.setattr(visibilities, "STANDBY_SECONDS", 0.0)
    settings = VisibilitySettings("eclectus-system/visibility", "127.0.0.1", 0, "192.0.2.7")
    before = iter([False] * 6)

    async def work():
        server = Visibility(settings, place.api, "https://127.0.0.1:6443", lambda: next(before, True))
        resources = resources_of(place.world.pages(), place.progress)
        running = asyncio.create_task(server.run(resources, asyncio.get_running_loop()))
        await place.api.has_patched.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())
    assert next(before, None) is None, "it was a standby first"
    assert place.api.patched[0][0].endswith("v1alpha1.visibility.eclectus.dev")


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")])
@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_the_address_is_that_by_which_the_api_server_is_reached(host, address):
    assert visibilities.own_address(f"https://{host}:6443") == address


def test_who_asks_too_much_is_refused_for_a_second_without_the_loop_that_decides(place):
    tried, limits = [], place.world.limits
    admitted = limits.admitted
    limits.admitted = lambda namespace: tried.append(namespace) or admitted(namespace)

    async def work():
        async with place.serving(), place.connected(place.proxy) as ask:
            found = [await ask(POD) for _ in range(30)]
            asked = len(tried)
            others = await ask(POD, {"X-Remote-User": "admin"}), await ask(f"{BASE}/nodes/n1/explanation")
            assert len(tried) == asked + 1, "another user is not refused for it"
            place.now += visibilities.RETRY_SECONDS
            place.world.clock += visibilities.RETRY_SECONDS
            return asked, found, others, await ask(POD)

    asked, found, others, later = asyncio.run(work())
    statuses = [status for status, _ in found]
    assert statuses == [200] * (asked - 1) + [429] * (31 - asked)
    assert found[-1] == found[asked - 1]
    assert [status for status, _ in others] == [429, 403], "each by its own right"
    assert later[0] == 200
