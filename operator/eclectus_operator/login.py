"""Credentials of the operator: one login for kopf's watches and for the operator's own requests.

`eclectus.kubeclient.credentials.load` is not used: it needs the `kubernetes` package, whose import costs more
memory than all the rest of the operator.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import kopf

from eclectus.kubeclient.credentials import Credentials, Endpoint

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
    """The same for the operator's own requests; their token is renewed by another login.

    Raises kopf.LoginError.
    """
    info = log_in()
    tls = info.as_ssl_context() if info.server.startswith("https:") else None
    endpoint = Endpoint(info.server.rstrip("/"), tls)
    return Credentials(endpoint, info.as_http_headers(), lambda: log_in().as_http_headers())


def _from_service_account(*, settings: kopf.OperatorSettings) -> kopf.ConnectionInfo | None:
    """kopf's login, but by the Service's address: its name cannot be resolved in a cluster without DNS."""
    found: kopf.ConnectionInfo | None = kopf.login_with_service_account(settings=settings)
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if found is None or host is None:
        return found
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return replace(found, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")
