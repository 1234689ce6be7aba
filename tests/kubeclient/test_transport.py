"""HTTP on kept connections, against servers that answer byte by byte what a test says."""

import asyncio
import ssl
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvloop

from eclectus.kubeclient import transport
from eclectus.kubeclient.addresses import joined
from eclectus.kubeclient.api_errors import NotDoneError, TooLargeError, UnsureError
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.kubeclient.transport import BUFFER_BYTES, Request, Transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def loop(request, monkeypatch):
    """The scheduler runs on uvloop, commands on asyncio."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", uvloop.run)


@asynccontextmanager
async def listening(serve, tls=None, host="127.0.0.1"):
    """A server on loopback; gives its port. What it is at is over with the block."""
    tasks = set()

    async def tracked(reader, writer):
        tasks.add(asyncio.current_task())
        with suppress(asyncio.CancelledError):
            await serve(reader, writer)
        writer.transport.abort()

    listener = await asyncio.start_server(tracked, host, 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Server:
    """Reads requests, and answers each with the next of these bytes, whole or in parts; None: it closes."""

    def __init__(self, *answers):
        self.answers, self.requests, self.connections = list(answers), [], 0

    async def serve(self, reader, writer):
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ontent-Length" in line), 0
                )
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                await self.send(writer, answer)
        if writer.can_write_eof():
            await writer.drain()
            writer.write_eof()
            await asyncio.sleep(0.01)

    async def send(self, writer, answer):
        for part in [answer] if isinstance(answer, bytes) else answer:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        if not isinstance(answer, bytes):
            raise asyncio.IncompleteReadError(b"", None)  # that was all

    def running(self, tls=None):
        return listening(self.serve, tls)


def asked(server, work, *, path="", seconds=5.0, headers=None, **endpoint):
    """What `work(client)` returns, of a client of this server."""

    async def run():
        async with server.running() as port:
            found = Endpoint(f"http://127.0.0.1:{port}{path}", **endpoint)
            async with connected(Credentials(found, headers or {}), seconds) as client:
                return await work(client)

    return asyncio.run(run())


def test_one_connection_carries_one_request_after_the_other():
    server = Server()

    async def work(client):
        for _ in range(5):
            assert await client.get("/x") == b"{}"
        await asyncio.gather(*[client.get("/x") for _ in range(3)])
        await asyncio.gather(*[client.get("/x") for _ in range(3)])

    asked(server, work)
    assert (len(server.requests), server.connections) == (11, 3)


def test_a_request_says_what_the_api_server_reads():
    server = Server()

    async def work(client):
        await client.send(
            "POST", "/api/v1/pods/a b", {"ä": 1}, query={"fieldManager": "x&y", "dryRun": "All"}
        )

    asked(server, work, path="/k8s/c-1/", headers={"Authorization": "Bearer t"})
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first == "POST /k8s/c-1/api/v1/pods/a%20b?fieldManager=x%26y&dryRun=All HTTP/1.1"
    assert {"Authorization: Bearer t", "Content-Length: 8", "Content-Type: application/json"} <= set(lines)
    assert sum(line.startswith("Host: 127.0.0.1:") for line in lines) == 1
    assert body == '{"ä":1}'.encode()


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_an_api_server_at_an_ipv6_address_is_asked_with_brackets():
    server = Server()

    async def run():
        async with listening(server.serve, host="::1") as port:
            url = f"http://{joined('::1', port)}"
            async with connected(Credentials(Endpoint(url)), 5.0) as client:
                await client.get("/api/v1/pods")
            return url

    url = asyncio.run(run())
    assert url.startswith("http://[::1]:")
    assert f"\r\nHost: {url.removeprefix('http://')}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
        [b"HTTP/1.1 200 O", b"K\r\nContent-Le", b"ngth: 5\r\n\r\nab", b"cde"],
        [b"HTTP/1.0 200 OK\r\n\r\nab", b"cde"],
    ],
    ids=["chunks", "after 100", "piece by piece", "to the end of the connection"],
)
def test_a_body_of_any_framing_is_read_whole(answer):
    assert asked(Server(answer), lambda client: client.get("/x")) == b"abcde"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        [b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nab"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"],
        [],
    ],
    ids=["closed", "no HTTP", "cut", "a chunk cut", "closed after the request"],
)
def test_an_answer_that_is_none_leaves_open_what_was_done(answer):
    async def work(client):
        with pytest.raises(UnsureError, match="POST /x: no answer"):
            await client.send("POST", "/x", {})
        return await client.send("POST", "/x", {})

    assert asked(Server(answer), work) == b"{}", "the next request has a new connection"


def test_a_silent_server_is_given_up_in_time_and_its_late_answer_is_nobodys():
    """The connection is closed, so that a later request does not take the answer for its own."""
    server = Server()
    send = server.send

    async def late(writer, answer):
        await asyncio.sleep(0.4 if len(server.requests) == 1 else 0.0)
        await send(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % len(server.requests))

    server.send = late

    async def work(client):
        with pytest.raises(UnsureError, match="TimeoutError"):
            await client.get("/x")
        return await client.send("GET", "/x", seconds=5.0)

    assert asked(server, work, seconds=0.1) == b"2"


def test_a_cancelled_request_keeps_no_connection():
    server = Server()

    async def silent(*_):
        await asyncio.sleep(60.0 if len(server.requests) == 1 else 0.0)
        await Server.send(server, *_)

    server.send = silent

    async def work(client):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.get("/x")
        assert await client.get("/x") == b"{}"

    asked(server, work)
    assert server.connections == 2


def closing_after_one():
    """A server whose first connection answers once and is closed after the next request has come."""
    return Server(OK, None)


def test_a_read_on_a_connection_that_was_closed_meanwhile_is_sent_again():
    server = closing_after_one()

    async def work(client):
        await client.get("/x")
        return await client.get("/x")

    assert asked(server, work) == b"{}"
    assert (server.connections, len(server.requests)) == (2, 3)


def test_a_write_on_a_connection_that_was_closed_meanwhile_is_not_sent_again():
    server = closing_after_one()

    async def work(client):
        await client.get("/x")
        with pytest.raises(UnsureError):
            await client.send("POST", "/x", {})

    asked(server, work)
    assert len(server.requests) == 2


def test_an_old_connection_and_one_of_former_certificates_are_not_used(monkeypatch):
    server = Server()

    async def work(client):
        await client.get("/x")
        credentials = client.credentials
        credentials.endpoint = Endpoint(credentials.endpoint.url)
        await client.get("/x")
        monkeypatch.setattr(transport, "KEPT_SECONDS", -1.0)
        await client.get("/x")

    asked(server, work)
    assert server.connections == 3


def test_a_connection_that_is_to_be_closed_is():
    server = Server(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async def work(client):
        await client.get("/x")
        await client.get("/x")

    asked(server, work)
    assert server.connections == 2


def test_what_nobody_has_asked_for_ends_the_connection():
    """As a server's 408 for a connection that rests: the next request must not take it for its answer."""
    server = Server(OK + b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async def work(client):
        assert await client.get("/x") == b"{}"
        return await client.send("POST", "/x", {})

    assert asked(server, work) == b"{}"


def test_an_answer_that_is_too_long_is_given_up():
    async def work(client):
        with pytest.raises(TooLargeError):
            await client.send("GET", "/x", most_bytes=1)
        return await client.send("GET", "/x", most_bytes=2)

    assert asked(Server(), work) == b"{}"


def test_a_token_of_two_lines_adds_no_header():
    async def work(client):
        with pytest.raises(NotDoneError, match="Authorization: a header must be one line"):
            await client.get("/x")

    server = Server()
    asked(server, work, headers={"Authorization": "Bearer t\r\nX-Remote-User: admin"})
    assert server.requests == []


def test_a_redirect_is_not_followed():
    """A token is sent to no other address than the one it was given for."""
    server = Server(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    assert asked(server, lambda client: client.get("/x")) == b""
    assert len(server.requests) == 1


def test_a_watch_that_is_read_slowly_holds_a_bounded_part_of_it():
    """The rest waits in the server."""
    whole = 40 * BUFFER_BYTES
    sent = [0]

    class Watch(Server):
        async def send(self, writer, answer):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(40):
                writer.write(b"%x\r\n%b\r\n" % (BUFFER_BYTES, b"x" * BUFFER_BYTES))
                await writer.drain()
                sent[0] += BUFFER_BYTES
            writer.write(b"0\r\n\r\n")

    async def work(client):
        async with client.stream("/x", {}, silence=5.0) as body:
            before = -1
            while before != sent[0]:
                before = sent[0]
                await asyncio.sleep(0.2)
            return before, sum([len(part) async for part in body.iter_any()])

    held, read = asked(Watch(), work)
    assert read == whole
    assert held < whole / 2


async def watched(client, silence, problem):
    """What a watch shows until it breaks off with this problem."""
    seen = []

    async def watch():
        async with client.stream("/x", {}, silence=silence) as body:
            async for part in body.iter_any():
                seen.append(part)

    with pytest.raises(UnsureError, match=problem):
        await watch()
    return seen


def test_a_silent_watch_ends():
    answer = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"]

    class Watch(Server):
        async def send(self, writer, answer):
            writer.write(answer[0])
            await asyncio.sleep(30.0)

    assert asked(Watch(answer), lambda client: watched(client, 0.1, "TimeoutError")) == [b"x"]


def test_a_watch_that_is_cut_is_an_error_after_what_has_come():
    answer = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"]

    assert asked(Server(answer), lambda client: watched(client, 5.0, "closed")) == [b"x"]


# -- a proxy -------------------------------------------------------------------------------------------


class Proxy:
    """Answers CONNECT with a status, and copies."""

    def __init__(self, status=b"200 Connection established"):
        self.status, self.heads, self.copying = status, [], []

    async def serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        writer.write(b"HTTP/1.1 %b\r\n\r\n" % self.status)
        if not self.status.startswith(b"200"):
            return
        port = int(self.heads[-1].split()[1].rpartition(":")[2])
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(self.copy(reader, server_writer), self.copy(server_reader, writer))

    async def copy(self, reader, writer):
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                writer.write(data)
        writer.close()


async def through(proxy, client_tls, server_tls, name=None):
    """The answer of a TLS server behind the proxy, twice."""
    async with listening(proxy.serve) as its_port, Server().running(server_tls) as port:
        url = f"http://me:p%40ss@127.0.0.1:{its_port}"
        endpoint = Endpoint(f"https://127.0.0.1:{port}", client_tls, name, url)
        async with connected(Credentials(endpoint, {"Authorization": "Bearer t"}), 5.0) as client:
            return port, [await client.get("/x"), await client.get("/x")]


@pytest.fixture
def tls(tmp_path, certificates):
    """Contexts of a client and of a server."""
    (tmp_path / "pem").write_bytes(certificates.good)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "pem")
    return ssl.create_default_context(cadata=certificates.authority.decode()), server


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_token(tls):
    proxy = Proxy()
    port, answers = asyncio.run(through(proxy, *tls))
    assert answers == [b"{}", b"{}"]
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==" in head
    assert "Bearer" not in head


def test_a_proxy_that_refuses_is_named(tls):
    with pytest.raises(NotDoneError, match=r"the proxy 127.0.0.1 answers 403 to CONNECT"):
        asyncio.run(through(Proxy(b"403 Forbidden"), *tls))


def test_closing_ends_what_is_under_way():
    class Silent(Server):
        async def send(self, *_):
            await asyncio.sleep(30.0)

    async def work():
        async with Silent().running() as port:
            under_test = Transport("x")
            asking = asyncio.create_task(
                under_test.exchange(
                    Endpoint(f"http://127.0.0.1:{port}"), {}, Request("GET", "/x"), seconds=30.0
                )
            )
            await asyncio.sleep(0.1)
            under_test.close()
            with pytest.raises(ConnectionError):
                await asking

    asyncio.run(work())
