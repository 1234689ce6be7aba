"""HTTP requests to the API server: one keep-alive pool, a time limit on every request.

`ApiClient` exchanges bytes, for callers that decode into their own types; `ObjectApi` exchanges JSON
objects. Lists are read in pages of a bounded number of objects and of bytes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import aiohttp
import msgspec

from eclectus.api.common import NOT_JSON, ListMeta, read_json
from eclectus.kubeclient.api_errors import (
    ASK_FOR_THE_RIGHT,
    ApiError,
    CredentialsError,
    NotDoneError,
    TooLargeError,
    UnsureError,
    error_from,
)
from eclectus.kubeclient.credentials import RENEWAL_SECONDS, Credentials

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
METADATA_LIST = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
CONNECT_SECONDS = 5.0  # an API server that accepts no connection for this long counts as down
Query = Mapping[str, str]
Object = dict[str, Any]

_OBJECT = msgspec.json.Decoder(Object)
_log = logging.getLogger(__name__)


@asynccontextmanager
async def connected(
    credentials: Credentials, seconds: float, user_agent: str = "eclectus", advice: str = ASK_FOR_THE_RIGHT
) -> AsyncIterator[ApiClient]:
    """A client for the length of an `async with` block; `seconds` is the time limit of a request.

    `advice`: what the messages say to do where RBAC forbids a request; by default to users of a command.
    """
    endpoint = credentials.endpoint
    session = aiohttp.ClientSession(
        endpoint.url + "/",
        # limit=0: callers bound what is in flight, and a bind must not wait for a connection behind a watch.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=75),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
        trust_env=False,
        proxy=endpoint.proxy,
    )
    async with session:
        renewal = asyncio.create_task(_renew_forever(credentials), name="token")
        try:
            yield ApiClient(session, credentials, seconds, advice)
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)


@dataclass(eq=False)
class ApiClient:
    """Requests to one API server; see `connected`.

    A server that cannot be reached, or does not accept the credentials, is logged here, once for all callers
    and all clients with these credentials: `ApiError.is_logged` tells callers to be silent. `may_repeat` is
    asked before a request is sent again with renewed credentials.
    """

    session: aiohttp.ClientSession
    credentials: Credentials
    seconds: float
    advice: str
    may_repeat: Callable[[], bool] = lambda: True

    def asking(self, may_repeat: Callable[[], bool]) -> ApiClient:
        """The same for requests that must not be repeated always."""
        found = copy(self)
        found.may_repeat = may_repeat
        return found

    async def get(self, path: str, query: Query | None = None, *, seconds: float | None = None) -> bytes:
        """The body of a GET's answer. Raises ApiError."""
        return await self.send("GET", path, query=query, seconds=seconds)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> bytes:
        """The body of one request's answer; `seconds` overrides the time limit.

        Raises ApiError; TooLargeError for an answer of more than `most_bytes`.
        """
        limit = aiohttp.ClientTimeout(total=seconds or self.seconds, connect=CONNECT_SECONDS)
        headers = {"Content-Type": content_type, "Accept": accept}
        options: dict[str, Any] = {"params": query, "timeout": limit}
        if body is not None:
            options["data"] = msgspec.json.encode(body)

        async def exchange() -> tuple[int, Mapping[str, str], bytes]:
            with self._translated_errors(f"{method} {path}"):
                async with self._request(method, path, headers, **options) as response:
                    whole = response.read() if most_bytes is None else _read(response, most_bytes)
                    answer = await whole
            if response.status != 401:
                self.credentials.trouble.succeeded("the API server answers again")
            return response.status, response.headers, answer

        renewals = self.credentials.renewals
        status, answered, answer = await exchange()
        if status == 401:  # refused before it was handled, so it is safe to repeat
            await _renew(self.credentials, renewals)
            if not self.may_repeat():
                raise NotDoneError(f"{method} {path}", message="refused, and not sent again")
            status, answered, answer = await exchange()
        if status >= 400:
            raise self._refusal(f"{method} {path}", status, answer, answered)
        return answer

    @asynccontextmanager
    async def stream(self, path: str, query: Query, *, silence: float) -> AsyncIterator[aiohttp.StreamReader]:
        """A watch's body as it arrives. Raises ApiError; UnsureError after `silence` seconds of nothing."""
        limit = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=silence)
        what, headers = f"WATCH {path}", {"Content-Type": JSON, "Accept": JSON}
        renewals = self.credentials.renewals
        with self._translated_errors(what):
            async with self._request(
                "GET", path, headers, params=query, timeout=limit, read_bufsize=2**20
            ) as response:
                if response.status >= 400:
                    if response.status == 401:
                        await _renew(self.credentials, renewals)
                    raise self._refusal(what, response.status, await response.read(), response.headers)
                yield response.content

    @asynccontextmanager
    async def web_socket(
        self, path: str, query: Query, protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A connection whose messages have the form of this protocol. Raises ApiError while it is opened."""
        what = f"GET {path}"
        try:
            with self._translated_errors(what):
                async with asyncio.timeout(self.seconds):
                    opened = await self.session.ws_connect(
                        path.lstrip("/"),
                        params=query,
                        protocols=(protocol,),
                        headers=self.credentials.headers,
                        ssl=self.credentials.endpoint.tls or True,
                        server_hostname=self.credentials.endpoint.server_name,
                    )
        except UnsureError as error:
            refused = error.__cause__
            if isinstance(refused, aiohttp.WSServerHandshakeError):
                answered: Mapping[str, str] = refused.headers or {}
                raise error_from(what, refused.status, b"", answered, self.advice) from refused
            raise
        async with opened:
            yield opened

    def _refusal(self, what: str, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
        error = error_from(what, status, body, headers, self.advice)
        if status == 401:
            error.is_logged = True
            self.credentials.trouble.failed("401", _unauthenticated(self.credentials))
        return error

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        """The transport's exceptions as ApiError: a request without a connection was never sent."""
        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            kind, why = _problem(error, self.credentials.source or "the kubeconfig")
            problem = f"the API server at {self.credentials.endpoint.url} cannot be reached: {why}"
            self.credentials.trouble.failed(kind, problem)
            raise NotDoneError(what, message=problem, is_logged=True) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnsureError(what, message=f"no answer: {error or type(error).__name__}") from error

    def _request(self, method: str, path: str, headers: dict[str, str], **options: Any) -> Any:
        return self.session.request(
            method,
            path.lstrip("/"),
            headers={**self.credentials.headers, **headers},
            ssl=self.credentials.endpoint.tls or True,  # not the connector's: certificates are replaced
            server_hostname=self.credentials.endpoint.server_name,
            allow_redirects=False,  # a token is sent to no other address than the one it was given for
            **options,
        )


@dataclass(frozen=True)
class ObjectApi:
    """Requests that exchange JSON objects. An answer that is not one is an UnsureError."""

    client: ApiClient

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query | None = None,
        *,
        metadata_only: bool = False,
        seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> Object:
        """One request; a PATCH is a merge patch. `metadata_only`: a list without specs. Raises ApiError."""
        answer = await self.client.send(
            method,
            path,
            body,
            query=query,
            content_type=MERGE_PATCH if method == "PATCH" else JSON,
            accept=METADATA_LIST if metadata_only else JSON,
            seconds=seconds,
            most_bytes=most_bytes,
        )
        try:
            return read_json(_OBJECT.decode, answer)
        except NOT_JSON as error:
            message = f"the answer is not a JSON object: {error}"
            raise UnsureError(f"{method} {path}", message=message) from error


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The body. Raises TooLargeError, with not much more than so many bytes read."""
    parts, left = list[bytes](), most_bytes
    async for part in response.content.iter_any():
        left -= len(part)
        if left < 0:
            what = f"{response.method} {response.url.path}"
            raise TooLargeError(what, message=f"the answer has more than {most_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


async def _renew_forever(credentials: Credentials) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        await _renew(credentials, credentials.renewals)


async def _renew(credentials: Credentials, renewals: int) -> None:
    """Renew the credentials, unless it was done since there were so many renewals. A failure is logged."""
    try:
        await credentials.refresh_after(renewals)
    except CredentialsError as error:
        _log.warning("the credentials could not be renewed, so the old ones stay in use: %s", error)
    except Exception:  # a plugin may fail in any way; the present ones may still be valid
        _log.exception("the credentials could not be renewed; the old ones stay in use")


# -- why there is no connection, and what to change: one sentence each -------------------------------

# X509_V_ERR codes of OpenSSL.
_NOT_YET_VALID, _EXPIRED, _WRONG_NAMES = 9, 10, (62, 64)


def _unauthenticated(credentials: Credentials) -> str:
    """The sentence for an answer 401."""
    by = credentials.authenticates_by or "the credentials"
    advice = "expired, revoked, or of another cluster: replace it"
    if by == "no credentials":
        by = "requests without credentials"
        advice = f"add a user with a token or certificate to {credentials.source}"
    return f"the API server at {credentials.endpoint.url} does not accept {by}: {advice}"


def _problem(error: aiohttp.ClientError | TimeoutError, source: str) -> tuple[str, str]:
    """(kind, sentence) for an error before the request was sent."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, source)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "dns", f"its name cannot be resolved: correct `server` in {source}, or the DNS"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "tls", f"no TLS connection ({error.os_error}): does `server` in {source} name the right port?"
    if isinstance(error, TimeoutError):
        cause = f"is it running, and does no firewall block `server` of {source}?"
        return "timeout", f"it accepts no connection: {cause}"
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "refused", f"connection refused: is it running there, and is `server` in {source} right?"
    return f"errno {number}", f"{error}: is `server` in {source} right?"


def _certificate(error: Exception, source: str) -> tuple[str, str]:
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    if code == _EXPIRED:
        return "expired", "its certificate has expired: renew it, or correct the clock of this machine"
    if code == _NOT_YET_VALID:
        return "not yet valid", "its certificate is not valid yet: correct the clock of this machine"
    if code in _WRONG_NAMES:
        names = f"use a name of the certificate as `server` in {source}, or set tls-server-name there"
        return "name", f"its certificate is for other names than this: {names}"
    problem = "its certificate is not signed by the certificate authority that is known for it"
    return "authority", f"{problem}: put the cluster's CA into certificate-authority-data of {source}"


# -- lists -----------------------------------------------------------------------------------------

MAX_LINE_BYTES = 16 * 2**20  # etcd refuses objects above 1.5 MiB, so no watch event is longer
PAGE_ITEMS = 500  # as in client-go
PAGE_BYTES = 4 * 2**20  # of JSON, which takes up to ten times as much memory when it is decoded

T = TypeVar("T")


class Listed(Protocol):
    """A decoded page of a list."""

    @property
    def metadata(self) -> ListMeta:
        """Where the list goes on."""


AnyPage = TypeVar("AnyPage", bound=Listed)


async def _pages(read: Callable[[Query, int], Awaitable[tuple[T, str]]], query: Query) -> AsyncIterator[T]:
    """The pages that `read` returns with their tokens, given a query and the most bytes to take.

    A page has at most PAGE_ITEMS objects, or as many as `limit` in the query, and PAGE_BYTES of JSON: one
    that is larger is asked for again with half as many objects, and then a few more with each page. A single
    object may be larger.
    """
    most = limit = int(query.get("limit", PAGE_ITEMS))
    page_query = dict(query)
    while True:
        page_query["limit"] = str(limit)
        try:
            page, token = await read(page_query, PAGE_BYTES if limit > 1 else MAX_LINE_BYTES)
        except TooLargeError:
            if limit == 1:
                raise
            limit //= 2
            continue
        yield page
        if not token:
            return
        page_query["continue"] = token
        limit = min(limit + limit // 8 + 1, most)


def decoded_pages(
    client: ApiClient,
    path: str,
    query: Query,
    decode: Callable[[bytes], AnyPage],
    seconds: float | None = None,
) -> AsyncIterator[AnyPage]:
    """The pages of a list; `seconds`: the time limit of each. Raises ApiError, and what `decode` raises."""

    async def read(query: Query, most_bytes: int) -> tuple[AnyPage, str]:
        page = decode(await client.send("GET", path, query=query, seconds=seconds, most_bytes=most_bytes))
        return page, page.metadata.continue_

    return _pages(read, query)


def list_pages(
    api: ObjectApi, path: str, query: Query | None = None, *, metadata_only: bool = False
) -> AsyncIterator[list[Object]]:
    """The items of a list, one page at a time; `metadata_only`: without specs. Raises ApiError."""

    async def read(query: Query, most_bytes: int) -> tuple[list[Object], str]:
        page = await api.send("GET", path, query=query, metadata_only=metadata_only, most_bytes=most_bytes)
        return page.get("items") or [], page.get("metadata", {}).get("continue") or ""

    return _pages(read, query or {})


async def list_objects(
    api: ObjectApi, path: str, query: Query | None = None, *, metadata_only: bool = False
) -> list[Object]:
    """All items of a list. Raises ApiError."""
    pages = list_pages(api, path, query, metadata_only=metadata_only)
    return [each async for page in pages for each in page]
