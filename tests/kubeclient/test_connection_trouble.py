"""Why the API server cannot be reached: one line with what to change, then quiet, then one line."""

import asyncio
import logging
import ssl
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web

from eclectus.kubeclient.addresses import listen
from eclectus.kubeclient.api_errors import ADD_TO_CLUSTER_ROLE, ApiError, NotDoneError, RejectedError
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.kubeclient.timing import REPEAT_SECONDS, REPEAT_SECONDS_MOST, TroubleLog


async def answers_ok(_):
    return web.json_response({})


@asynccontextmanager
async def serving(port=0, tls=None, handler=answers_ok):
    app = web.Application()
    app.router.add_get("/x", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def credentials_for(url, tls=None, headers=None, by="the token in /k"):
    return Credentials(Endpoint(url, tls), headers or {"Authorization": "Bearer t"}, None, "/k", by)


async def get(client, times=1):
    """The last error of so many requests."""
    error = None
    for _ in range(times):
        try:
            await client.get("/x")
        except ApiError as raised:
            error = raised
    return error


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("expired", "its certificate has expired: renew it, or correct the clock of this machine"),
        (
            "misnamed",
            "its certificate is for other names than this: use a name of the certificate as `server`",
        ),
        (
            "strange",
            "is not signed by the certificate authority that is known for it: put the cluster's CA into",
        ),
    ],
)
def test_a_certificate_that_is_not_trusted_says_why(tmp_path, certificates, caplog, fault, words):
    (tmp_path / "pem").write_bytes(getattr(certificates, fault))
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_tls.load_cert_chain(tmp_path / "pem")
    trusted = ssl.create_default_context(cadata=certificates.authority.decode())

    async def work():
        async with (
            serving(tls=server_tls) as port,
            connected(credentials_for(f"https://127.0.0.1:{port}", trusted), 5.0) as client,
        ):
            return await get(client, times=3)

    error = asyncio.run(work())
    assert isinstance(error, NotDoneError)
    (line,) = messages(caplog)
    assert words in line
    assert "https://127.0.0.1:" in line


def test_plain_http_at_the_port_is_named(certificates, caplog):
    trusted = ssl.create_default_context(cadata=certificates.authority.decode())

    async def work():
        async with (
            serving() as port,
            connected(credentials_for(f"https://127.0.0.1:{port}", trusted), 5.0) as client,
        ):
            await get(client)

    asyncio.run(work())
    assert "no TLS connection" in messages(caplog)[0]
    assert "does `server` in /k name the right port?" in messages(caplog)[0]


def test_a_refused_connection_is_one_line_and_its_end_another(caplog):
    caplog.set_level(logging.INFO)
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]

    async def work():
        async with connected(credentials_for(f"http://127.0.0.1:{port}"), 5.0) as client:
            assert (await get(client, times=20)).is_logged
            async with serving(port):
                assert await get(client, times=3) is None

    asyncio.run(work())
    down, again = messages(caplog)
    assert down == (
        f"the API server at http://127.0.0.1:{port} cannot be reached: connection refused: "
        "is it running there, and is `server` in /k right?"
    )
    assert again.startswith("the API server answers again, after ")


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (
            "the token in /k",
            "does not accept the token in /k: expired, revoked, or of another cluster: replace it",
        ),
        ("no credentials", "does not accept requests without credentials: add a user with a token or"),
    ],
)
def test_refused_credentials_are_one_line(caplog, by, words):
    async def refuses(_):
        return web.json_response({"message": "Unauthorized"}, status=401)

    async def work():
        async with (
            serving(handler=refuses) as port,
            connected(credentials_for(f"http://127.0.0.1:{port}", by=by), 5.0) as client,
        ):
            return await get(client, times=5)

    assert asyncio.run(work()).is_logged
    (line,) = messages(caplog)
    assert words in line


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"advice": ADD_TO_CLUSTER_ROLE}, ADD_TO_CLUSTER_ROLE),
        ({}, "you lack this right: who administers the cluster can grant it"),
    ],
    ids=["an account of the chart", "a user"],
)
def test_a_missing_permission_says_to_each_what_to_do(options, advice):
    said = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope'

    async def forbids(_):
        return web.json_response({"message": said}, status=403)

    async def work():
        async with (
            serving(handler=forbids) as port,
            connected(credentials_for(f"http://127.0.0.1:{port}"), 5.0, **options) as client,
        ):
            return await get(client)

    error = asyncio.run(work())
    assert isinstance(error, RejectedError)
    assert str(error).endswith(f"; {advice}")


def test_a_trouble_that_goes_on_is_repeated_ever_more_rarely(caplog):
    clock = [0.0]
    trouble = TroubleLog(logging.getLogger("test"), lambda: clock[0])
    for second in range(24 * 3600):
        clock[0] = float(second)
        trouble.failed("down", f"down at {second}")
    logged_at = [record.created and int(record.getMessage().split()[-1]) for record in caplog.records]
    gaps = [later - earlier for earlier, later in pairwise(logged_at)]
    assert (logged_at[0], gaps[0]) == (0, REPEAT_SECONDS)
    assert gaps == sorted(gaps)
    assert (max(gaps), len(logged_at) < 60) == (REPEAT_SECONDS_MOST, True)


def test_a_flapping_trouble_is_bounded_and_a_new_kind_is_logged_at_once(caplog):
    caplog.set_level(logging.INFO)
    clock = [0.0]
    trouble = TroubleLog(logging.getLogger("test"), lambda: clock[0])
    for second in range(50):
        clock[0] = float(second)
        trouble.failed("down", "down")
        trouble.succeeded("up")
    assert messages(caplog) == ["down", "up, after 0 s"]
    trouble.failed("expired", "expired")
    assert messages(caplog)[-1] == "expired"
