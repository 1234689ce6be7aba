"""A thin client: one keep-alive pool, a time limit on every request, errors by what the caller does next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import orjson

from eclectus.kubeclient.credentials import TOKEN_SECONDS, Credentials
from eclectus.kubeclient.errors import (
    ApiError,
    ConflictError,
    MissingError,
    NotDoneError,
    RejectedError,
    StaleError,
    UnsureError,
)

JSON = "application/json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
CONNECT_SECONDS = 5.0  # an API server that takes no connection in this time is as good as down
Query = Mapping[str, str]

_log = logging.getLogger(__name__)


@asynccontextmanager
async def connected(credentials: Credentials, seconds: float) -> AsyncIterator[ApiClient]:
    """A client for the length of an `async with` block; `seconds` is the time limit of a request."""
    endpoint = credentials.endpoint
    session = aiohttp.ClientSession(
        endpoint.url + "/",
        # limit=0: callers bound what is in flight, and a bind must never queue behind a watch.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=75, ssl=endpoint.tls or True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "eclectus", "Accept": JSON, "Accept-Encoding": "identity"},
        trust_env=False,
        proxy=endpoint.proxy,
    )
    async with session:
        renewal = asyncio.create_task(_keep_fresh(credentials), name="token")
        try:
            yield ApiClient(session, credentials, seconds)
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)


class ApiClient:
    """Requests to one API server; see `connected`."""

    def __init__(self, session: aiohttp.ClientSession, credentials: Credentials, seconds: float) -> None:
        self._session, self._credentials, self._seconds = session, credentials, seconds

    async def get(self, path: str, query: Query | None = None, *, seconds: float | None = None) -> bytes:
        """GET; the body. Raises ApiError."""
        return await self.send("GET", path, query=query, seconds=seconds)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        seconds: float | None = None,
    ) -> bytes:
        """One request; the body of its answer. `seconds` until its answer counts as lost. Raises ApiError."""
        limit = aiohttp.ClientTimeout(total=seconds or self._seconds, connect=CONNECT_SECONDS)
        options: dict[str, Any] = {"params": query, "timeout": limit}
        if body is not None:
            options["data"] = orjson.dumps(body)
        status, headers, answer = await self._exchange(method, path, content_type, options)
        if status == 401:  # refused before it was handled, so asking again is safe
            await self._credentials.refresh()
            status, headers, answer = await self._exchange(method, path, content_type, options)
        if status >= 400:
            raise failure(f"{method} {path}", status, answer, headers)
        return answer

    @asynccontextmanager
    async def stream(self, path: str, query: Query, *, silence: float) -> AsyncIterator[aiohttp.StreamReader]:
        """A watch: its body as it comes; UnsureError when nothing comes for `silence` seconds."""
        limit = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=silence)
        what = f"WATCH {path}"
        with translated(what):
            async with self._request(
                "GET", path, JSON, params=query, timeout=limit, read_bufsize=2**20
            ) as response:
                if response.status >= 400:
                    if response.status == 401:
                        await self._credentials.refresh()
                    raise failure(what, response.status, await response.read(), response.headers)
                yield response.content

    async def _exchange(
        self, method: str, path: str, content_type: str, options: dict[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        with translated(f"{method} {path}"):
            async with self._request(method, path, content_type, **options) as response:
                return response.status, response.headers, await response.read()

    def _request(self, method: str, path: str, content_type: str, **options: Any) -> Any:
        return self._session.request(
            method,
            path.lstrip("/"),
            headers={**self._credentials.headers(), "Content-Type": content_type},
            server_hostname=self._credentials.endpoint.server_name,
            allow_redirects=False,  # a token goes to the address it was given for, and nowhere else
            **options,
        )


async def _keep_fresh(credentials: Credentials) -> None:
    while True:
        await asyncio.sleep(TOKEN_SECONDS)
        try:
            await credentials.refresh()
        except Exception:  # a plugin may fail in any way; the token we hold may still be good
            _log.exception("the token could not be renewed; the old one stays in use")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """The transport's exceptions in our words: was it never sent, or do we not know?"""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotDoneError(what, message=f"no connection: {error}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnsureError(what, message=f"no answer: {error or type(error).__name__}") from error


def failure(what: str, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The error for an answer of 400 and above."""
    message = _message(body)
    match status:
        case 429:
            return NotDoneError(what, status, message, retry_after(headers))
        case 404:
            return MissingError(what, status, message)
        case 409:
            return ConflictError(what, status, message)
        case 410:
            return StaleError(what, status, message)
        case _ if status >= 500 or status == 408:
            return UnsureError(what, status, message)
        case _:
            return RejectedError(what, status, message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait. It may also be a date, which the API server never sends."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def _message(body: bytes) -> str:
    """The words of a Status object, or the start of whatever a proxy in between has said."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:200].decode(errors="replace")
    return str(answer.get("message") or answer.get("reason") or "") if isinstance(answer, dict) else ""
