"""Requests to the API server: what is sent, a time limit on each, and what an answer or none means.

`ApiClient` exchanges bytes, for callers that decode into their own types; `ObjectApi` exchanges JSON
objects. Lists are read in pages of a bounded number of objects and of bytes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

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
from eclectus.kubeclient.transport import Answer, Body, NoConnectionError, Request, TooLongError, Transport

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
METADATA_LIST = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
Query = Mapping[str, str]
Parameters = Mapping[str, Sequence[str]]
"""Of a request: a text is one value, a sequence of texts several."""
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
    transport = Transport(user_agent)
    renewal = asyncio.create_task(_renew_forever(credentials), name="token")
    try:
        yield ApiClient(transport, credentials, seconds, advice)
    finally:
        transport.close()
        renewal.cancel()
        await asyncio.gather(renewal, return_exceptions=True)


@dataclass(eq=False)
class ApiClient:
    """Requests to one API server; see `connected`.

    A server that cannot be reached, or does not accept the credentials, is logged here, once for all callers
    and all clients with these credentials: `ApiError.is_logged` tells callers to be silent. `may_repeat` is
    asked before a request is sent again with renewed credentials.
    """

    transport: Transport
    credentials: Credentials
    seconds: float
    advice: str
    may_repeat: Callable[[], bool] = lambda: True

    def asking(self, may_repeat: Callable[[], bool]) -> ApiClient:
        """The same for requests that must not be repeated always."""
        found = copy(self)
        found.may_repeat = may_repeat
        return found

    async def get(self, path: str, query: Parameters | None = None, *, seconds: float | None = None) -> bytes:
        """The body of a GET's answer. Raises ApiError."""
        return await self.send("GET", path, query=query, seconds=seconds)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Parameters | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> bytes:
        """The body of one request's answer; `seconds` overrides the time limit.

        Raises ApiError; TooLargeError for an answer of more than `most_bytes`.
        """
        headers = f"Content-Type: {content_type}\r\nAccept: {accept}\r\n"
        content = None if body is None else msgspec.json.encode(body)
        request, limit = Request(method, path, query, headers, content), seconds or self.seconds
        renewals = self.credentials.renewals
        answer = await self._exchange(request, limit, most_bytes)
        if answer.status == 401:  # refused before it was handled, so it is safe to repeat
            await _renew(self.credentials, renewals)
            if not self.may_repeat():
                raise NotDoneError(f"{method} {path}", message="refused, and not sent again")
            answer = await self._exchange(request, limit, most_bytes)
        if answer.status >= 400:
            raise self._refusal(f"{method} {path}", answer.status, answer.body, answer.headers)
        return answer.body

    async def _exchange(self, request: Request, seconds: float, most_bytes: int | None) -> Answer:
        credentials, what = self.credentials, f"{request.method} {request.path}"
        with self.translated_errors(what):
            try:
                answer = await self.transport.exchange(
                    credentials.endpoint, credentials.headers, request, seconds=seconds, most_bytes=most_bytes
                )
            except TooLongError as error:
                message = f"the answer has more than {most_bytes} bytes"
                raise TooLargeError(what, message=message) from error
        if answer.status != 401:
            credentials.trouble.succeeded("the API server answers again")
        return answer

    @asynccontextmanager
    async def stream(self, path: str, query: Query, *, silence: float) -> AsyncIterator[Body]:
        """A watch's body as it arrives. Raises ApiError; UnsureError after `silence` seconds of nothing."""
        what, credentials = f"WATCH {path}", self.credentials
        request = Request("GET", path, query, f"Accept: {JSON}\r\n")
        renewals = credentials.renewals
        with self.translated_errors(what):
            opened = self.transport.stream(
                credentials.endpoint, credentials.headers, request, silence=silence
            )
            async with opened as (status, headers, body):
                if status >= 400:
                    if status == 401:
                        await _renew(credentials, renewals)
                    raise self._refusal(what, status, await body.read(), headers)
                yield body

    def _refusal(self, what: str, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
        error = error_from(what, status, body, headers, self.advice)
        if status == 401:
            error.is_logged = True
            self.credentials.trouble.failed("401", _unauthenticated(self.credentials))
        return error

    @contextmanager
    def translated_errors(self, what: str) -> Iterator[None]:
        """The transport's exceptions as ApiError: a request without a connection was never sent."""
        try:
            yield
        except NoConnectionError as error:
            kind, why = _problem(error.__cause__, self.credentials.source or "the kubeconfig")
            problem = f"the API server at {self.credentials.endpoint.url} cannot be reached: {why}"
            self.credentials.trouble.failed(kind, problem)
            raise NotDoneError(what, message=problem, is_logged=True) from error
        except (TimeoutError, OSError) as error:
            raise UnsureError(what, message=f"no answer: {str(error) or type(error).__name__}") from error


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


def _problem(error: BaseException | None, source: str) -> tuple[str, str]:
    """(kind, sentence) for an error before the request was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error, source)
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "dns", f"its name cannot be resolved: correct `server` in {source}, or the DNS"
    if isinstance(error, ssl.SSLError):
        return "tls", f"no TLS connection ({error}): does `server` in {source} name the right port?"
    if isinstance(error, TimeoutError):
        cause = f"is it running, and does no firewall block `server` of {source}?"
        return "timeout", f"it accepts no connection: {cause}"
    if f"[Errno {errno.ECONNREFUSED}]" in str(error):  # of one address or of all that the name has
        return "refused", f"connection refused: is it running there, and is `server` in {source} right?"
    return f"errno {getattr(error, 'errno', None)}", f"{error}: is `server` in {source} right?"


def _certificate(error: ssl.SSLCertVerificationError, source: str) -> tuple[str, str]:
    code = error.verify_code
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
