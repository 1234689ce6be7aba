"""Requests to the API server over one keep-alive pool, with kopf's credentials and a time limit on each.

The official client is not used: importing it costs more memory than all the rest of the operator.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import kopf
import msgspec

from eclectus_operator.api import (
    ApiError,
    ConflictError,
    MissingError,
    Object,
    Query,
    RefusedError,
    UnsureError,
)

Login = Callable[[], kopf.ConnectionInfo]
TOKEN_SECONDS = 60.0  # a ServiceAccount's token is renewed on disk long before it ends
_BRIEF = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_TYPES = {"PATCH": "application/merge-patch+json"}


def login() -> kopf.ConnectionInfo:
    """Credentials: of the kubeconfig that KUBECONFIG names, else of the pod's ServiceAccount.

    Raises kopf.LoginError.
    """
    ways: list[Callable[..., Any]] = [_as_service_account, kopf.login_with_kubeconfig]
    for way in reversed(ways) if os.environ.get("KUBECONFIG") else ways:
        found: kopf.ConnectionInfo | None = way(settings=kopf.OperatorSettings())
        if found is not None:
            return found
    raise kopf.LoginError("no ServiceAccount token and no kubeconfig: name one in KUBECONFIG")


def _as_service_account(*, settings: kopf.OperatorSettings) -> kopf.ConnectionInfo | None:
    """kopf's, but by the Service's address: kopf takes its name, which a cluster without DNS cannot tell."""
    found: kopf.ConnectionInfo | None = kopf.login_with_service_account(settings=settings)
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if found is None or host is None:
        return found
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return replace(found, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")


@asynccontextmanager
async def connected(log_in: Login, seconds: float) -> AsyncIterator[HttpApi]:
    """A client for the length of an `async with` block; `seconds` until an answer counts as lost."""
    info = log_in()
    tls = info.as_ssl_context() if info.server.startswith("https:") else None
    async with aiohttp.ClientSession(
        info.server.rstrip("/") + "/",
        connector=aiohttp.TCPConnector(ssl=tls or True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "eclectus-operator"},
        trust_env=False,
    ) as session:
        yield HttpApi(session, log_in, seconds)


class HttpApi:
    """See `connected`; an `api.Api`."""

    def __init__(self, session: aiohttp.ClientSession, log_in: Login, seconds: float) -> None:
        self._session, self._log_in = session, log_in
        self._limit = aiohttp.ClientTimeout(total=seconds)
        self._headers: dict[str, str] = {}
        self._fresh_until = 0.0

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query | None = None,
        *,
        brief: bool = False,
    ) -> Object:
        """One request. Raises ApiError."""
        what = f"{method} {path}"
        content = None if body is None else msgspec.json.encode(body)
        headers = {**self._credentials(), "Content-Type": _TYPES.get(method, "application/json")}
        headers["Accept"] = _BRIEF if brief else "application/json"
        try:
            async with self._session.request(
                method,
                path.lstrip("/"),
                data=content,
                params=query,
                headers=headers,
                timeout=self._limit,
                allow_redirects=False,  # a token goes to the address it was given for, and nowhere else
            ) as response:
                answer = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnsureError(f"{what}: no answer: {error or type(error).__name__}") from error
        if status >= 400:
            if status == 401:
                self._fresh_until = 0.0
            raise _failure(what, status, answer)
        return _object(what, answer)

    def _credentials(self) -> dict[str, str]:
        now = asyncio.get_running_loop().time()
        if now >= self._fresh_until:
            self._headers, self._fresh_until = self._log_in().as_http_headers(), now + TOKEN_SECONDS
        return self._headers


def _failure(what: str, status: int, answer: bytes) -> ApiError:
    """The error for an answer of 400 and above."""
    words = f"{what}: {status} {_message(answer)}"
    match status:
        case 404:
            return MissingError(words)
        case 409:
            return ConflictError(words)
        # 401: the token may be renewed. 410: a list took so long that its pages are gone.
        case 401 | 408 | 410 | 429:
            return UnsureError(words)
        case _:
            return UnsureError(words) if status >= 500 else RefusedError(words)


def _object(what: str, answer: bytes) -> Object:
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UnsureError(f"{what}: the answer is no JSON object: {error}") from error


def _message(answer: bytes) -> str:
    """The words of a Status object, or the start of whatever a proxy in between has said."""
    try:
        found = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return answer[:200].decode(errors="replace")
    return str(found.get("message") or "") if isinstance(found, dict) else ""
