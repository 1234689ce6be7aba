"""Credentials of the operator: one login for kopf's watches and for the operator's own requests.

`eclectus.kubeclient.credentials.load` is not used: it needs the `kubernetes` package, whose import costs more
memory than all the rest of the operator.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import kopf

from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.kubeclient.tls import TlsContext

Login = Callable[[], kopf.ConnectionInfo]


def login() -> kopf.ConnectionInfo:
    """Credentials of the kubeconfig that KUBECONFIG names, else of the pod's ServiceAccount.

    Raises kopf.LoginError.
    """
    ways: list[Callable[..., Any]] = [_from_service_account, kopf.login_with_kubeconfig]
    for way in reversed(ways) if os.environ.get("KUBECONFIG") else ways:
        found: kopf.ConnectionInfo | None = way(settings=kopf.OperatorSettings())
        if found is not None:
            return found
    raise kopf.LoginError("no ServiceAccount token and no kubeconfig: name one in KUBECONFIG")


def credentials(log_in: Login) -> Credentials:
    """The same for the operator's own requests; their token and certificates are renewed by another login.

    Raises kopf.LoginError.
    """
    info = log_in()
    tls = None
    if info.server.startswith("https:"):
        tls = TlsContext(lambda: _certificates(log_in()), lambda _: log_in().as_ssl_context())
    endpoint = Endpoint(info.server.rstrip("/"), tls() if tls is not None else None)
    headers = info.as_http_headers()
    return Credentials(endpoint, headers, lambda: log_in().as_http_headers(), renew_tls=tls)


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
    return replace(found, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")
