"""TLS contexts of certificates that are replaced on disk while the process runs."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from typing import Generic, TypeVar

from eclectus.kubeclient.api_errors import CredentialsError

T = TypeVar("T")


class TlsContext(Generic[T]):
    """A context made of what `read` returns, as bytes of certificates; made anew when that changes.

    Otherwise it stays the same object: a pool keeps connections by context, and uses none of another.
    """

    def __init__(self, read: Callable[[], T], make: Callable[[T], ssl.SSLContext]) -> None:
        self._read = read
        self._make = make
        self._found = read()
        self._context = make(self._found)

    def __call__(self) -> ssl.SSLContext:
        """The context for the certificates as they are now. Raises what `read` and `make` raise."""
        found = self._read()
        if found != self._found:
            self._context, self._found = self._make(found), found
        return self._context


def trusting(authority: bytes, where: str) -> ssl.SSLContext:
    """A context that trusts this authority; if it is empty, those of the machine. Raises CredentialsError."""
    if not authority:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=authority.decode(errors="replace"))
    except (ValueError, ssl.SSLError) as error:
        raise CredentialsError(f"{where}: the certificate authority cannot be read: {error}") from error


def authenticating(authority: bytes, certificate: bytes, where: str) -> ssl.SSLContext:
    """The same with a client certificate and its key, unless they are empty. Raises CredentialsError."""
    context = trusting(authority, where)
    if certificate:
        load_certificate(context, certificate, where)
    return context


def load_certificate(context: ssl.SSLContext, pem: bytes, where: str) -> None:
    """Authenticate with this certificate and its key, as client or as server. Raises CredentialsError."""
    # Python reads certificates from files only; this one is gone before anything else happens.
    with tempfile.NamedTemporaryFile() as temporary:  # mode 0600
        temporary.write(pem)
        temporary.flush()
        try:
            # An empty password: for an encrypted key OpenSSL would ask on the terminal.
            context.load_cert_chain(temporary.name, password="")
        except (OSError, ssl.SSLError) as error:
            problem = f"the certificate and its key cannot be read: {error}"
            raise CredentialsError(f"{where}: {problem}") from error
