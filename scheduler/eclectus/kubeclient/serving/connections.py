"""The connections of a server: a bounded number, of which the oldest is closed for a new one.

None is refused, or whoever holds many open would keep health checks out. A health check or a scrape has been
answered long before so many others have come that its connection is the oldest.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from socket import socket
from typing import cast

from aiohttp import web

CONNECTIONS_MOST = 128  # a kubelet, some Prometheus servers and users need a handful
PAUSE_SECONDS = 0.1  # after one that could not be accepted, as when the process has no file descriptor left


@dataclass(frozen=True, slots=True)
class _Connection:
    """An accepted socket, and the task that makes a connection of it, with TLS a handshake."""

    accepted: socket
    opening: asyncio.Task[asyncio.Transport | None]

    @property
    def is_open(self) -> bool:
        return self.accepted.fileno() >= 0

    def drop(self) -> None:
        """Close it without waiting for the client."""
        if not self.opening.done():
            self.opening.cancel()
        elif not self.opening.cancelled() and (transport := self.opening.result()) is not None:
            transport.abort()


class BoundedSite(web.BaseSite):
    """Serves what a runner that is set up has, on a listening socket; without `tls` in plain HTTP."""

    def __init__(self, runner: web.AppRunner, listening: socket, tls: ssl.SSLContext | None) -> None:
        super().__init__(runner, ssl_context=tls)
        self._protocol = cast("web.Server", runner.server)  # the base class has checked it
        self._listening = listening
        self._connections: list[_Connection] = []  # the oldest first

    @property
    def name(self) -> str:
        """Its address, for people."""
        return str(self._listening.getsockname())

    async def start(self) -> None:
        """Accept connections until `stop`."""
        await super().start()
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept_forever(), name="connections")

    async def stop(self) -> None:
        """Close the socket, and connections that are not ready; the runner closes the others."""
        await super().stop()
        unready = [each.opening for each in self._connections if not each.opening.done()]
        for task in (self._accepting, *unready):
            task.cancel()
        await asyncio.gather(self._accepting, *unready, return_exceptions=True)
        self._listening.close()

    async def _accept_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._make_room()
            opening = asyncio.create_task(self._opened(accepted))
            self._connections.append(_Connection(accepted, opening))
            await asyncio.sleep(0)  # sock_accept does not yield while connections wait to be accepted

    def _make_room(self) -> None:
        self._connections = [each for each in self._connections if each.is_open]
        if len(self._connections) >= CONNECTIONS_MOST:
            self._connections.pop(0).drop()

    async def _opened(self, accepted: socket) -> asyncio.Transport | None:
        """The transport of a new connection; None if the client has gone or speaks no TLS."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            transport, _ = await loop.connect_accepted_socket(self._protocol, accepted, ssl=self._ssl_context)
            return transport
        return None
