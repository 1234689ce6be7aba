"""A small API server client: single requests, and an endless list-and-watch."""

import asyncio
import base64
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import aiohttp
import msgspec
import yaml

from eclectus.api.common import read_json
from eclectus_e2e.errors import ApiError, UsageError

LOG = logging.getLogger("kubelet.api")
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
_RETRY_FIRST_SECONDS, _RETRY_MAX_SECONDS = 0.1, 5.0
# Responses to writes are not used. Without this they hold the whole object with its managedFields.
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
_WATCH_SECONDS = 300  # the server ends a watch after this time; a longer silence means a dead connection
_TLS_SHUTDOWN_SECONDS = 0.25  # from aiohttp's documentation, "Graceful shutdown"
_LINE_BYTES = 2**20  # aiohttp derives the maximal line length from it; a watch event is one line

T = TypeVar("T")
TRANSIENT = (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError)


@dataclass(frozen=True)
class Access:
    """Address and credentials of an API server."""

    url: str
    tls: ssl.SSLContext
    token: str


@dataclass(frozen=True)
class Change(Generic[T]):
    """`synced`: `items` are all existing objects. `written`, `deleted`: one object changed."""

    kind: Literal["synced", "written", "deleted"]
    items: list[T]


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] = []


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _ListMeta


class _Problem(msgspec.Struct, frozen=True):
    """The API server's Status object."""

    reason: str = ""
    message: str = ""
    code: int = 0


class Api:
    """An open session; use as `async with Api(access) as api`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def __aenter__(self) -> "Api":
        headers = {"User-Agent": "eclectus-e2e-kubelet"}
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        connector = aiohttp.TCPConnector(limit=0, ssl=self._access.tls)
        self._session = aiohttp.ClientSession(
            self._access.url, connector=connector, headers=headers, read_bufsize=_LINE_BYTES
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        # TLS transports close in later iterations of the loop; wait before the loop may end.
        await asyncio.sleep(_TLS_SHUTDOWN_SECONDS)

    async def request(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> bytes:
        """Send one request; returns the body. Raises ApiError for a status of 400 or above, an error of
        TRANSIENT without a response."""
        data = None if body is None else msgspec.json.encode(body)
        headers = (
            {"Content-Type": kind} if method == "GET" else {"Content-Type": kind, "Accept": _METADATA_ONLY}
        )
        timeout = aiohttp.ClientTimeout(total=30)
        async with self._session.request(
            method, path, data=data, headers=headers, timeout=timeout
        ) as response:
            content = await response.read()
        if response.status >= 400:
            raise _error(f"{method} {path}", response.status, content)
        return content

    async def changes(self, path: str, type_: type[T], selector: str = "") -> AsyncIterator[Change[T]]:
        """List, then watch from that version, endlessly; lists again after an error or an expired version."""
        decoder = msgspec.json.Decoder(type_)
        wait_seconds = _RETRY_FIRST_SECONDS
        while True:
            try:
                content = await self.request("GET", f"{path}?{selector}")
                listed = read_json(msgspec.json.Decoder(_List).decode, content)
                yield Change("synced", _decoded(decoder, listed.items))
                wait_seconds = _RETRY_FIRST_SECONDS
                async for change in self._watched(path, selector, listed.metadata.resource_version, decoder):
                    yield change
            except (*TRANSIENT, ApiError) as error:
                if isinstance(error, ApiError) and error.status in (401, 403):
                    raise
                LOG.warning("list and watch of %s: %r; retrying in %.1f s", path, error, wait_seconds)
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _RETRY_MAX_SECONDS)

    async def _watched(
        self, path: str, selector: str, version: str, decoder: msgspec.json.Decoder[T]
    ) -> AsyncIterator[Change[T]]:
        """Watch from a version and resume after each regular end. Raises ApiError 410 when it has expired."""
        events = msgspec.json.Decoder(_Event)
        while True:
            query = (
                f"watch=1&allowWatchBookmarks=true&timeoutSeconds={_WATCH_SECONDS}&resourceVersion={version}"
            )
            timeout = aiohttp.ClientTimeout(total=None, sock_read=_WATCH_SECONDS + 30)
            async with self._session.get(f"{path}?{selector}&{query}", timeout=timeout) as response:
                if response.status >= 400:
                    raise _error(f"watch {path}", response.status, await response.read())
                async for line in response.content:
                    event = read_json(events.decode, line)
                    if event.type == "ERROR":
                        raise _error(f"watch {path}", 410, bytes(event.object))
                    version = msgspec.json.decode(event.object, type=_Versioned).metadata.resource_version
                    if event.type != "BOOKMARK":
                        kind: Literal["written", "deleted"] = (
                            "deleted" if event.type == "DELETED" else "written"
                        )
                        yield Change(kind, _decoded(decoder, [event.object]))


def _decoded(decoder: msgspec.json.Decoder[T], objects: list[msgspec.Raw]) -> list[T]:
    """Decode objects; one that does not fit its type is logged and skipped."""
    good: list[T] = []
    for raw in objects:
        try:
            good.append(decoder.decode(raw))
        except msgspec.DecodeError as error:
            LOG.error("unreadable object skipped: %s: %s", error, bytes(raw)[:300])
    return good


def _error(what: str, status: int, content: bytes) -> ApiError:
    try:
        problem = msgspec.json.decode(content, type=_Problem)
    except msgspec.DecodeError:  # not a Status object: a proxy's page, for example
        problem = _Problem(message=content[:300].decode(errors="replace"))
    return ApiError(what, problem.code or status, problem.reason, problem.message)


def read_access(kubeconfig: Path) -> Access:
    """Address and credentials of a kubeconfig's current context: client certificate or token.

    Raises UsageError for a file that is not a kubeconfig, or whose user needs a login program.
    """
    try:
        content = yaml.safe_load(kubeconfig.read_text())
        context = _named(content, "contexts", content["current-context"])["context"]
        cluster = _named(content, "clusters", context["cluster"])["cluster"]
        user = _named(content, "users", context["user"])["user"]
        url = cluster["server"]
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise UsageError(f"{kubeconfig} is not a kubeconfig with a current context: {error!r}") from error
    if "exec" in user or "auth-provider" in user:
        raise UsageError(
            f"{kubeconfig}: user {context['user']} logs in through another program; "
            "the fake kubelet needs a client certificate or a token"
        )
    return Access(url, _tls(kubeconfig, cluster, user), user.get("token", ""))


def _named(content: Any, section: str, name: str) -> Any:
    return next(entry for entry in content[section] if entry["name"] == name)


def _tls(kubeconfig: Path, cluster: dict[str, str], user: dict[str, str]) -> ssl.SSLContext:
    authority = _pem(kubeconfig, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = (_pem(kubeconfig, user, name) for name in ("client-certificate", "client-key"))
    if certificate and key:
        # The ssl module reads certificates from files only. The temporary file has mode 0600.
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _pem(kubeconfig: Path, entry: dict[str, str], name: str) -> bytes:
    """Inline data, or the content of the named file (relative to the kubeconfig); empty without either."""
    if f"{name}-data" in entry:
        return base64.b64decode(entry[f"{name}-data"])
    return (kubeconfig.parent / entry[name]).read_bytes() if name in entry else b""
