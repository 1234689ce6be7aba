"""A port of a pod through the API server: its subresource portforward, over a WebSocket.

Every message begins with the number of its channel. With one port the channel 0 has its data, and 1 what went
wrong; the first message of each is the port's number (`v4.channel.k8s.io`, kubelet's streaming server).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from eclectus.kubeclient.client import ApiClient

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
CHUNK = 2**15  # bytes of a message
LOOPBACK = "127.0.0.1"


class Forward:
    """One forwarded connection. `port` on loopback takes it; `problem` is what the node says went wrong."""

    def __init__(self, remote: aiohttp.ClientWebSocketResponse) -> None:
        self._remote = remote
        self._listening: asyncio.Server | None = None
        self._copying: list[asyncio.Task[None]] = []
        self.port = 0
        self.problem = ""

    async def open(self) -> None:
        """Listen for the one connection."""
        self._listening = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End the connection."""
        if self._listening is not None:
            self._listening.close()
        for task in self._copying:
            task.cancel()
        await asyncio.gather(*self._copying, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions. A further connection would be of somebody else on this machine."""
        if self._copying:
            writer.close()
            return
        self._copying = [asyncio.create_task(each) for each in (self._send(reader), self._receive(writer))]

    async def _send(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._remote.send_bytes(bytes([DATA]) + data)

    async def _receive(self, writer: asyncio.StreamWriter) -> None:
        begun = set[int]()
        try:
            async for message in self._remote:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel not in begun:  # the port's number
                    begun.add(channel)
                elif channel == ERROR:
                    self.problem = data.decode(errors="replace").strip()
                    return
                else:
                    writer.write(data)
                    await writer.drain()
        finally:
            with suppress(OSError):
                writer.close()


@asynccontextmanager
async def forwarded(client: ApiClient, namespace: str, pod: str, port: int) -> AsyncIterator[Forward]:
    """One connection to a port of a pod, for the length of the block. Raises ApiError.

    The caller needs `get`, from Kubernetes 1.35 on also `create`, of `pods/portforward` in the namespace.
    """
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
    async with client.web_socket(path, {"ports": str(port)}, PROTOCOL) as remote:
        forward = Forward(remote)
        await forward.open()
        try:
            yield forward
        finally:
            await forward.close()
