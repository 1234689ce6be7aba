"""What is to be explained, asked of the scheduler that leads: by the API server, a port-forward or a URL.

An object is named as kubectl names it: `pod/NAME`, `node/NAME` or `job/NAME`.

Where the API server passes questions on, as an aggregated API, it is asked. All else is here.

Leases say which scheduler to ask: one in kube-system names the installation that serves a schedulerName, and
that of the installation its leader and the leader's server. Whoever could write these would be sent tokens,
so nothing is looked for elsewhere.

The server's certificate is known by its fingerprint, which the leader writes on its Lease, or by an authority
that the caller names. The caller's token goes nowhere before that is verified, and never over plain HTTP.

A port of a pod is reached through the API server: its subresource portforward, over a WebSocket. Every
message begins with the number of its channel. With one port the channel 0 has its data, and 1 what went
wrong; the first message of each is the port's number (`v4.channel.k8s.io`, kubelet's streaming server).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import urlencode

import click
import msgspec

from eclectus.api.names import CLAIMS_NAMESPACE, PART_OF, SCHEDULER_NAME_CLAIM, VISIBILITY_API
from eclectus.cli.cluster_commands import REQUEST_SECONDS
from eclectus.cli.explain.patience import Sleep, patiently
from eclectus.kubeclient.addresses import is_loopback
from eclectus.kubeclient.api_errors import (
    ApiError,
    MissingError,
    NotDoneError,
    RejectedError,
    UnsureError,
    error_from,
)
from eclectus.kubeclient.election import LeaderServer, leader_server, lease_from
from eclectus.model.errors import QuestionError
from eclectus.model.explanation import AS_POLICY, WHAT_IF
from eclectus.model.printed import spelling

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import Fingerprint

    from eclectus.explain.what_if import Question
    from eclectus.kubeclient.client import ApiClient, ObjectApi
    from eclectus.kubeclient.credentials import Credentials

Kind = Literal["pod", "node", "job"]
SPELLINGS: dict[Kind, tuple[str, ...]] = {
    "pod": ("pod", "pods", "po"),
    "node": ("node", "nodes", "no"),
    "job": ("job", "jobs", "dagjob", "dagjobs", "dj"),
}
"""Kind -> its spellings, as kubectl has them."""


class Target(NamedTuple):
    """One object; a node has no namespace."""

    kind: Kind
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"


def target_of(text: str, namespace: str) -> Target:
    """The target that a user has spelled. Raises click.UsageError."""
    kind_text, slash, name = text.partition("/")
    kind = next((kind for kind, known in SPELLINGS.items() if kind_text in known), None)
    if kind is None or not slash or not name or "/" in name:
        known = [one for spellings in SPELLINGS.values() for one in spellings]
        near = spelling(kind_text, known) if kind is None and slash else ""
        raise click.UsageError(f"{text!r} is none of pod/NAME, node/NAME, job/NAME{near and '; '}{near}")
    return Target(kind, name, "" if kind == "node" else namespace)


class Asked(NamedTuple):
    """What would be other than it is, and which policy decides; empty: the object is explained as it is."""

    what_if: tuple[str, ...] = ()
    as_policy: str = ""

    @property
    def path(self) -> str:
        """What follows the path of the object on the scheduler's server."""
        return "" if self == NOTHING_ELSE else f"/what-if?{urlencode(self.query, doseq=True)}"

    @property
    def query(self) -> dict[str, tuple[str, ...]]:
        """The parameters of the request."""
        return {WHAT_IF: self.what_if, AS_POLICY: (self.as_policy,) if self.as_policy else ()}

    def check(self, target: Target) -> None:
        """Raise click.UsageError for what is wrong with it. Which policies there are the scheduler knows."""
        if self == NOTHING_ELSE:
            return
        if target.kind != "pod":
            raise click.UsageError(f"--what-if and --as-policy ask about a pod, not about a {target.kind}")
        from eclectus.config.changes import read_changes

        try:
            read_changes(self.what_if, target.namespace)
        except QuestionError as error:
            raise click.UsageError(str(error)) from None

    def question(self, target: Target) -> Question | None:
        """The same as an engine is asked; None for nothing else. Raises click.UsageError."""
        self.check(target)
        if self == NOTHING_ELSE:
            return None
        from eclectus.config.what_if import read_question

        try:
            return read_question(self.what_if, self.as_policy, target.namespace)
        except QuestionError as error:
            raise click.UsageError(str(error)) from None


NOTHING_ELSE = Asked()


# -- a port of a pod ----------------------------------------------------------------------------------

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
CHUNK = 2**15  # bytes of a message
LOOPBACK = "127.0.0.1"


