"""Credentials of the operator: one login for kopf's watches and for the operator's own requests.

kopf's watches log in again after a while, and with a back-off when the API server refuses the login.

`eclectus.kubeclient.credentials.load` is not used: it needs the `kubernetes` package, whose import costs more
memory than all the rest of the operator.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import kopf

from eclectus.kubeclient.addresses import joined
from eclectus.kubeclient.credentials import Credentials, Endpoint, TlsContext
from eclectus.kubeclient.timing import Backoff

LOGIN_SECONDS = 600.0  # kopf reads certificates only when it logs in, so it does that again after this time
HEALTHY_SECONDS = 30.0  # a login that was accepted for so long resets the back-off
_log = logging.getLogger(__name__)

Login = Callable[[], kopf.ConnectionInfo]


def login() -> kopf.ConnectionInfo:
    """Those of $KUBECONFIG, else of the pod's ServiceAccount. Raises kopf.LoginError."""
    ways: list[Callable[..., Any]] = [_from_service_account, kopf.login_with_kubeconfig]
    for way in reversed(ways) if os.environ.get("KUBECONFIG") else ways:
        found: kopf.ConnectionInfo | None = way(settings=kopf.OperatorSettings())
        if found is not None:
            return found
    raise kopf.LoginError("no ServiceAccount token and no kubeconfig: name one in KUBECONFIG")


def credentials(log_in: Login) -> Credentials:
    """The same for the operator's own requests, renewed by another login. Raises kopf.LoginError."""
    info = log_in()
    tls = None
    if info.server.startswith("https:"):
        tls = TlsContext(lambda: _certificates(log_in()), lambda _: log_in().as_ssl_context())
    endpoint = Endpoint(info.server.rstrip("/"), tls() if tls is not None else None)
    headers = info.as_http_headers()
    return Credentials(endpoint, headers, lambda: log_in().as_http_headers(), renew_tls=tls)


class WatchLogin:
    """Answers kopf whenever it has no valid login. `now` returns seconds since the epoch.

    kopf ends its watches for good when it is given none, or one again that was refused. So each has an end of
    its own, by which it differs from those before, and what cannot be read leaves the last in use.
    """

    def __init__(
        self,
        login: Login,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._login = login
        self._now = now
        self._sleep = sleep
        self._backoff = Backoff(1.0, 30.0, Random())
        self._found: kopf.ConnectionInfo | None = None
        self._at = 0.0  # when the last login was given

    async def log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """The credentials for the next while. Raises kopf.LoginError and OSError if there never were any."""
        age = self._now() - self._at
        if age > HEALTHY_SECONDS:
            self._backoff.reset()
        if age < LOGIN_SECONDS:  # asked for before its end: the last one was refused
            await self._sleep(self._backoff.wait())
        try:
            self._found = self._login()
        except (kopf.LoginError, OSError) as error:
            if self._found is None:
                raise
            _log.warning("the credentials could not be read, so the old ones stay in use: %s", error)
        self._at = self._now()
        return replace(self._found, expiration=datetime.fromtimestamp(self._at + LOGIN_SECONDS, UTC))


def _certificates(info: kopf.ConnectionInfo) -> tuple[Any, ...]:
    """All that the TLS context is made of. Raises OSError."""
    files = (info.ca_path, info.certificate_path, info.private_key_path)
    contents = (Path(os.fsdecode(file)).read_bytes() if file else b"" for file in files)
    return (*contents, info.ca_data, info.certificate_data, info.private_key_data)


def _from_service_account(*, settings: kopf.OperatorSettings) -> kopf.ConnectionInfo | None:
    """kopf's login, but by the Service's address: its name cannot be resolved in a cluster without DNS."""
    found: kopf.ConnectionInfo | None = kopf.login_with_service_account(settings=settings)
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if found is None or host is None:
        return found
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return replace(found, server=f"https://{joined(host, port)}")
