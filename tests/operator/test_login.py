"""The operator's credentials, and how its own requests use them."""

import asyncio

import kopf
import pytest
from aiohttp import web

from eclectus.kubeclient.api_errors import (
    ConflictError,
    MissingError,
    NotDoneError,
    RejectedError,
    StaleError,
    UnauthenticatedError,
    UnsureError,
)
from eclectus.kubeclient.client import ObjectApi, connected, list_objects
from eclectus_operator.login import LOGIN_SECONDS, WatchLogin, credentials, login


class Server:
    """Gives the answers in order, and records the requests."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def handle(self, request):
        self.asked.append((request.method, request.path_qs, dict(request.headers), await request.text()))
        status, body = self.answers.pop(0)
        if body is None:
            request.transport.abort()
            return web.Response()
        return web.Response(status=status, text=body)


def talk(server, story, tokens=("t1",)):
    """Run a story with a client of the server; each login gives the next token."""
    left = list(tokens)

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"

        def log_in():
            return (
                kopf.ConnectionInfo(server=url, token=left.pop(0))
                if left
                else kopf.ConnectionInfo(server=url)
            )

        try:
            async with connected(credentials(log_in), 2.0, "eclectus-operator") as client:
                return await story(ObjectApi(client))
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def test_a_patch_is_a_merge_patch_and_a_list_may_ask_for_metadata_alone():
    server = Server((200, "{}"), (200, '{"items": []}'))

    async def story(api):
        await api.send("PATCH", "/apis/x/status", {"a": 1})
        await api.send("GET", "/api/v1/nodes", query={"labelSelector": "a=b"}, metadata_only=True)

    talk(server, story, tokens=("first", "second"))
    (_, path, headers, body), (_, query, brief, _) = server.asked
    assert (path, body) == ("/apis/x/status", '{"a":1}')
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert headers["User-Agent"] == "eclectus-operator"
    assert "PartialObjectMetadataList" in brief["Accept"]
    assert query == "/api/v1/nodes?labelSelector=a%3Db"
    assert headers["Authorization"] == "Bearer first", "one login gives the address and the token"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, '{"message": "no such pod"}', MissingError),
        (409, '{"message": "AlreadyExists"}', ConflictError),
        (422, '{"message": "invalid"}', RejectedError),
        (403, '{"message": "exceeded quota"}', RejectedError),
        (410, '{"message": "too old"}', StaleError),
        (429, '{"message": "later"}', NotDoneError),
        (408, '{"message": "slow"}', UnsureError),
        (500, "<html>", UnsureError),
        (200, "not json", UnsureError),
        (200, "[]", UnsureError),
        (200, None, UnsureError),
    ],
)
def test_a_failed_request_is_an_error_by_what_to_do_next(status, body, kind):
    async def story(api):
        with pytest.raises(kind) as raised:
            await api.send("GET", "/api/v1/pods")
        return str(raised.value)

    message = talk(Server((status, body)), story)
    assert message.startswith("GET /api/v1/pods: ")
    if body and body.startswith('{"message"'):
        assert body[13:-2] in message


def test_a_token_that_stays_refused_is_no_rejection_of_the_request():
    """RejectedError would end a run whose pod could still be created with a new token."""
    server = Server((401, '{"message": "who?"}'), (401, '{"message": "who?"}'))

    async def story(api):
        with pytest.raises(UnauthenticatedError, match=r"who\?") as raised:
            await api.send("POST", "/api/v1/pods", {})
        assert not isinstance(raised.value, RejectedError)

    talk(server, story)
    assert len(server.asked) == 2


def test_a_refused_token_is_read_again():
    server = Server((401, "{}"), (200, "{}"), (200, "{}"))

    async def story(api):
        await api.send("GET", "/a")
        await api.send("GET", "/b")

    talk(server, story, tokens=("old", "new"))
    assert [(path, headers["Authorization"]) for _, path, headers, _ in server.asked] == [
        ("/a", "Bearer old"),
        ("/a", "Bearer new"),
        ("/b", "Bearer new"),
    ]


def test_a_list_is_read_to_its_last_page():
    server = Server((200, '{"items": [1], "metadata": {"continue": "x y"}}'), (200, '{"items": [2]}'))

    async def story(api):
        return await list_objects(api, "/api/v1/pods")

    assert talk(server, story) == [1, 2]
    assert [path for _, path, _, _ in server.asked] == [
        "/api/v1/pods?limit=500",
        "/api/v1/pods?limit=500&continue=x+y",
    ]


def test_without_any_credentials_the_error_says_where_to_put_them(monkeypatch, tmp_path):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(kopf.LoginError, match="name one in KUBECONFIG"):
        login()


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_in_a_pod_the_service_is_found_by_its_address_so_that_no_dns_is_needed(monkeypatch, host, server):
    in_cluster = kopf.ConnectionInfo(server="https://kubernetes.default.svc", default_namespace="ns")
    monkeypatch.setattr(kopf, "login_with_service_account", lambda settings: in_cluster)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = login()
    assert (found.server, found.default_namespace) == (server, "ns")


class Clock:
    """The time, which passes while somebody sleeps."""

    def __init__(self):
        self.now, self.slept = 6_000.0, []

    async def sleep(self, seconds):
        self.now += seconds
        self.slept.append(seconds)

    def watch_login(self, log_in):
        return WatchLogin(log_in, lambda: self.now, self.sleep)


INFO = kopf.ConnectionInfo(server="https://api", default_namespace="ns")


def test_kopf_logs_in_again_after_a_while_so_that_its_watches_trust_new_certificates():
    clock = Clock()
    logins = clock.watch_login(lambda: INFO)
    first = asyncio.run(logins.log_in())
    assert first.expiration.timestamp() == 6_000.0 + LOGIN_SECONDS
    clock.now += LOGIN_SECONDS
    assert asyncio.run(logins.log_in()).expiration.timestamp() == 6_000.0 + 2 * LOGIN_SECONDS
    assert clock.slept == []


def test_a_login_that_is_refused_is_tried_again_ever_more_rarely_and_is_never_the_same():
    clock = Clock()
    logins = clock.watch_login(lambda: INFO)

    async def refused_ten_times():
        return [await logins.log_in() for _ in range(11)]

    found = asyncio.run(refused_ten_times())
    assert len({each.expiration for each in found}) == len(found), (
        "kopf ends with a login it knows as refused"
    )
    assert len(clock.slept) == 10
    assert clock.slept[0] <= 1
    assert 15 <= clock.slept[-1] <= 30


def test_credentials_that_cannot_be_read_leave_the_last_ones_in_use(caplog):
    clock, answers = Clock(), [INFO, OSError("no such file"), kopf.LoginError("none")]

    def log_in():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    logins = clock.watch_login(log_in)
    for _ in range(3):
        assert asyncio.run(logins.log_in()).server == INFO.server
        clock.now += LOGIN_SECONDS
    assert "no such file" in caplog.text


def test_without_any_credentials_the_first_login_is_an_error():
    def log_in():
        raise kopf.LoginError("none")

    with pytest.raises(kopf.LoginError):
        asyncio.run(Clock().watch_login(log_in).log_in())
