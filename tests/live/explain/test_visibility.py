"""The aggregated API: who is believed, what is refused, and what an answer looks like.

Two authorities, one of which the ConfigMap names, and clients with certificates of each.
"""

import asyncio
import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest

from eclectus.api.names import VISIBILITY_API, VISIBILITY_GROUP
from eclectus.config.process_settings import VisibilitySettings
from eclectus.kubeclient.api_errors import UnsureError
from eclectus.kubeclient.serving.certificate import self_signed
from eclectus.kubeclient.serving.front_proxy import PUBLISHED
from eclectus.live import visibility as visibilities
from eclectus.live.visibility import Proven, Visibility, application, caller_of
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

    @asynccontextmanager
    async def serving(self):
        """Asks for a path with headers and as a client; answers with (status, JSON)."""
        proven = Proven(self.api, self_signed("visibility.eclectus-system.svc"))
        await proven.read()
        pages = self.world.pages()
        pages.caller = caller_of
        app = application(proven, pages.pods, asyncio.get_running_loop())
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

            async def ask(path, headers=TENANT):
                async with session.get(f"https://127.0.0.1:{self.port}{path}", headers=headers) as answer:
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
    assert resources[1]["resources"][0]["name"] == "pods/explanation"
    assert [(status, body["reason"]) for status, body in others] == [(404, "NotFound")] * 2


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
        running = asyncio.create_task(server.run(place.world.pages().pods, asyncio.get_running_loop()))
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


def test_the_address_is_that_by_which_the_api_server_is_reached():
    assert visibilities.own_address("https://127.0.0.1:6443") == "127.0.0.1"