class Forward:
    """One forwarded connection. `port` on loopback takes it; `problem` is what the node says went wrong."""

    def __init__(self, remote: aiohttp.ClientWebSocketResponse) -> None:
        self._remote = remote
        self._copying: list[asyncio.Task[None]] = []
        self.port = 0
        self.problem = ""

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for task in self._copying:
            task.cancel()
        await asyncio.gather(*self._copying, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions. A further connection would be of somebody else on this machine."""
        if self._copying:
            writer.close()
            return
        self._copying = [asyncio.create_task(each) for each in (self._send(reader), self._receive(writer))]

    async def _send(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._remote.send_bytes(bytes([DATA]) + data)

    async def _receive(self, writer: asyncio.StreamWriter) -> None:
        import aiohttp

        begun = set[int]()
        try:
            async for message in self._remote:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel not in begun:  # the port's number
                    begun.add(channel)
                elif channel == ERROR:
                    self.problem = data.decode(errors="replace").strip()
                    return
                else:
                    writer.write(data)
                    await writer.drain()
        finally:
            with suppress(OSError):
                writer.close()


@asynccontextmanager
async def forwarded(client: ApiClient, namespace: str, pod: str, port: int) -> AsyncIterator[Forward]:
    """One connection to a port of a pod, for the length of the block. Raises ApiError.

    The caller needs `get`, from Kubernetes 1.35 on also `create`, of `pods/portforward` in the namespace.
    """
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
    async with _web_socket(client, path, {"ports": str(port)}) as remote, Forward(remote) as forward:
        yield forward


@asynccontextmanager
async def _web_socket(
    client: ApiClient, path: str, query: Mapping[str, str]
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A connection whose messages have the form of the protocol. Raises ApiError while it is opened."""
    import aiohttp

    what, credentials = f"GET {path}", client.credentials
    endpoint = credentials.endpoint
    session = aiohttp.ClientSession(f"{endpoint.url}/", trust_env=False, proxy=endpoint.proxy)
    async with session:
        try:
            with client.translated_errors(what):
                async with asyncio.timeout(client.seconds):
                    opened = await session.ws_connect(
                        path.lstrip("/"),
                        params=query,
                        protocols=(PROTOCOL,),
                        headers=credentials.headers,
                        ssl=endpoint.tls or True,
                        server_hostname=endpoint.server_name,
                    )
        except aiohttp.WSServerHandshakeError as error:
            raise error_from(what, error.status, b"", error.headers or {}, client.advice) from error
        except aiohttp.ClientError as error:
            raise UnsureError(what, message=f"no answer: {error}") from error
        async with opened:
            yield opened


OR_SERVER = "or name its server with --server URL"

Object = dict[str, Any]


@dataclass(frozen=True)
class Leader:
    """The leader, the Lease that says so as `namespace/name`, and its server."""

    lease: str
    identity: str
    server: LeaderServer


async def find_leader(api: ObjectApi, names: Sequence[str]) -> Leader:
    """The leader for the first of these schedulerNames that is served.

    Raises click.ClickException, which says what to do.
    """
    for name in names:
        claim = await _lease(api, CLAIMS_NAMESPACE, f"{SCHEDULER_NAME_CLAIM}{name}")
        if claim is None or not (installation := lease_from(claim).holder):
            continue
        namespace, _, of_installation = installation.partition("/")
        lease = await _lease(api, namespace, of_installation)
        if lease is None:
            raise click.ClickException(f"no scheduler leads: there is no Lease {installation}")
        identity = lease_from(lease).holder
        if not identity:
            raise click.ClickException(f"no scheduler leads: nobody holds the Lease {installation}")
        server = leader_server(installation, lease["metadata"].get("annotations") or {})
        if server is None:
            raise click.ClickException(
                f"the Lease {installation} does not say where the server of {identity} is: it has led for "
                "some seconds only, or is of a version that does not explain"
            )
        return Leader(installation, identity, server)
    tried = " or ".join(names)
    raise click.ClickException(
        f"no Eclectus scheduler serves {tried}: name another schedulerName with --scheduler-name, {OR_SERVER}"
    )


async def _lease(api: ObjectApi, namespace: str, name: str) -> Object | None:
    """A Lease; None if there is none of the name."""
    try:
        return await api.send("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    except MissingError:
        return None
    except RejectedError as error:
        advice = f"you need `get` of the Lease {namespace}/{name}"
        raise click.ClickException(f"{error.message}: {advice}, {OR_SERVER}") from None


@dataclass(frozen=True)
class Source:
    """Whom to ask and how.

    `scheduler_name` says of which installation the leader is asked; empty: that of the pod, or `eclectus`.
    `server` is the URL of the scheduler; empty: found by the Lease, and reached by a port-forward. Without
    `certificate_authority` its certificate is known by the Lease too; without `token_file` the token is that
    of the kubeconfig.
    """

    scheduler_name: str = ""
    server: str = ""
    certificate_authority: Path | None = None
    token_file: Path | None = None


async def answer_from_scheduler(
    access: Credentials,
    target: Target,
    source: Source,
    asked: Asked = NOTHING_ELSE,
    sleep: Sleep = asyncio.sleep,
) -> bytes:
    """The explanation as JSON, asked for again while the scheduler is asked too much.

    Raises click.ClickException and ApiError.
    """
    try:
        return await patiently(lambda: _answer(access, target, source, asked), sleep)
    except NotDoneError as error:
        if error.status != HTTPStatus.TOO_MANY_REQUESTS:
            raise
        raise click.ClickException(_refusal_of(error.status, error.message)) from None


async def _answer(access: Credentials, target: Target, source: Source, asked: Asked) -> bytes:
    from eclectus.kubeclient.client import connected

    place = f"{target.namespace}/" if target.namespace else ""
    path = f"/explain/{target.kind}s/{place}{target.name}{asked.path}"
    async with connected(access, REQUEST_SECONDS) as client:
        if source.server:
            return await _of_scheduler(client, access, target, path, source)
        found = await _by_the_api_server(client, target, asked) if source == Source() else None
        if isinstance(found, bytes) and not _is_of_another(found):
            return found
        try:
            return await _of_scheduler(client, access, target, path, source)
        except click.ClickException:
            # No other installation can say more of it to this caller.
            if found is None:
                raise
            if isinstance(found, click.ClickException):
                raise found from None
            return found


def _is_of_another(answer: bytes) -> bool:
    """Whether another installation may know more of it: it waits for that one, or is not known here."""
    fields = msgspec.json.decode(answer)
    return fields.get("state") == "otherScheduler" or fields.get("known") is False


async def _of_scheduler(
    client: ApiClient, access: Credentials, target: Target, path: str, source: Source
) -> bytes:
    """From the leader itself, or the server that the caller has named."""
    async with server_of(client, access, source, target) as server:
        return await _get(server.url + path, server.token, server.trust)


class Server(NamedTuple):
    """A scheduler's server, the token for it, empty if none may be sent, and what its certificate must be."""

    url: str
    token: str
    trust: ssl.SSLContext | Fingerprint | bool


@asynccontextmanager
async def server_of(
    client: ApiClient, access: Credentials, source: Source, target: Target | None = None
) -> AsyncIterator[Server]:
    """The server of the leader, for one request, or the one that the caller has named.

    `target` is the object that is asked about, if it is about one. Raises click.ClickException and ApiError.
    """
    if source.server:
        yield await _named_server(client, access, source, target)
        return
    leader = await _leader(client, target, source)
    token = "" if not leader.server.certificate else token_of(access, source.token_file)
    async with _reached(client, leader) as url:
        yield Server(url, token, _known_by(leader))


async def _by_the_api_server(
    client: ApiClient, target: Target, asked: Asked
) -> bytes | click.ClickException | None:
    """The explanation by the aggregated API, or why the question is refused.

    None where that does not serve it; what fails is said. Raises click.ClickException where the object does
    not exist, and NotDoneError where too much is asked.
    """
    place = f"namespaces/{target.namespace}/" if target.namespace else ""
    kind, answer = f"{target.kind}s", "explanation" if asked == NOTHING_ELSE else "what-if"
    try:
        served = msgspec.json.decode(await client.get(f"/apis/{VISIBILITY_API}"))
        if f"{kind}/{answer}" not in [each["name"] for each in served["resources"]]:
            return None  # that leader is of a version that does not serve it there
    except (MissingError, RejectedError):
        return None  # as without the chart's visibility.enabled; who may discover nothing does not know
    except ApiError as error:
        _say(error)
        return None
    try:
        path = f"/apis/{VISIBILITY_API}/{place}{kind}/{target.name}/{answer}"
        return await client.get(path, asked.query if asked != NOTHING_ELSE else None)
    except MissingError as error:
        raise click.ClickException(error.message) from None
    except ApiError as error:
        if error.status == HTTPStatus.BAD_REQUEST:
            return click.ClickException(_refusal_of(error.status, error.message))
        _say(error)
        return None


def _say(error: ApiError) -> None:
    """Say why the leader itself is asked. Raises NotDoneError where too much is asked, of it too."""
    if error.status == HTTPStatus.TOO_MANY_REQUESTS:
        raise error
    problem = f"the API server does not explain it: {error.reason}"
    click.echo(f"{problem}; asking the leader itself, which needs other rights", err=True)


def token_of(access: Credentials, token_file: Path | None) -> str:
    """The token that proves who asks. Raises click.ClickException if there is none."""
    if token_file is not None:
        return token_file.read_text(encoding="utf-8").strip()
    token = access.headers.get("Authorization", "").partition(" ")[2]
    if not token:
        raise click.ClickException(
            f"{access.source} has {access.authenticates_by or 'no credentials'}, "
            "and the scheduler knows callers by tokens alone: give one with --token-file, such as "
            "`kubectl create token ACCOUNT > FILE` writes of a ServiceAccount that may read the object"
        )
    return token


async def _named_server(
    client: ApiClient, access: Credentials, source: Source, target: Target | None
) -> Server:
    url = source.server.rstrip("/")
    if url.startswith("http://"):
        return Server(url, "", True)
    if not url.startswith("https://"):
        raise click.UsageError(f"--server {source.server!r} must start with https:// or http://")
    token = token_of(access, source.token_file)
    if source.certificate_authority is not None:
        return Server(url, token, ssl.create_default_context(cafile=source.certificate_authority))
    return Server(url, token, _known_by(await _leader(client, target, source)))


async def _leader(client: ApiClient, target: Target | None, source: Source) -> Leader:
    from eclectus.kubeclient.client import ObjectApi

    api = ObjectApi(client)
    if source.scheduler_name:
        return await find_leader(api, (source.scheduler_name,))
    names = [PART_OF]
    if target is not None and target.kind == "pod":
        try:
            pod = await api.send("GET", f"/api/v1/namespaces/{target.namespace}/pods/{target.name}")
        except (MissingError, RejectedError) as error:
            raise click.ClickException(error.message) from None
        names.insert(0, str(pod["spec"].get("schedulerName", "")))
    return await find_leader(api, tuple(dict.fromkeys(names)))


@asynccontextmanager
async def _reached(client: ApiClient, leader: Leader) -> AsyncIterator[str]:
    """A URL of the leader's server for one request, through the API server."""
    server, where = leader.server, f"{leader.server.namespace}/{leader.server.pod}"
    scheme = "https" if server.certificate else "http"
    if not server.pod:
        if not is_loopback(server.host):
            advice = f"name its server with --server {scheme}://HOST:{server.port}"
            raise click.ClickException(f"{leader.identity} does not run in a pod: {advice}")
        yield f"{scheme}://{server.address}"  # as a scheduler for trials on this machine
        return
    try:
        async with forwarded(client, server.namespace, server.pod, server.port) as forward:
            try:
                yield f"{scheme}://{LOOPBACK}:{forward.port}"
            except click.ClickException as error:
                if forward.problem:
                    raise click.ClickException(f"port-forward to pod {where}: {forward.problem}") from error
                raise
    except MissingError:
        raise click.ClickException(f"the leader's pod {where} is gone: ask again in a moment") from None
    except RejectedError as error:
        rights = f"`get` and `create` of pods/portforward in namespace {server.namespace}"
        raise click.ClickException(f"no port-forward to pod {where}: {error}; you need {rights}") from None


def _known_by(leader: Leader) -> Fingerprint | bool:
    """What the server's certificate must be; True where it has none, as for plain HTTP."""
    from aiohttp import Fingerprint

    return Fingerprint(bytes.fromhex(leader.server.certificate)) if leader.server.certificate else True


async def _get(url: str, token: str, trust: ssl.SSLContext | Fingerprint | bool) -> bytes:
    """The body of a GET. Raises click.ClickException with what is wrong, and NotDoneError as above."""
    import aiohttp

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limit = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(trust_env=False, timeout=limit) as session,
            session.get(url, headers=headers, ssl=trust, allow_redirects=False) as answer,
        ):
            body = await answer.read()
            if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise error_from(f"GET {url}", answer.status, body, answer.headers, advice="")
            if answer.status != HTTPStatus.OK:
                raise click.ClickException(refusal(answer.status, body))
            return body
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unanswered(url, error) from error


def unanswered(url: str, error: Exception) -> click.ClickException:
    """What to say where a server gives no answer, or not all of it."""
    import aiohttp

    if isinstance(error, aiohttp.ServerFingerprintMismatch):
        return click.ClickException(
            f"the certificate of {url} is not the one that the Lease names: a standby answers there, or "
            "somebody else, or the certificate was just replaced; nothing was sent"
        )
    return click.ClickException(f"{url}: {error or type(error).__name__}")


def refusal(status: int, body: bytes) -> str:
    """What to say of an answer that refuses."""
    from eclectus.kubeclient.api_errors import message_of

    advice = "; the token may have expired" if status == 401 else ""
    return _refusal_of(status, f"{message_of(body)}{advice}")


def _refusal_of(status: int, message: str) -> str:
    return f"the scheduler answers {status}: {message}"
