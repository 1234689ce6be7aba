"""Asking an API server whether it is there: one GET as administrator, answered or not."""

import ssl
import urllib.request

from eclectus_e2e.testbed.components import Files


def client_context(files: Files) -> ssl.SSLContext:
    """TLS with the administrator's certificate."""
    context = ssl.create_default_context(cafile=str(files.authority))
    folder = files.authority.parent
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context


def answers(url: str, context: ssl.SSLContext) -> bool:
    """Whether a GET of this address is answered with success within two seconds."""
    # No proxies: the environment's may be set, and loopback is not for them.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url, timeout=2.0) as response:
            return bool(response.status == 200)
    except OSError:  # refused, reset, not ready (HTTPError), timed out: not yet
        return False
