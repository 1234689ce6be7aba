"""What a request costs the scheduler's process: by its own transport, and by aiohttp for comparison.

The server is another process, which answers every request with the same bytes over TLS; nothing else is done.
"""

import asyncio
import multiprocessing
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median

import aiohttp
import uvloop

from eclectus.kubeclient.credentials import Endpoint, load_certificate, trusting
from eclectus.kubeclient.serving.certificate import self_signed
from eclectus.kubeclient.transport import Request, Transport

IN_FLIGHT = (1, 32)
PATH, SECONDS = "api/v1/namespaces/default/pods/pod-000001/binding", 10.0
BODY = (
    b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"pod-000001","namespace":"default"},'
    b'"target":{"kind":"Node","name":"node-000001"}}'
)
HEADERS = {"Authorization": f"Bearer {'x' * 900}"}
TYPES = {"Content-Type": "application/json", "Accept": "application/json"}
_DONE = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
_ANSWER = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 00000000-0000-0000-0000-000000000000\r\nCache-Control: no-cache\r\n"
    b"Content-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_DONE), _DONE)
)
Send = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class RequestCost:
    """CPU time of one request with so many in flight, in microseconds, by client."""

    in_flight: int
    microseconds: Mapping[str, float]


def measure(requests: int, rounds: int = 5) -> list[RequestCost]:
    """The median of so many rounds, in which the clients take turns."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    pem = self_signed()
    server = context.Process(target=_serve, args=(there, pem), daemon=True)
    server.start()
    try:
        endpoint = Endpoint(f"https://localhost:{here.recv()}", trusting(pem, b"", "the bench"))
        return uvloop.run(_measure(endpoint, requests, rounds))
    finally:
        server.terminate()
        server.join()


def lines(costs: list[RequestCost]) -> list[str]:
    """For people."""
    return ["CPU of one request, us", *(f"  {_line(cost)}" for cost in costs)]


def _line(cost: RequestCost) -> str:
    clients = ", ".join(f"{name} {value:.0f}" for name, value in cost.microseconds.items())
    return f"{cost.in_flight} in flight: {clients}"


async def _measure(endpoint: Endpoint, requests: int, rounds: int) -> list[RequestCost]:
    found = []
    async with _by_aiohttp(endpoint) as theirs, _by_transport(endpoint) as ours:
        clients = {"transport": ours, "aiohttp": theirs}
        for in_flight in IN_FLIGHT:
            times: dict[str, list[float]] = {name: [] for name in clients}
            for _ in range(rounds):
                for name, send in clients.items():
                    await _spent(send, in_flight, 2 * in_flight)  # connections and caches are warm then
                    times[name].append(await _spent(send, in_flight, requests) / requests * 1e6)
            found.append(RequestCost(in_flight, {name: median(each) for name, each in times.items()}))
    return found


async def _spent(send: Send, in_flight: int, requests: int) -> float:
    """CPU seconds of this process for so many requests."""

    async def some() -> None:
        for _ in range(requests // in_flight):
            await send()

    before = time.process_time()
    await asyncio.gather(*[some() for _ in range(in_flight)])
    return time.process_time() - before


@asynccontextmanager
async def _by_transport(endpoint: Endpoint) -> AsyncIterator[Send]:
    transport = Transport("bench")
    types = "".join(f"{name}: {value}\r\n" for name, value in TYPES.items())
    request = Request("POST", PATH, None, types, BODY)

    async def send() -> None:
        answer = await transport.exchange(endpoint, HEADERS, request, seconds=SECONDS)
        assert answer.status == 201  # noqa: S101 — what is measured is a success

    yield send
    transport.close()


@asynccontextmanager
async def _by_aiohttp(endpoint: Endpoint) -> AsyncIterator[Send]:
    limit = aiohttp.ClientTimeout(total=SECONDS)
    connector = aiohttp.TCPConnector(limit=0, ssl=endpoint.tls or True)
    async with aiohttp.ClientSession(
        f"{endpoint.url}/", connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def send() -> None:
            headers = {**HEADERS, **TYPES}
            async with session.post(PATH, headers=headers, data=BODY, timeout=limit) as response:
                await response.read()
                assert response.status == 201  # noqa: S101 — what is measured is a success

        yield send


# -- the server -----------------------------------------------------------------------------------------


class _Answering(asyncio.Protocol):
    """Answers each request of the length of ours."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(BODY)) >= 0:
            self._read = self._read[end + len(BODY) :]
            self._transport.write(_ANSWER)  # type: ignore[attr-defined]


def _serve(there: Connection, pem: bytes) -> None:
    uvloop.run(_serving(there, pem))


async def _serving(there: Connection, pem: bytes) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(tls, pem, "the bench")
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, ssl=tls)
    there.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
