"""Pages of a process that serves HTTPS with a certificate nobody verifies, and tokens to read them with."""

from __future__ import annotations

import ssl
import urllib.request
from typing import Any
from urllib.error import HTTPError

_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname, _UNVERIFIED.verify_mode = False, ssl.CERT_NONE
_OPENER = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_UNVERIFIED)
)
READER = "reader"  # the ServiceAccount that READERS names
READERS = [
    {"kind": "ServiceAccount", "name": READER, "namespace": "default"}
]  # of the chart's metrics.readers


def page(address: str, path: str, token: str = "", put: str | None = None) -> tuple[int, str]:
    """Status and body, of a PUT with this text if there is one; OSError if there is no connection."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(
        f"https://{address}{path}",
        headers=headers,
        data=None if put is None else put.encode(),
        method="GET" if put is None else "PUT",
    )
    try:
        with _OPENER.open(asked, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def token_of(admin: Any, name: str, namespace: str = "default") -> str:
    """A token of a ServiceAccount, which is created."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    if name not in [each["metadata"]["name"] for each in admin.get(accounts)["items"]]:
        admin.send("POST", accounts, {"metadata": {"name": name}})
    body = {"spec": {"expirationSeconds": 3600}}
    return str(admin.send("POST", f"{accounts}/{name}/token", body)["status"]["token"])
