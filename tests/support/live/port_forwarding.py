"""Plays the node's side of a port-forward over a WebSocket, for ports of this machine."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

from aiohttp import web

PROTOCOL = "v4.channel.k8s.io"


async def forward(request: web.Request, port: int, problem: str = "") -> web.WebSocketResponse:
    """Forward to a port of this machine; with a problem, say that and forward nothing."""
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes([channel]) + struct.pack("<H", port))
    if problem:
        await socket.send_bytes(b"\x01" + problem.encode())
        return socket
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answering = asyncio.create_task(_copy(reader, socket))
    with suppress(ConnectionError):
        async for message in socket:
            assert message.data[0] == 0
            writer.write(message.data[1:])
    writer.close()
    await answering
    return socket


async def _copy(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1000):
            await socket.send_bytes(b"\x00" + data)
        await socket.close()
