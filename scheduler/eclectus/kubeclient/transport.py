"""HTTP/1.1 to one API server, on kept connections that carry one request at a time; httptools parses answers.

A pod that is placed costs two requests. A general client spends on each more than the engine spends on the
pod (`make bench BENCH="--only requests"`); what is left here is what the API server needs: TLS, time limits,
bodies of any framing, answers that are read as they come, and a proxy with CONNECT.

A request that finds no connection raises NoConnectionError: it was never sent. Any other OSError or
TimeoutError leaves open whether the server has acted.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

from httptools import HttpParserError, HttpResponseParser

from eclectus.kubeclient.credentials import Endpoint

CONNECT_SECONDS = 5.0  # an API server that accepts no connection for this long counts as down
KEPT_SECONDS = 75.0  # that a connection may rest: kube-apiserver closes it after 90
BUFFER_BYTES = 2**20  # of an answer that is read as it comes; no more is received meanwhile
_SAFE = "/%:@!$&'()*+,;=~"  # in a path; what is quoted already stays so


class NoConnectionError(Exception):
    """The request was not sent; the cause is an OSError or a TimeoutError."""


class TooLongError(Exception):
    """The answer has more bytes than the caller takes."""


class Request(NamedTuple):
    """One request. `headers`: lines that end with CR LF, besides those that every request has."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] | None = None  # a text is one value, other sequences are several
    headers: str = ""
    body: bytes | None = None


