"""A tape on demand: what the leader decides for some minutes, sent to the client that asked for it.

It begins with a snapshot, as a new leader would know the cluster: the nodes in their order here, what is
learned of them, and lists of all else that is watched, made for this tape. Events that come while these are
read follow. From the step with the event Reseeded on the tape has what the engine decides, in which all
random numbers begin anew. An engine that repeats the tape leads from that step on; pods whose binds were
under way then are on their nodes.

What no event says is not on such a tape: back-offs, for how long pods wait and when they are reported, that
they were refused (so policies that draw nodes may draw for them anew), the samples behind the learned rates,
problems that a solver has. A new leader does not know these either.

Steps are kept by reference between two steps of the engine, so many at most, and encoded and compressed on
another thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from math import inf

from aiohttp import web
from msgspec.structs import replace

from eclectus.api.names import TAPE_PATH
from eclectus.engine.engine import Engine
from eclectus.engine.state import State
from eclectus.kube.objects import decode_list
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import ApiClient, decoded_pages
from eclectus.kubeclient.serving.access import AccessControl, PageRight
from eclectus.kubeclient.serving.health import bearer_token, failure
from eclectus.kubeclient.serving.pages import BusyError
from eclectus.kubeclient.side_loop import on
from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import MAX_BATCH, Inbox
from eclectus.live.learned_objects import in_slices
from eclectus.live.loop import StepObserver
from eclectus.live.watch.reflector import LIST_SECONDS, ObjectStore, WatchedKind
from eclectus.model.commands import Bind, Command
from eclectus.model.errors import EclectusError, MalformedError
from eclectus.model.events import (
    BindConfirmed,
    Event,
    NodeRecalled,
    NodeSeen,
    Reseeded,
    Resumed,
    TaskSeen,
    WaitLimitSeen,
)
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Task
from eclectus.tape import Header, Packer, Step

RIGHT = PageRight(TAPE_PATH, "post")
MINUTES_MOST = 60
BYTES_MOST = 1 << 29  # of a tape, compressed
WRITE_SECONDS = 30.0  # for a part; a reader that takes longer has gone
WAITING_MOST = 200_000  # events and commands that wait to be sent: of a client that reads too slowly

_log = logging.getLogger(__name__)

Listed = Callable[[], AsyncIterator[Sequence[Event]]]
"""Reads all that is watched, but the nodes: the events of each page."""


class EndedError(EclectusError):
    """The recording ends before its time."""


class _Steps:
    """The steps of the engine since the recording began, and what was bound when the mark came."""

    def __init__(self, engine: Engine, mark: Reseeded) -> None:
        self._engine, self._mark = engine, mark
        self._steps: list[Step] = []
        self._waiting = 0
        self._is_full = False
        self._arrived = asyncio.Event()
        self._confirmed = set[str]()
        self._has_begun = False
        self.bound: list[Event] = []  # in the step with the mark, before it decided

    def observe(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """A step was made."""
        self._waiting += 1 + len(events) + len(commands)
        if self._waiting > WAITING_MOST:
            self._is_full = True
        else:
            self._steps.append(self._recorded(now, tuple(events), tuple(commands)))
        self._arrived.set()

    async def take(self, seconds: float) -> list[Step]:
        """The steps that wait; empty if there are none within this time. Raises EndedError."""
        if not self._steps:
            self._arrived.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        if self._is_full:
            raise EndedError(f"more than {WAITING_MOST:,} events and commands wait to be sent")
        taken, self._steps, self._waiting = self._steps, [], 0
        return taken

    def _recorded(self, now: float, events: tuple[Event, ...], commands: tuple[Command, ...]) -> Step:
        if self._has_begun:
            return Step(now, events, commands)
        # An engine that repeats the tape does not lead before the mark, so it decides nothing.
        self._confirmed |= {each.uid for each in events if isinstance(each, BindConfirmed)}
        if self._mark not in events:
            return Step(now, events, ())
        self._has_begun = True
        decided = {each.uid for each in commands if isinstance(each, Bind)}
        self.bound = [
            TaskSeen(task)
            for task in self._engine.read(_under_way, self._confirmed)
            if task.uid not in decided
        ]
        return Step(now, (Resumed(), *events), commands)


def _under_way(state: State, confirmed: Iterable[str]) -> list[Task]:
    """The pods that are being bound, and these, as bound."""
    placed = state.placed
    uids = dict.fromkeys((*placed.assumed, *confirmed))
    tasks = ((placed.task(uid), placed.node_of(uid)) for uid in uids)
    return [replace(task, node=node) for task, node in tasks if task is not None]


def _limits(state: State) -> list[Event]:
    return [WaitLimitSeen(*each) for each in state.waiting_times.limits.items()]


def _nodes(state: State) -> list[Event]:
    """The nodes in the order of their rows, by which policies resolve ties."""
    nodes = (state.cluster.node(name) for name in state.cluster.names)
    return [NodeSeen(node) for node in nodes if node is not None]


def _order(state: State) -> dict[str, int]:
    """uid -> place of each pending pod, in the order in which they came."""
    return {uid: at for at, uid in enumerate(state.pending)}


@dataclass(eq=False)
class Recorder:
    """Makes one tape at a time. `observers` are those of the loop; `seed` draws one.

    `now` returns seconds since the epoch, `learned_nodes` what is learned of nodes.
    """

    engine: Engine
    inbox: Inbox
    observers: list[StepObserver]
    header: Header
    listed: Listed
    learned_nodes: Callable[[], Iterable[LearnedNode]]
    now: Callable[[], float]
    seed: Callable[[], int]
    clock: Callable[[], float] = elapsed  # seconds; for how long a recording goes on

    def __post_init__(self) -> None:
        self._is_recording = False
        self._until = 0.0  # when that one ends, if its snapshot is complete

    async def tape(self, seconds: float) -> AsyncGenerator[bytes]:
        """The parts of a compressed tape; it ends so many seconds after its snapshot.

        Raises BusyError; EndedError after its beginning, and ApiError and MalformedError within it.
        """
        if self._is_recording:
            raise BusyError("a recording goes on already", max(1.0, self._until - self.clock()))
        recorded, packer, size = _Steps(self.engine, mark := Reseeded(self.seed())), Packer(self.header), 0
        self.observers.append(recorded.observe)
        self._is_recording, self._until = True, self.clock() + seconds
        try:
            async for steps in self._steps(recorded, mark, seconds):
                part = await asyncio.to_thread(packer.pack, steps)
                size += len(part)
                yield part
                if size > BYTES_MOST:
                    raise EndedError(f"it has {size:,} bytes")
            yield packer.end()
        finally:
            self.observers.remove(recorded.observe)
            self._is_recording = False

    async def _steps(self, recorded: _Steps, mark: Reseeded, seconds: float) -> AsyncIterator[Sequence[Step]]:
        # 1. What is known, as events; an engine that repeats them decides nothing yet.
        async for events in self._snapshot(self.now()):
            yield events
        # 2. What has come meanwhile, up to the step in which the random numbers begin anew.
        self._until = self.clock() + seconds
        self.inbox.put(mark)
        begins: int | None = None
        while begins is None:
            steps = await recorded.take(inf)
            begins = next((at for at, step in enumerate(steps) if mark in step.events), None)
            if begins is not None:
                steps.insert(begins, Step(steps[begins].now, tuple(recorded.bound), ()))
            yield steps
        # 3. All steps from then on; at the end also those made while others were packed.
        is_over = False
        while not is_over:
            is_over = (left := self._until - self.clock()) <= 0
            if steps := await recorded.take(max(left, 0.0)):
                yield steps

    async def _snapshot(self, now: float) -> AsyncIterator[list[Step]]:
        def steps(events: Iterable[Event]) -> list[Step]:
            found = tuple(events)
            return [Step(now, found[at : at + MAX_BATCH], ()) for at in range(0, len(found), MAX_BATCH)]

        yield steps([*self.engine.read(_limits), *self.engine.read(_nodes)])
        known = [replace(each, at=min(each.at, now)) async for each in in_slices(self.learned_nodes())]
        yield steps(map(NodeRecalled, known))
        waiting = list[TaskSeen]()
        async for page in self.listed():
            others = list[Event]()
            for each in page:
                if isinstance(each, TaskSeen) and not each.task.node:
                    waiting.append(each)
                else:
                    others.append(each)
            yield steps(others)
        # The queue has pods in the order in which they came.
        order = self.engine.read(_order)
        waiting.sort(key=lambda each: order.get(each.task.uid, len(order)))
        yield steps(waiting)


async def listed_anew(
    client: ApiClient, kinds: Collection[WatchedKind], now: Callable[[], float]
) -> AsyncIterator[Sequence[Event]]:
    """The objects of these kinds, page by page, as events. Raises ApiError and MalformedError.

    What cannot be read is left out: the reflectors have said so.
    """
    for kind in kinds:
        store = ObjectStore(kind, lambda _: None)
        for path in (kind.path, *kind.older_paths):
            try:
                async for page in decoded_pages(client, path, kind.list_query, decode_list, LIST_SECONDS):
                    yield store.page(page, now())
            except MissingError:  # this cluster does not serve that version, or does not define the kind
                continue
            break


# -- the page -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class RecordingPage:
    """Answers POST requests with a tape. `why_not` says why this replica does not decide.

    `main` is the loop of the engine.
    """

    recorder: Recorder
    access: AccessControl | None
    why_not: Callable[[], str]
    main: asyncio.AbstractEventLoop

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The tape, as long as the client reads it; or why there is none."""
        if self.access is None:
            return failure(HTTPStatus.FORBIDDEN, "nobody may record while authentication is `none`")
        decided = await on(self.main, self.access.decision(bearer_token(request), RIGHT))
        if decided.status != HTTPStatus.OK:
            return failure(decided.status, decided.message)
        minutes = request.query.get("minutes", "")
        if minutes not in map(str, range(1, MINUTES_MOST + 1)):
            problem = f"minutes must be a whole number from 1 to {MINUTES_MOST}, not {minutes[:20]!r}"
            return failure(HTTPStatus.BAD_REQUEST, problem)
        if why_not := self.why_not():
            return failure(HTTPStatus.SERVICE_UNAVAILABLE, why_not)
        return await self._recorded(request, 60.0 * int(minutes))

    async def _recorded(self, request: web.Request, seconds: float) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/gzip"})
        async with aclosing(_Elsewhere(self.recorder.tape(seconds), self.main)) as parts:
            try:
                part = await parts.next()
                _log.warning("a tape is recorded for %.0f min, for %s", seconds / 60, request.remote)
                await response.prepare(request)
                while part:
                    async with asyncio.timeout(WRITE_SECONDS):
                        await response.write(part)
                    part = await parts.next()
            except BusyError as error:
                return failure(HTTPStatus.TOO_MANY_REQUESTS, str(error), error.seconds)
            except (ConnectionError, TimeoutError) as error:
                _log.warning("the recording has ended: its reader has gone: %r", error)
            except (ApiError, MalformedError, EndedError) as error:
                _log.warning("the recording has ended early: %s", error)
                if request.transport is not None:
                    request.transport.abort()  # so that the client sees no proper end
        return response


class _Elsewhere:
    """A generator of another loop."""

    def __init__(self, parts: AsyncGenerator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._parts, self._loop = parts, loop

    async def next(self) -> bytes:
        """The next part; empty at the end."""

        async def advanced() -> bytes:
            return await anext(self._parts, b"")

        return await on(self._loop, advanced())

    async def aclose(self) -> None:
        """End it where it is."""
        await on(self._loop, self._parts.aclose())
