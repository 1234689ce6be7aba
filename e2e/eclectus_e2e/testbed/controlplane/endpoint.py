"""Where servers of a control plane listen: free ports, and whether the API server responds yet."""

import errno
import random
import socket
import ssl
import urllib.request
from contextlib import ExitStack

from eclectus_e2e.testbed.controlplane.components import Files

# Below the range that Linux takes clients' ports from (32768 upwards).
FIRST_PORT, END_PORT = 20_000, 32_000
_TIMEOUT_SECONDS = 2.0


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on, all different.

    They lie below the range of clients' ports. Otherwise a client that connects while a server restarts
    could be given the server's own port, connect to itself and occupy it.
    """
    with ExitStack() as stack:  # all are held at once, so that they differ
        return [_bound(stack.enter_context(socket.socket())) for _ in range(count)]


def _bound(server: socket.socket) -> int:
    while True:
        port = random.randrange(FIRST_PORT, END_PORT)
        try:
            server.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return port


def admin_tls(files: Files) -> ssl.SSLContext:
    """TLS with the administrator's client certificate."""
    context = ssl.create_default_context(cafile=str(files.authority))
    folder = files.authority.parent
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context


def responds(url: str, context: ssl.SSLContext) -> bool:
    """Whether a GET of this address succeeds within two seconds."""
    # Without proxies: the environment may name some, and they cannot reach loopback.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
            return bool(response.status == 200)
    except OSError:  # refused, reset, not ready (HTTPError) or timed out
        return False
