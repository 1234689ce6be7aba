"""Addresses: which of them are this machine alone, and listening on one.

The socket of the health checks is opened before the web server is imported.
"""

import errno
import socket
from ipaddress import ip_address

from eclectus.kubeclient.api_errors import ListenError


def is_loopback(host: str) -> bool:
    """Whether the host, a name or an IP address, is this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


BACKLOG = 128  # requests that wait until they are answered


def listen(address: str, port: int, prefix: str = "server.") -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ListenError, which names what to change.

    `prefix` and `address` or `port` make the names of the settings.
    """
    try:
        family, _, _, _, found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(found[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        where = joined(address, port)
        raise ListenError(f"cannot listen on {where}: {_advice(error, port, prefix)}") from error


def bound_address(listening: socket.socket) -> str:
    """The bound `address:port`."""
    host, port = listening.getsockname()[:2]
    return joined(host, port)


def joined(host: str, port: int | str) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _advice(error: OSError, port: int, prefix: str) -> str:
    if error.errno == errno.EADDRINUSE:
        others = "another process listens there, perhaps another scheduler"
        return f"{others}: stop it, or set {prefix}port to another port (0 chooses a free one)"
    if error.errno == errno.EACCES:
        return f"port {port} is reserved for root: set {prefix}port to one above 1023"
    own = "an address of this machine, such as 127.0.0.1 or 0.0.0.0"
    return f"{error.strerror or error}: set {prefix}address to {own}"