class Answer(NamedTuple):
    """An answer; names of headers are capitalised as `Retry-After`."""

    status: int
    raw_headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The last value of each header."""
        return {name.decode("latin-1").title(): value.decode("latin-1") for name, value in self.raw_headers}


class Transport:
    """Requests to one server with one set of headers."""

    def __init__(self, user_agent: str) -> None:
        self._user_agent = user_agent
        self._kept: list[_Connection] = []  # that rest; the one that was used last is the next
        self._open = set[_Connection]()
        self._head_of: tuple[Endpoint, Mapping[str, str]] | None = None
        self._base = self._head = ""  # of every target, and the lines of every head

    async def exchange(
        self,
        endpoint: Endpoint,
        credentials: Mapping[str, str],
        request: Request,
        *,
        seconds: float,
        most_bytes: int | None = None,
    ) -> Answer:
        """The whole answer. Raises NoConnectionError, TooLongError, OSError, TimeoutError.

        A GET on a connection that the server has closed meanwhile is sent once more.
        """
        data = self._bytes_of(endpoint, credentials, request)
        deadline = asyncio.get_running_loop().time() + seconds
        connection = self._rested(endpoint)
        if connection is not None:
            try:
                return await connection.exchange(data, deadline, most_bytes)
            except ConnectionError:
                if request.method != "GET" or connection.has_answered:
                    raise
        connection = await self._connected(endpoint, seconds)
        return await connection.exchange(data, deadline, most_bytes)

    @asynccontextmanager
    async def stream(
        self, endpoint: Endpoint, credentials: Mapping[str, str], request: Request, *, silence: float
    ) -> AsyncIterator[tuple[int, dict[str, str], Body]]:
        """Status, headers and the body as it comes; TimeoutError after `silence` seconds of nothing."""
        data = self._bytes_of(endpoint, credentials, request)
        connection = self._rested(endpoint) or await self._connected(endpoint, CONNECT_SECONDS)
        try:
            body = connection.stream(data, silence)
            await body.wait_for_head()
            yield body.status, Answer(body.status, body.raw_headers, b"").headers, body
        finally:
            connection.abort()

    def close(self) -> None:
        """Close all connections, those in use too."""
        for connection in list(self._open):
            connection.abort()

    def _bytes_of(self, endpoint: Endpoint, credentials: Mapping[str, str], request: Request) -> bytes:
        known = self._head_of
        if known is None or known[0] is not endpoint or known[1] is not credentials:
            self._base, self._head = _base(endpoint), self._common_head(endpoint, credentials)
            self._head_of = endpoint, credentials
        method, path, query, headers, body = request
        target = f"{self._base}/{quote(path.lstrip('/'), _SAFE)}"
        if query:
            target = f"{target}?{urlencode(query, doseq=True)}"
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {target} HTTP/1.1\r\n{self._head}{headers}{length}\r\n".encode()
        return head if body is None else head + body

    def _common_head(self, endpoint: Endpoint, credentials: Mapping[str, str]) -> str:
        host = urlsplit(endpoint.url).netloc.rpartition("@")[2]
        headers = {"Host": host, "User-Agent": self._user_agent, "Accept-Encoding": "identity", **credentials}
        if bad := [name for name, value in headers.items() if "\r" in value or "\n" in value]:
            raise NoConnectionError from ValueError(f"{', '.join(bad)}: a header must be one line")
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def _rested(self, endpoint: Endpoint) -> _Connection | None:
        """A kept connection to this endpoint, with the certificates of now; others are closed."""
        oldest = asyncio.get_running_loop().time() - KEPT_SECONDS
        while self._kept:
            connection = self._kept.pop()
            if connection.endpoint is endpoint and connection.rests_since > oldest and not connection.is_lost:
                return connection
            connection.abort()
        return None

    async def _connected(self, endpoint: Endpoint, seconds: float) -> _Connection:
        try:
            async with asyncio.timeout(min(seconds, CONNECT_SECONDS)):
                connection = await _connect(endpoint, self)
        except (OSError, TimeoutError, UnicodeError) as error:
            raise NoConnectionError from error
        return connection

    def opened(self, connection: _Connection) -> None:
        """It is connected."""
        self._open.add(connection)

    def rests(self, connection: _Connection) -> None:
        """Its request has been answered, and it can carry another one."""
        self._kept.append(connection)

    def lost(self, connection: _Connection) -> None:
        """It is closed."""
        self._open.discard(connection)


def _base(endpoint: Endpoint) -> str:
    """What stands before each path: that of the URL, and all of it where a proxy is asked in plain HTTP."""
    parts = urlsplit(endpoint.url)
    server = f"{parts.scheme}://{parts.netloc}" if endpoint.proxy and endpoint.tls is None else ""
    return server + parts.path.rstrip("/")


async def _connect(endpoint: Endpoint, transport: Transport) -> _Connection:
    """A connection with TLS where the endpoint has it, through its proxy if there is one."""
    loop = asyncio.get_running_loop()
    parts = urlsplit(endpoint.proxy or endpoint.url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    connection = _Connection(endpoint, transport)
    name = endpoint.server_name or urlsplit(endpoint.url).hostname
    if endpoint.proxy is None:
        tls = {} if endpoint.tls is None else {"ssl": endpoint.tls, "server_hostname": name}
        await loop.create_connection(lambda: connection, host, port, **cast(Any, tls))
        return connection
    await loop.create_connection(lambda: connection, host, port)
    if endpoint.tls is not None:
        try:
            await _open_tunnel(connection, endpoint)
            connection.starts_over(
                await loop.start_tls(connection.transport, connection, endpoint.tls, server_hostname=name)
            )
        except BaseException:
            connection.abort()
            raise
    return connection


async def _open_tunnel(connection: _Connection, endpoint: Endpoint) -> None:
    """Ask the proxy for a connection to the server. Raises ConnectionError if it refuses."""
    proxy, server = urlsplit(endpoint.proxy or ""), urlsplit(endpoint.url)
    where = f"{server.netloc.rpartition('@')[2].removesuffix(f':{server.port}')}:{server.port or 443}"
    head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n"
    if proxy.username is not None:
        secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        head += f"Proxy-Authorization: Basic {b64encode(secret.encode()).decode()}\r\n"
    body = connection.stream(f"{head}\r\n".encode(), CONNECT_SECONDS)
    await body.wait_for_head()
    if body.status != 200:
        raise ConnectionError(f"the proxy {proxy.hostname} answers {body.status} to CONNECT {where}")


class _Connection(asyncio.Protocol):
    """One connection. What is being received is a whole answer (`_answer`) or a `_body` in parts."""

    def __init__(self, endpoint: Endpoint, owner: Transport) -> None:
        self.endpoint = endpoint
        self.rests_since = 0.0
        self.has_answered = False  # something of an answer to the request that is under way
        self.is_lost = False
        self._owner = owner
        self._parser = HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._body: Body | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._left: int | None = None  # bytes that the caller still takes; None: any number
        self._is_framed = True  # whether the end of the body is not the end of the connection

    async def exchange(self, data: bytes, deadline: float, most_bytes: int | None) -> Answer:
        """Send a request; the whole answer. Raises OSError, TimeoutError, TooLongError."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._answer, self._left, self.has_answered = answer, most_bytes, False
        timer = loop.call_at(deadline, self._fail, TimeoutError())
        self.transport.write(data)
        try:
            return await answer
        finally:
            timer.cancel()
            if self._answer is answer:  # the caller was cancelled
                self.abort()

    def stream(self, data: bytes, silence: float) -> Body:
        """Send a request, the only one on this connection; the answer comes in the body."""
        self._body = Body(self.transport, silence)
        self.transport.write(data)
        return self._body

    def starts_over(self, transport: asyncio.Transport | None) -> None:
        """Go on inside a tunnel."""
        if transport is None:
            raise ConnectionError("the connection was closed before TLS began")
        self.transport, self._body, self._parser = transport, None, HttpResponseParser(self)

    def abort(self) -> None:
        """Close it at once."""
        self.is_lost = True
        self.transport.abort()

    # -- called by the event loop ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self.transport = cast(asyncio.Transport, transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Some of the answer. Unasked, it ends the connection, lest the next request takes it for its own."""
        if self._answer is None and self._body is None:
            self.abort()
            return
        self.has_answered = True
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            self._fail(ConnectionError(f"the answer is no HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """It is closed: the end of a body that has no other, or a failure."""
        self.is_lost = True
        self._owner.lost(self)
        if error is None and self.has_answered and not self._is_framed:
            self.on_message_complete()
        self._fail(error or ConnectionResetError("the connection was closed"))
        del self._parser  # which refers to this: together they would be left to the garbage collector

    # -- called by the parser ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A new answer."""
        self._headers, self._parts = [], []

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line of its head."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        names = {name.lower() for name, _ in self._headers}
        self._is_framed = b"content-length" in names or b"transfer-encoding" in names
        if self._body is not None and self._parser.get_status_code() >= 200:
            self._body.begin(self._parser.get_status_code(), self._headers)

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        if self._body is not None:
            self._body.put(part)
            return
        if self._left is not None:
            self._left -= len(part)
            if self._left < 0:
                self._fail(TooLongError())
                return
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """It is whole. What comes before the answer proper (100 Continue) is not one."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        if self._body is not None:
            self._body.end(None)
        elif self._answer is not None:
            answer, self._answer = self._answer, None
            parts, self._parts = self._parts, []  # a connection that rests holds nothing
            if not answer.done():
                answer.set_result(Answer(status, self._headers, b"".join(parts)))
            if self._parser.should_keep_alive() and not self.is_lost:
                self.rests_since = asyncio.get_running_loop().time()
                self._owner.rests(self)
            else:
                self.abort()

    def _fail(self, error: Exception) -> None:
        """Nothing more is expected."""
        self._parts = []
        if self._body is not None:
            self._body.end(error)
        if self._answer is not None:
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_exception(error)
        if not self.is_lost:
            self.abort()


class Body:
    """The body of an answer as it comes. While much of it waits, no more is received."""

    def __init__(self, transport: asyncio.Transport, silence: float) -> None:
        self.status = 0
        self.raw_headers: list[tuple[bytes, bytes]] = []
        self._transport = transport
        self._silence = silence
        self._parts = deque[bytes]()
        self._held_bytes = 0
        self._is_over = False
        self._error: Exception | None = None
        self._news = asyncio.Event()

    async def iter_any(self) -> AsyncIterator[bytes]:
        """What has come, whenever something has. Raises TimeoutError after `silence` seconds of nothing."""
        while True:
            if self._parts:
                whole = b"".join(self._parts)
                self._parts.clear()
                if self._held_bytes > BUFFER_BYTES:
                    self._transport.resume_reading()
                self._held_bytes = 0
                yield whole
            elif self._is_over:
                if self._error is not None:
                    raise self._error
                return
            else:
                await self._wait()

    async def read(self) -> bytes:
        """All that comes."""
        return b"".join([part async for part in self.iter_any()])

    async def wait_for_head(self) -> None:
        """Wait for the status. Raises OSError, TimeoutError."""
        while not self.status:
            if self._is_over:
                raise self._error or ConnectionResetError("the connection was closed")
            await self._wait()

    async def _wait(self) -> None:
        self._news.clear()
        async with asyncio.timeout(self._silence):
            await self._news.wait()

    def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """The head has come."""
        self.status, self.raw_headers = status, headers
        self._news.set()

    def put(self, part: bytes) -> None:
        """A part has come."""
        self._parts.append(part)
        before, self._held_bytes = self._held_bytes, self._held_bytes + len(part)
        if before <= BUFFER_BYTES < self._held_bytes:
            self._transport.pause_reading()
        self._news.set()

    def end(self, error: Exception | None) -> None:
        """No more comes: it is whole, or broken off."""
        if not self._is_over:
            self._is_over, self._error = True, error
            self._news.set()
