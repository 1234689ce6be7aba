"""The page /speeds: the learned rates, page by page as lists of Kubernetes, each page in parts; and what is
explained to users whom RBAC lets read it: a pod, a node or a job as JSON, and the list of the pods that wait.

The answers to what fails are those of the API server: 401, 403 and 404; 429 where too many ask; 500 where the
API server could not be asked, and 503 by a replica that does not decide.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from eclectus.api.names import DAG_JOB_LABEL, GROUP, JOB_NAME_LABEL, POOLS
from eclectus.config.what_if import read_question
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_page, node_explanation
from eclectus.explain.pending import pending_pods
from eclectus.explain.pod import explain_pod, job_explanation
from eclectus.explain.pools import standings_page
from eclectus.explain.what_if import Question, what_if_explanation
from eclectus.framework import LearnedCell
from eclectus.kube.objects import Pod, decode_pod
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import ApiClient
from eclectus.kubeclient.serving.access import PERMITTED, AccessControl, Decision, ReadObject, Right
from eclectus.kubeclient.serving.callers import Caller
from eclectus.kubeclient.serving.health import Handler, bearer_token, failure
from eclectus.kubeclient.serving.pages import BusyError, QueryError
from eclectus.live.limits import Limits
from eclectus.live.lists import NODE_SPEED, PENDING_POD, POOL_STANDING, Asked, ListKind
from eclectus.model.errors import MalformedError, QuestionError
from eclectus.model.explanation import (
    AS_POLICY,
    WHAT_IF,
    JobExplanation,
    Listed,
    NodeExplanation,
    Oldest,
    OtherPod,
    PendingPod,
    PodExplanation,
    PodState,
    PoolAhead,
    PoolStanding,
    WhatIfExplanation,
)
from eclectus.model.learned import LearnedNode, LearnedWork
from eclectus.model.objects import EVERYBODY, concerns, namespace_of

READ_SECONDS = 3.0  # for the pod, as for a review
_NAME = re.compile("[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")  # what may become part of a path of the API server

T = TypeVar("T")
Item = TypeVar("Item")
Key = TypeVar("Key")
Admitted = Callable[[str], AbstractContextManager[None]]
"""Admits one caller more, about a namespace. Raises BusyError."""


@dataclass(eq=False)
class ExplainPages:
    """The handlers. `why_not` says why this replica does not decide, and is empty while it does."""

    engine: Engine
    client: ApiClient
    access: AccessControl | None
    limits: Limits
    why_not: Callable[[], str]
    now: Callable[[], float]  # seconds since the epoch
    caller: Callable[[web.Request], Caller] = bearer_token

    def handlers(self) -> Mapping[str, Handler]:
        """The handlers of pages, by path."""
        return {
            "/explain/pods/{namespace}/{name}": self.pods,
            "/explain/pods/{namespace}/{name}/what-if": self.what_ifs,
            "/explain/jobs/{namespace}/{name}": self.jobs,
            "/explain/nodes/{name}": self.nodes,
        }

    async def pending_pods(self, request: web.Request) -> web.Response:
        """List the pods that wait, of the namespace that the path names, or of all if it names none."""
        namespace = request.match_info.get("namespace", "")

        def listed(asked: Asked[Oldest]) -> Listed[PendingPod, Oldest]:
            return self.engine.read(pending_pods, namespace, asked.after, asked.limit, self.now())

        return await self._listed(request, ReadObject("pods", namespace, verb="list"), PENDING_POD, listed)

    async def node_speeds(self, request: web.Request) -> web.Response:
        """List what is learned of nodes."""

        def listed(asked: Asked[str]) -> Listed[LearnedNode, str]:
            return self.engine.read(learned_page, asked.after or "", asked.limit, self.now())

        return await self._listed(request, ReadObject("nodes", verb="list"), NODE_SPEED, listed)

    async def pool_standings(self, request: web.Request) -> web.Response:
        """List how pools stand."""

        def listed(asked: Asked[str]) -> Listed[PoolStanding, str]:
            return self.engine.read(standings_page, asked.after or "", asked.limit, self.now())

        return await self._listed(request, LIST_POOLS, POOL_STANDING, listed)

    async def pods(self, request: web.Request) -> web.Response:
        """Explain the pod that the path names."""
        namespace, name = _full_name(request)
        right = ReadObject("pods", namespace, name)
        return await self._answered(request, (right,), lambda: self._pod(namespace, name))

    async def what_ifs(self, request: web.Request) -> web.Response:
        """Explain the pod that the path names as it would be if what the query says were the case."""
        namespace, name = _full_name(request)
        try:
            question = _question(request, namespace)
        except QuestionError as error:
            # Before the token is reviewed: this depends on the text alone.
            return failure(HTTPStatus.BAD_REQUEST, str(error))
        # The answer says whether these exist, and what they have.
        pods = [(namespace, name), *((pod.namespace, pod.name) for pod in question.deleted_pods)]
        rights = [ReadObject("pods", *pod) for pod in pods]
        if question.is_about_nodes:
            rights.insert(1, ReadObject("nodes"))

        def explained() -> Answer:
            asked = (namespace, name), question, self.now()
            return self.limits.charged(namespace, lambda: self.engine.read(what_if_explanation, *asked))

        admitted = self.limits.admitted_to_change
        return await self._answered(request, rights, lambda: self._in_turn(explained), admitted)

    async def jobs(self, request: web.Request) -> web.Response:
        """Explain the job that the path names."""
        namespace, name = _full_name(request)
        labels = [(key, name) for key in (JOB_NAME_LABEL, DAG_JOB_LABEL)]
        right = ReadObject("pods", namespace)  # of a job nothing is said but what holds for its pods

        def explained() -> Answer:
            return self.engine.read(job_explanation, (namespace, name), labels, self.now())

        return await self._answered(request, (right,), lambda: self._in_turn(explained))

    async def nodes(self, request: web.Request) -> web.Response:
        """Explain the node that the path names."""
        name = request.match_info["name"]

        def explained() -> Answer:
            found = self.engine.read(node_explanation, name)
            if "unknown" in found.conditions:
                raise MissingError(name, HTTPStatus.NOT_FOUND, f'nodes "{name}" not found')
            return found

        right = ReadObject("nodes", name=name)
        return await self._answered(request, (right,), lambda: self._in_turn(explained))

    async def _answered(
        self,
        request: web.Request,
        rights: Sequence[ReadObject],
        make: Callable[[], Awaitable[Answer]],
        admitted: Admitted | None = None,
    ) -> web.Response:
        reader = Reader(self.access, self.caller(request))
        answer = await self._made(request, reader, rights, make, admitted or self.limits.admitted)
        if isinstance(answer, web.Response):
            return answer
        # Other pods are named to users who may read those.
        shown = await reader.readable(answer)
        return web.Response(body=msgspec.json.encode(shown), content_type="application/json")

    async def _listed(
        self,
        request: web.Request,
        right: ReadObject,
        kind: ListKind[Item, Key],
        listed: Callable[[Asked[Key]], Listed[Item, Key]],
    ) -> web.Response:
        """A page of a list, which a table may show."""
        try:
            asked = kind.asked(request.query, request.headers.get("Accept", ""))
        except QueryError as error:
            return failure(HTTPStatus.BAD_REQUEST, str(error))
        reader = Reader(self.access, self.caller(request))
        found = await self._made(
            request,
            reader,
            (right,),
            lambda: self._in_turn(lambda: listed(asked)),
            self.limits.admitted_to_list,
        )
        if isinstance(found, web.Response):
            return found
        shown = await reader.readable(found) if kind.names_others else found
        return web.Response(body=kind.page(shown, is_table=asked.is_table), content_type="application/json")

    async def _made(
        self,
        request: web.Request,
        reader: Reader,
        rights: Sequence[ReadObject],
        make: Callable[[], Awaitable[T]],
        admitted: Admitted,
    ) -> T | web.Response:
        """What is made for a reader with these rights; or why it is not."""
        refused = await self._refused(request, reader, rights)
        if refused is not None:
            return refused
        # Explanations are made one by one, and not more than so many.
        try:
            with admitted(request.match_info.get("namespace", "")):
                return await make()
        except BusyError as error:
            return failure(HTTPStatus.TOO_MANY_REQUESTS, str(error), error.seconds)
        except QuestionError as error:
            return failure(HTTPStatus.BAD_REQUEST, str(error))
        except MissingError as error:
            return failure(HTTPStatus.NOT_FOUND, error.message)
        except (ApiError, MalformedError) as error:
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, f"the object could not be read: {error}")

    async def _refused(
        self, request: web.Request, reader: Reader, rights: Sequence[ReadObject]
    ) -> web.Response | None:
        """Why the request gets no explanation; None if it gets one."""
        # 1. A name that is none does not get into a path of the API server.
        if not all(_NAME.fullmatch(part) for part in request.match_info.values()):
            return failure(HTTPStatus.NOT_FOUND, "there is no object of such a name")
        # 2. Who may not read the object learns nothing of it, not even whether it exists.
        for right in rights:
            decided = await reader.decision(right)
            if decided.status != HTTPStatus.OK:
                return failure(decided.status, decided.message)
        # 3. Only the leader knows; what a standby has seen is of another time.
        why_not = self.why_not()
        return failure(HTTPStatus.SERVICE_UNAVAILABLE, why_not) if why_not else None

    async def _pod(self, namespace: str, name: str) -> Answer:
        """Explain a pod, or say why the engine does not know it. Raises ApiError, MalformedError."""
        found = await self._in_turn(lambda: explain_pod(self.engine, namespace, name, self.now()))
        if found.state != "unknown":
            return found
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        return of_absent(decode_pod(await self.client.get(path, seconds=READ_SECONDS)))

    async def _in_turn(self, explained: Callable[[], T]) -> T:
        async with self.limits.turn:
            return explained()


def _full_name(request: web.Request) -> tuple[str, str]:
    return request.match_info["namespace"], request.match_info["name"]


def _question(request: web.Request, namespace: str) -> Question:
    """The question of a request. Raises QuestionError."""
    unknown = sorted({*request.query} - {WHAT_IF, AS_POLICY})
    if unknown:
        known = f"known are {WHAT_IF}, any number of them, and {AS_POLICY}"
        raise QuestionError(f"there is no parameter {unknown[0]!r}; {known}")
    return read_question(request.query.getall(WHAT_IF, []), request.query.get(AS_POLICY, ""), namespace)


def of_absent(pod: Pod) -> PodExplanation:
    """Why the engine does not know the pod."""
    meta = pod.metadata
    state: PodState = "unknown"
    if pod.status.phase in ("Succeeded", "Failed"):
        summary = f"it has ended: its phase is {pod.status.phase}"
    elif meta.deletion_timestamp is not None:
        state, summary = "deleting", "it is being deleted, so it is not placed any more"
    else:
        summary = "the scheduler has not received it yet, or cannot read it: then its log says so"
    return PodExplanation(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        scheduler_name=pod.spec.scheduler_name,
        state=state,
        summary=summary,
        priority=pod.spec.priority,
    )


# Of one answer about which the API server is asked; the names of further ones are left out.
NAMESPACES_MOST = 8
EVERY_POD = ReadObject("pods")
LIST_POOLS = ReadObject(POOLS, verb="list", group=GROUP)


@dataclass(eq=False)
class Reader:
    """The sender of one request. Without `access` everybody may read everything."""

    access: AccessControl | None
    caller: Caller

    async def decision(self, right: Right) -> Decision:
        """Whether the right is given. Raises nothing."""
        return PERMITTED if self.access is None else await self.access.decision(self.caller, right)

    async def readable(self, answer: T) -> T:
        """Leave out what may not be read; a right that could not be found out counts as not given."""
        needed = rights_needed(answer)
        given = {LIST_POOLS} if LIST_POOLS in needed and await self._has(LIST_POOLS) else set()
        of_pods = sorted(needed - {LIST_POOLS}, key=attrgetter("namespace"))
        if of_pods and await self._has(EVERY_POD):
            given.update(of_pods)
        else:
            given.update([each for each in of_pods[:NAMESPACES_MOST] if await self._has(each)])
        return answer if given == needed else redacted(answer, given.__contains__)

    async def _has(self, right: Right) -> bool:
        return (await self.decision(right)).status == HTTPStatus.OK


Answer = PodExplanation | NodeExplanation | JobExplanation | WhatIfExplanation


def rights_needed(answer: object) -> frozenset[ReadObject]:
    """What a reader must be permitted to see all names in the answer."""
    found = set[ReadObject]()

    def note(right: ReadObject) -> bool:
        found.add(right)
        return True

    _mapped(answer, note)
    return frozenset(found)


def redacted(answer: T, is_given: Callable[[ReadObject], bool]) -> T:
    """The answer with those names alone that these rights permit to see."""
    found: T = _mapped(answer, is_given)
    return found


def _mapped(value: Any, is_given: Callable[[ReadObject], bool]) -> Any:
    if isinstance(value, OtherPod):
        return value if _may_read(value.namespace, is_given) else replace(value, namespace="", name="")
    if isinstance(value, PoolAhead):
        may_see = _may_read(value.namespace, is_given) if value.namespace else is_given(LIST_POOLS)
        return value if may_see else replace(value, path="", namespace="")
    if isinstance(value, tuple):
        return tuple(_mapped(each, is_given) for each in value if _is_kept(each, is_given))
    if isinstance(value, Struct):
        fields = {name: _mapped(getattr(value, name), is_given) for name in value.__struct_fields__}
        return type(value)(**fields)
    return value


def _is_kept(value: object, is_given: Callable[[ReadObject], bool]) -> bool:
    return not isinstance(value, LearnedWork) or _may_read(namespace_of(value.workload), is_given)


def _may_read(namespace: str, is_given: Callable[[ReadObject], bool]) -> bool:
    return namespace == EVERYBODY or is_given(ReadObject("pods", namespace))


# -- /speeds ----------------------------------------------------------------------------------------

MOST_CELLS = 5_000  # of a page: 0.7 MB; 5,000 nodes and 64 classes of work are 320,000 cells
CELLS_PER_PART = 200  # 2 ms


def speeds_page(
    learned_cells: Callable[[str], Iterator[LearnedCell]], query: Mapping[str, str]
) -> Iterator[bytes]:
    """The object `{items, metadata}` with cells in the order of the nodes' names, read as the parts are.

    A page ends with the node in which `limit` is reached; then `metadata.continue` is what `continue` must be
    for the next page. With `namespace` only cells of its workloads and of shared ones are in a page; it may
    then be empty although others follow. `learned_cells` returns the cells of the nodes whose names come
    after one. Raises QueryError.
    """
    namespace = query.get("namespace")
    page = _Page(learned_cells(query.get("continue", "")), _limit(query.get("limit", str(MOST_CELLS))))
    remaining, separator = iter(page), b""
    yield b'{"items":['
    while read := list(islice(remaining, CELLS_PER_PART)):
        part = [cell for cell in read if namespace is None or concerns(cell.workload, namespace)]
        yield separator + msgspec.json.encode(part)[1:-1] if part else b""
        separator = b"," if part else separator
    metadata = {"continue": page.last} if page.has_more else {}
    yield b'],"metadata":' + msgspec.json.encode(metadata) + b"}"


class _Page:
    """The cells up to the end of the node in which the limit is reached."""

    def __init__(self, cells: Iterable[LearnedCell], limit: int) -> None:
        self._cells = cells
        self._limit = limit
        self.last = ""  # the last node
        self.has_more = False

    def __iter__(self) -> Iterator[LearnedCell]:
        for count, cell in enumerate(self._cells):
            if count >= self._limit and cell.node != self.last:
                self.has_more = True
                return
            self.last = cell.node
            yield cell


def _limit(text: str) -> int:
    """More than the most is the most, as with lists of the API server."""
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise QueryError(f"limit must be a whole number above 0, not {text[:20]!r}")
    return min(int(text), MOST_CELLS)
