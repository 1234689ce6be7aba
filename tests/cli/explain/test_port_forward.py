"""A port-forward over a WebSocket, against a server that plays API server and kubelet."""

import asyncio
import struct
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from eclectus.cli.explain.transport import LOOPBACK, PROTOCOL, forwarded
from eclectus.kubeclient.api_errors import MissingError, RejectedError, UnsureError
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint

PATH, PORT = "/api/v1/namespaces/system/pods/leader/portforward", 10269
LARGE = b"x" * 300_000


class Node:
    """Plays the pod: `says` to each data message its answer. `problem` is sent on the channel of errors."""

    def __init__(self):
        self.problem, self.received, self.asked, self.status = "", b"", [], 101

    async def handle(self, request):
        self.asked.append((request.path, dict(request.query), request.headers.get("Authorization")))
        if self.status != 101:
            return web.json_response({"message": "refused"}, status=self.status)
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + struct.pack("<H", PORT))
        if self.problem:
            await socket.send_bytes(b"\x01" + self.problem.encode())
        async for message in socket:
            assert message.data[0] == 0
            self.received += message.data[1:]
            for start in range(0, len(message.data) - 1, 1000):  # in many small messages
                await socket.send_bytes(b"\x00" + message.data[1:][start : start + 1000])
        return socket


@asynccontextmanager
async def client_of(node, seconds=5.0):
    app = web.Application()
    app.router.add_get("/{path:.*}", node.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint = Endpoint(f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        async with connected(Credentials(endpoint, {"Authorization": "Bearer mine"}), seconds) as client:
            yield client
    finally:
        await runner.cleanup()


def forwarding(node, work):
    """What `work` returns of a forwarded connection."""

    async def run():
        async with client_of(node) as client, forwarded(client, "system", "leader", PORT) as forward:
            async with asyncio.timeout(10):
                return await work(forward)

    return asyncio.run(run())


async def echoed(forward, data=LARGE):
    reader, writer = await asyncio.open_connection(LOOPBACK, forward.port)
    writer.write(data)
    found = await reader.readexactly(len(data))
    writer.close()
    return found


def test_data_passes_both_ways_and_the_ports_numbers_are_no_data():
    node = Node()
    assert forwarding(node, echoed) == LARGE
    assert node.received == LARGE
    assert node.asked == [(PATH, {"ports": "10269"}, "Bearer mine")]


def test_what_the_node_says_is_kept_and_the_connection_ends():
    node = Node()
    node.problem = "connection refused\n"

    async def work(forward):
        reader, writer = await asyncio.open_connection(LOOPBACK, forward.port)
        found = await reader.read()
        writer.close()
        return found, forward.problem

    assert forwarding(node, work) == (b"", "connection refused")


def test_a_second_connection_is_closed_at_once():
    async def work(forward):
        first = await asyncio.open_connection(LOOPBACK, forward.port)
        first[1].write(b"1")
        assert await first[0].readexactly(1) == b"1"
        second = await asyncio.open_connection(LOOPBACK, forward.port)
        found = await second[0].read()
        for _, writer in (first, second):
            writer.close()
        return found

    assert forwarding(Node(), work) == b""


@pytest.mark.parametrize(
    ("status", "error"), [(403, RejectedError), (404, MissingError), (502, UnsureError), (400, RejectedError)]
)
def test_a_refused_port_forward_is_an_error_with_the_status(status, error):
    node = Node()
    node.status = status
    with pytest.raises(error) as raised:
        forwarding(node, echoed)
    assert raised.value.status == status


def test_nothing_runs_on_after_the_block():
    async def run():
        async with client_of(Node()) as client:
            async with forwarded(client, "system", "leader", PORT) as forward:
                await echoed(forward, b"1")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(LOOPBACK, forward.port)
            return [task for task in asyncio.all_tasks() if "Forward" in repr(task.get_coro())]

    assert asyncio.run(run()) == []
