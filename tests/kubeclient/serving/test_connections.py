"""However many connections are open, and whatever for, health checks are answered over a new one."""

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
import uvloop

from eclectus.kubeclient.addresses import listen
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.certificate import certificate_of
from eclectus.kubeclient.serving.server_settings import ServerSettings

MOST = 8
LARGE = b"x" * 2**24  # more than the buffers of a connection hold
PLAIN, SECURE = ServerSettings(), ServerSettings(authentication="delegated")
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
UNVERIFIED = ssl.create_default_context()
UNVERIFIED.check_hostname, UNVERIFIED.verify_mode = False, ssl.CERT_NONE


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request, monkeypatch):
    monkeypatch.setattr(health, "CONNECTIONS_MOST", MOST)
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@asynccontextmanager
async def serving(settings):
    """The port of a server with a large page."""
    app = health.application({"loop": lambda: ""}, {}, lambda: LARGE)
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    async with health.serving(app, listening, certificate_of(settings)), asyncio.timeout(60):
        yield port


@asynccontextmanager
async def opened(port, count, tls=None, source="127.0.0.1"):
    """So many connections, as pairs of reader and writer, in the order in which they were opened."""
    local = (source, 0)
    pairs = [
        await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=local) for _ in range(count)
    ]
    try:
        yield pairs
    finally:
        for _, writer in pairs:
            writer.transport.abort()


async def check(port, settings):
    """The statuses of health checks, each over a connection of its own."""
    scheme, found = "https" if settings is SECURE else "http", []
    for path in ("/livez", "/readyz"):
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{scheme}://127.0.0.1:{port}{path}", ssl=False) as answer,
        ):
            found.append(answer.status)
    return found


async def read_to_end(reader):
    """How many bytes come until the server closes the connection."""
    count = 0
    with suppress(OSError):
        while part := await reader.read(2**16):
            count += len(part)
    return count


async def ask(pair, path):
    """Send a request; the first line of the answer."""
    reader, writer = pair
    writer.write(f"GET {path} HTTP/1.1\r\nHost: server\r\n\r\n".encode())
    return await reader.readline()


@pytest.mark.parametrize(("settings", "tls"), [(PLAIN, None), (SECURE, UNVERIFIED)], ids=["plain", "TLS"])
def test_of_idle_connections_the_newest_stay_open_and_the_others_are_closed(run, settings, tls):
    async def work():
        async with serving(settings) as port, opened(port, 3 * MOST, tls) as idle:
            await asyncio.gather(*(read_to_end(reader) for reader, _ in idle[: 2 * MOST]))
            answers = [await ask(pair, "/livez") for pair in idle[2 * MOST :]]
            return answers, await check(port, settings)

    assert run(work()) == ([b"HTTP/1.1 200 OK\r\n"] * MOST, [200, 200])


def test_connections_that_begin_no_handshake_keep_nobody_out(run):
    async def work():
        async with serving(SECURE) as port, opened(port, 3 * MOST) as silent:
            checked = await check(port, SECURE)
            await asyncio.gather(*(read_to_end(reader) for reader, _ in silent[: 2 * MOST]))
            return checked

    assert run(work()) == [200, 200]


def test_clients_that_do_not_read_their_pages_keep_nobody_out(run):
    async def work():
        async with serving(PLAIN) as port, opened(port, MOST) as slow:
            assert [await ask(pair, "/metrics") for pair in slow] == [b"HTTP/1.1 200 OK\r\n"] * MOST
            checked = await check(port, PLAIN)
            return checked, await read_to_end(slow[0][0])

    checked, received = run(work())
    assert checked == [200, 200]
    assert received < len(LARGE)


def test_an_address_with_many_connections_loses_its_own(run):
    async def work():
        async with (
            serving(PLAIN) as port,
            opened(port, 1) as [first],
            opened(port, 3 * MOST, source="127.0.0.2") as many,
        ):
            await asyncio.gather(*(read_to_end(reader) for reader, _ in many[: 2 * MOST]))
            return await ask(first, "/livez")

    assert run(work()) == b"HTTP/1.1 200 OK\r\n"


def test_connections_that_have_ended_take_no_place(run):
    async def work():
        async with serving(PLAIN) as port, opened(port, 1) as [first]:
            for _ in range(2 * MOST):
                await check(port, PLAIN)
            return await ask(first, "/livez")

    assert run(work()) == b"HTTP/1.1 200 OK\r\n"


def test_after_the_end_nothing_is_open(run):
    async def work():
        async with serving(SECURE) as port:
            silent = await asyncio.open_connection("127.0.0.1", port)
            await check(port, SECURE)
        assert await read_to_end(silent[0]) == 0
        silent[1].close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    run(work())


def test_a_connection_that_cannot_be_accepted_is_not_the_last(monkeypatch):
    async def work():
        loop, problems = asyncio.get_running_loop(), [OSError(24, "Too many open files")]
        accept = loop.sock_accept

        async def failing(listening):
            if problems:
                raise problems.pop()
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", failing)
        async with serving(PLAIN) as port:
            return await check(port, PLAIN), problems

    monkeypatch.setattr(health, "PAUSE_SECONDS", 0.0)
    assert asyncio.run(work()) == ([200, 200], [])
