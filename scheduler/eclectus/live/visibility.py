"""Explanations through the API server, as an aggregated API: for kubectl, dashboards and every other client.

The API server authenticates who asks, and passes the request on over TLS with a client certificate of its
front proxy. Without that certificate nothing is answered, and no header is read. Whoever may `get` a pod may
then read why it waits, as with the page below /explain; whoever may `list` pods, which of them wait.

The leader writes where it is reached into the EndpointSlice of the Service, and its certificate into the
APIService. A standby answers, but only that another replica leads.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from http import HTTPStatus
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from eclectus.api.names import (
    PENDING_PODS,
    VERSION,
    VISIBILITY_API,
    VISIBILITY_GROUP,
    VISIBILITY_SERVICE,
)
from eclectus.config.process_settings import VisibilitySettings
from eclectus.kube.progress import MAX_CHARACTERS
from eclectus.kubeclient.addresses import listen
from eclectus.kubeclient.api_errors import ApiError, CredentialsError
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.serving.access import Recent
from eclectus.kubeclient.serving.callers import Caller
from eclectus.kubeclient.serving.certificate import self_signed
from eclectus.kubeclient.serving.front_proxy import PUBLISHED, FrontProxy, front_proxy_of
from eclectus.kubeclient.serving.health import Handler, failure, serving
from eclectus.kubeclient.serving.pages import RETRY_SECONDS
from eclectus.kubeclient.side_loop import entered, on
from eclectus.kubeclient.timing import TroubleLog, elapsed
from eclectus.live.lists import NODE_SPEED, PENDING_POD, POOL_STANDING
from eclectus.live.pages import ExplainPages
from eclectus.live.said_progress import ProgressPage

_log = logging.getLogger(__name__)

ROUND_SECONDS = 10.0  # between two reads of whom to believe, and two writes of where the leader is
REQUEST_SECONDS = 3.0  # of each of them
ANSWER_SECONDS = 15.0  # after which a question is answered with 503
REFUSED_MOST = 1024  # refusals that are remembered
BODY_MOST = MAX_CHARACTERS  # bytes of a request: what an annotation may have


class Proven:
    """Whom to believe, and TLS by which they prove themselves. `pem`: certificate and key of the server."""

    def __init__(self, api: ObjectApi, pem: bytes) -> None:
        self._api = api
        self._pem = pem
        self._trouble = TroubleLog(_log)
        self.front_proxy: FrontProxy | None = None
        self.context: ssl.SSLContext
        self.known = asyncio.Event()

    async def follow(self) -> None:
        """Read whom to believe again and again, until cancelled. What cannot be read stays as it was."""
        while True:
            await self.read()
            await asyncio.sleep(ROUND_SECONDS)

    async def read(self) -> None:
        """Read once whom to believe; a failure is logged."""
        try:
            found = front_proxy_of(await self._api.send("GET", PUBLISHED, seconds=REQUEST_SECONDS))
            if found != self.front_proxy:
                # A new context knows nothing of what the old one has believed.
                self.context, self.front_proxy = found.context(self._pem), found
                self.known.set()
        except (ApiError, CredentialsError) as error:
            self._trouble.failed(type(error).__name__, f"who may ask the aggregated API: {error}")
        else:
            self._trouble.succeeded("who may ask the aggregated API can be read again")

    def caller(self, request: web.Request) -> Caller | str:
        """Who asks; or why the client is not believed."""
        transport, front_proxy = request.transport, self.front_proxy
        if transport is None or front_proxy is None:
            return "the connection is closed"
        connection = transport.get_extra_info("ssl_object")
        if connection is None or connection.context is not self.context:
            return "the authority of the request headers was replaced: connect again"
        why_not = front_proxy.why_not(transport.get_extra_info("peercert"))
        return why_not or front_proxy.subject(request.headers)


# -- what is served -----------------------------------------------------------------------------------

_GROUP_VERSION = {"groupVersion": VISIBILITY_API, "version": VERSION}
_GROUP = {"name": VISIBILITY_GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}


class Resource(NamedTuple):
    """A resource of the API, and the paths at which it is read, below that of the version."""

    name: str
    kind: str
    verb: Literal["get", "list", "create"]
    paths: tuple[str, ...]
    answer: Handler  # of a list, the whole answer; of an object, what there is beside kind and metadata

    @property
    def method(self) -> str:
        """Of its requests."""
        return "POST" if self.verb == "create" else "GET"

    @property
    def entry(self) -> dict[str, Any]:
        """What discovery says of it."""
        return {
            "name": self.name,
            "singularName": self.kind.lower() if self.verb == "list" else "",
            "namespaced": any("{namespace}" in path for path in self.paths),
            "kind": self.kind,
            "verbs": [self.verb],
        }


def resources_of(explain: ExplainPages, progress: ProgressPage) -> tuple[Resource, ...]:
    """All that is served."""
    pod, job = "/namespaces/{namespace}/pods/{name}", "/namespaces/{namespace}/jobs/{name}"
    pending = (f"/{PENDING_PODS}", f"/namespaces/{{namespace}}/{PENDING_PODS}")
    return (
        Resource("pods/explanation", "PodExplanation", "get", (f"{pod}/explanation",), explain.pods),
        Resource("pods/what-if", "WhatIfExplanation", "get", (f"{pod}/what-if",), explain.what_ifs),
        Resource("jobs/explanation", "JobExplanation", "get", (f"{job}/explanation",), explain.jobs),
        Resource(
            "nodes/explanation", "NodeExplanation", "get", ("/nodes/{name}/explanation",), explain.nodes
        ),
        Resource(PENDING_PODS, PENDING_POD.kind, "list", pending, explain.pending_pods),
        Resource("nodespeeds", NODE_SPEED.kind, "list", ("/nodespeeds",), explain.node_speeds),
        Resource("poolstandings", POOL_STANDING.kind, "list", ("/poolstandings",), explain.pool_standings),
        Resource("pods/progress", "PodProgress", "create", (f"{pod}/progress",), progress.say),
    )


def discovery(resources: Iterable[Resource]) -> Mapping[str, Mapping[str, Any]]:
    """The documents that describe the API, by path."""
    listed = {"groupVersion": VISIBILITY_API, "resources": [each.entry for each in resources]}
    return {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
        f"/apis/{VISIBILITY_GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
        f"/apis/{VISIBILITY_API}": {"kind": "APIResourceList", "apiVersion": "v1", **listed},
    }


_CALLER: web.RequestKey[Caller] = web.RequestKey("caller")


def caller_of(request: web.Request) -> Caller:
    """Who asks, of a request that has been let in."""
    return request[_CALLER]


class Refusal(NamedTuple):
    """An answer 429: its body, and when to ask again."""

    body: Any
    again: str


Refused = Recent[tuple[bytes, str, str], Refusal]
"""By caller, resource and namespace."""


def application(
    proven: Proven,
    resources: Sequence[Resource],
    made_by: asyncio.AbstractEventLoop,
    now: Callable[[], float] = elapsed,
) -> web.Application:
    """The aggregated API. What is read is made on the loop `made_by`.

    Who has asked too much there is refused here for a second, and costs that loop nothing.
    """
    refused: Refused = Recent(RETRY_SECONDS, REFUSED_MOST, now)

    @web.middleware
    async def let_in(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        caller = proven.caller(request)
        if isinstance(caller, str):
            refused = failure(HTTPStatus.UNAUTHORIZED, caller)
            refused.force_close()
            return refused
        request[_CALLER] = caller
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await handler(request)
        except TimeoutError:
            return failure(
                HTTPStatus.SERVICE_UNAVAILABLE, f"no answer within {ANSWER_SECONDS:g} s: ask again"
            )
        except web.HTTPNotFound:
            return failure(HTTPStatus.NOT_FOUND, "the server could not find the requested resource")
        except web.HTTPRequestEntityTooLarge:
            return failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {BODY_MOST} bytes are read")

    app = web.Application(middlewares=[let_in], client_max_size=BODY_MOST)
    for path, document in discovery(resources).items():
        app.router.add_get(path, _document(document))
    for resource in resources:
        for path in resource.paths:
            answering = _answering(resource, made_by, refused)
            app.router.add_route(resource.method, f"/apis/{VISIBILITY_API}{path}", answering)
    return app


def _answering(resource: Resource, made_by: asyncio.AbstractEventLoop, refused: Refused) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        key = caller_of(request).key, resource.name, request.match_info.get("namespace", "")
        if (before := refused.get(key)) is not None:
            again = {"Retry-After": before.again}
            return web.Response(body=before.body, status=429, headers=again, content_type="application/json")
        if resource.verb == "create":
            await request.read()  # on this loop; it is kept for the handler
        found = await on(made_by, resource.answer(request))
        if isinstance(found, web.Response) and found.status == HTTPStatus.TOO_MANY_REQUESTS:
            refused.put(key, Refusal(found.body, found.headers["Retry-After"]))
        if not isinstance(found, web.Response) or found.status != HTTPStatus.OK or resource.verb == "list":
            return found
        return _as_object(resource.kind, found.body, request.match_info)

    return answer


def _document(document: Mapping[str, Any]) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(document)

    return answer


def _as_object(kind: str, explanation: Any, named: Mapping[str, str]) -> web.Response:
    """The explanation, which is JSON, with the fields that every object of an API has."""
    head = {"kind": kind, "apiVersion": VISIBILITY_API, "metadata": dict(named)}
    body = msgspec.json.encode(head)[:-1] + b"," + explanation[1:]
    return web.Response(body=body, content_type="application/json")


# -- the server ---------------------------------------------------------------------------------------


class Visibility:
    """Serves the API at `front`, and says where, while `leads`. `api_url` is that of the API server."""

    def __init__(
        self,
        settings: VisibilitySettings,
        api: ObjectApi,
        api_url: str,
        leads: Callable[[], bool],
    ) -> None:
        self._settings, self._api, self._api_url, self._leads = settings, api, api_url, leads
        self._namespace, _, self._service = settings.service.partition("/")
        pem = self_signed(f"{self._service}.{self._namespace}.svc")
        self._certificate = pem.partition(b"-----BEGIN PRIVATE KEY-----")[0]
        self._proven = Proven(api, pem)
        self._trouble = TroubleLog(_log)

    async def run(self, resources: Sequence[Resource], front: asyncio.AbstractEventLoop) -> None:
        """Serve until cancelled, on the loop `front`; what is read is made on this one.

        Raises ListenError.
        """
        main = asyncio.get_running_loop()
        listening = listen(self._settings.address, self._settings.port, "visibility.")
        async with AsyncExitStack() as stack:
            stack.enter_context(closing(listening))
            # Before it is known whom to believe, nobody is answered.
            following = asyncio.create_task(self._proven.follow(), name="front-proxy")
            stack.callback(following.cancel)
            await self._proven.known.wait()
            app = application(self._proven, resources, main)
            await stack.enter_async_context(entered(front, serving(app, listening, _Followed(self._proven))))
            port = listening.getsockname()[1]
            _log.info("serving explanations through the API server", extra={"port": port})
            while True:
                if self._leads():
                    await self._publish(port)
                await asyncio.sleep(ROUND_SECONDS if self._leads() else STANDBY_SECONDS)

    async def _publish(self, port: int) -> None:
        """Write who serves: first the certificate, then where it is reached. A failure is logged."""
        bundle = base64.b64encode(self._certificate).decode()
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices/{self._service}"
        services = f"/apis/apiregistration.k8s.io/v1/apiservices/{VISIBILITY_SERVICE}"
        try:
            address = self._settings.advertise_address or await asyncio.to_thread(own_address, self._api_url)
            where = {
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            }
            await self._api.send("PATCH", services, {"spec": {"caBundle": bundle}}, seconds=REQUEST_SECONDS)
            await self._api.send("PATCH", slices, where, seconds=REQUEST_SECONDS)
        except (ApiError, OSError) as error:
            self._trouble.failed(type(error).__name__, f"the API server does not learn who explains: {error}")
        else:
            self._trouble.succeeded("the API server learns again who explains")


STANDBY_SECONDS = 1.0  # until a new leader says so


class _Followed:
    """The TLS of a server whose context somebody else keeps up to date, on another loop."""

    def __init__(self, proven: Proven) -> None:
        self._proven = proven

    @property
    def context(self) -> ssl.SSLContext:
        """That of now."""
        return self._proven.context

    async def follow(self) -> None:
        """Nothing is to be done here."""


def own_address(url: str) -> str:
    """The IP address from which this machine reaches the host of a URL. Nothing is sent. Raises OSError."""
    parts = urlsplit(url)
    family, kind, _, _, where = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[
        0
    ]
    with socket.socket(family, kind) as trial:
        trial.connect(where)
        return str(trial.getsockname()[0])
