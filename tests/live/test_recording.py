"""A tape on demand: it begins mid-run, with a snapshot, and a new engine repeats what was decided."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.api.names import TAPE_PATH
from eclectus.cli.explain.transport import Server
from eclectus.cli.main import program
from eclectus.cli.record import received
from eclectus.config.configuration import parse
from eclectus.explain.node import learned_nodes
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import AccessControl
from eclectus.live import recording
from eclectus.live.inbox import Inbox
from eclectus.live.loop import Loop
from eclectus.live.recording import Recorder, RecordingPage
from eclectus.model.commands import Bind, Command
from eclectus.model.events import (
    BindConfirmed,
    Event,
    NodeGone,
    NodeRecalled,
    NodeSeen,
    Reseeded,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Task
from eclectus.tape import Header, read
from reviewing_api import ReviewingApi

CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
seed: 7
profiles: [{schedulerName: eclectus, place: {policy: POLICY}}]
"""
WAVE = 12


class WatchedInbox(Inbox):
    """Says when the loop has nothing to do but to wait for an event, or for a time."""

    is_waited_for = is_marked = False

    def put(self, event: Event) -> None:
        self.is_marked |= isinstance(event, Reseeded)
        super().put(event)

    async def take(self, timeout_seconds: float) -> list[Event]:
        self.is_waited_for = not len(self)
        try:
            return await super().take(timeout_seconds)
        finally:
            self.is_waited_for = False


class World:
    """A live loop whose API server binds at once what is not in `unanswered`; time passes with each step."""

    def __init__(self, policy: str = "rosella") -> None:
        self.text = CONFIGURATION.replace("POLICY", policy)
        self.engine = parse(self.text).engine()
        self.inbox = WatchedInbox()
        self.pods: dict[str, Task] = {}
        self.answers = True
        self.unanswered: list[Bind] = []
        self.at, self.seconds = 1000.0, 0.0
        outbox: Any = self
        self.loop = Loop(self.engine, self.inbox, outbox, self.now, lambda seconds: None, rest=self._rest)
        self.recorder = Recorder(
            self.engine,
            self.inbox,
            self.loop.observers,
            Header("0", self.text, 7, mid_run=True),
            self.listed,
            lambda: self.engine.read(learned_nodes),
            self.now,
            lambda: 99,
            clock=lambda: self.seconds,
        )
        names = ["n3", "n1", "n9", "n2"]  # not in the order of a list
        for event in (*(NodeSeen(make_node(name, cpu=4)) for name in names), Resumed()):
            self.inbox.put(event)

    def now(self) -> float:
        return self.at

    @staticmethod
    async def _rest(_: float) -> None:
        await asyncio.sleep(0)

    # -- the outbox

    def accept(self, commands: Sequence[Command]) -> None:
        self.at += 0.01
        self.unanswered += [each for each in commands if isinstance(each, Bind)]
        if self.answers:
            self.answer()

    def answer(self) -> None:
        binds, self.unanswered = self.unanswered, []
        for each in binds:
            task = replace(self.pods[each.uid], node=each.node, phase="Running", started=self.at)
            self.inbox.put(BindConfirmed(each.uid, each.node))
            self.see(task)

    async def wait_for_room(self) -> None:
        pass

    # -- the API server

    def see(self, task: Task) -> None:
        self.pods[task.uid] = task
        self.inbox.put(TaskSeen(task))

    def create(self, wave: int) -> None:
        for at in range(WAVE):
            self.see(make_task(f"p{wave}-{at}", cpu=1.5, created=self.at, workload="default/w"))

    def finish(self) -> None:
        """All pods that run end, on n9 later than elsewhere."""
        for task in [each for each in self.pods.values() if each.node]:
            del self.pods[task.uid]
            seconds = 9.0 if task.node == "n9" else 3.0
            started = self.at - seconds
            self.inbox.put(TaskSeen(replace(task, phase="Succeeded", started=started, finished=self.at)))

    def delete(self) -> None:
        """All pods that run are deleted, which teaches nothing."""
        for task in [each for each in self.pods.values() if each.node]:
            del self.pods[task.uid]
            self.inbox.put(TaskGone(task.uid))

    async def listed(self) -> AsyncIterator[Sequence[Event]]:
        await asyncio.sleep(0)
        found = sorted(self.pods.values(), key=lambda task: task.name)
        yield [TaskSeen(task) for task in found[: len(found) // 2]]
        await asyncio.sleep(0)
        yield [TaskSeen(task) for task in found[len(found) // 2 :]]

    # -- the test

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 — of the world, which is not built to be awaited
                await asyncio.sleep(0)

    async def settled(self) -> None:
        """All events are taken in, and what follows from them."""
        await asyncio.sleep(0)
        await self.until(lambda: self.inbox.is_waited_for and not len(self.inbox))

    async def live(self, work: Callable[[], Any]) -> Any:
        running = asyncio.create_task(self.loop.run())
        try:
            return await work()
        finally:
            self.loop.stop()
            await running

    async def some_waves(self, waves: range, end: Callable[[], None] | None = None) -> None:
        """Waves of pods, of which those that run are ended so; by default they finish."""
        for wave in waves:
            self.create(wave)
            await self.settled()
            (end or self.finish)()
            await self.settled()


async def taped(world: World, path: Path, meanwhile: Callable[[], Any]) -> None:
    """Record what is decided while `meanwhile` goes on."""
    with path.open("wb") as file:

        async def copied() -> None:
            async for part in world.recorder.tape(60.0):
                file.write(part)

        copying = asyncio.create_task(copied())
        await world.until(lambda: world.inbox.is_marked)
        await meanwhile()
        world.seconds += 61.0
        world.inbox.put(NodeGone("none"))  # a step more, which ends it
        await copying


def replayed(path: Path) -> str:
    result = CliRunner().invoke(program, ["replay", str(path)])
    assert result.exit_code == 0, result.output
    return result.output


def binds(path: Path) -> list[Bind]:
    return [each for step in read(path)[1] for each in step.commands if isinstance(each, Bind)]


@pytest.mark.parametrize("policy", ["rosella", "least-allocated", "kube"])
def test_a_tape_that_begins_mid_run_is_decided_again_as_it_was(policy: str, tmp_path: Path) -> None:
    world, path = World(policy), tmp_path / "t.tape.gz"

    async def work() -> None:
        await world.some_waves(range(3), world.delete)
        world.create(3)  # these find no room before the recording begins
        await world.settled()
        await taped(world, path, lambda: world.some_waves(range(4, 6)))

    asyncio.run(world.live(work))
    header, steps = read(path)
    assert header.mid_run
    first = next(steps)
    assert [event.node.name for event in first.events if isinstance(event, NodeSeen)] == [
        "n3",
        "n1",
        "n9",
        "n2",
    ]
    assert len(binds(path)) >= 8
    assert f"{len(binds(path))} commands, all equal" in replayed(path)
    assert not world.loop.observers


def test_binds_under_way_when_it_begins_are_not_decided_again(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "t.tape.gz"

    async def meanwhile() -> None:
        await world.settled()
        world.answers = True
        world.answer()
        await world.settled()
        world.finish()
        await world.settled()

    async def work() -> None:
        await world.some_waves(range(2), world.delete)
        world.answers = False
        world.create(2)
        world.finish()
        await world.until(lambda: world.unanswered)
        await world.settled()
        await taped(world, path, meanwhile)

    asyncio.run(world.live(work))
    under_way = {each.uid for each in world.pods.values()}
    assert "all equal" in replayed(path)
    assert {each.uid for each in binds(path)} <= under_way | {f"uid-p2-{at}" for at in range(WAVE)}
    bound = [each.task for step in read(path)[1] for each in step.events if isinstance(each, TaskSeen)]
    assert sum(task.node != "" and task.started is None for task in bound) == 8, "2 on each of 4 nodes"


def test_what_comes_while_the_snapshot_is_read_is_on_the_tape(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "t.tape.gz"
    plain = world.listed

    async def listed() -> AsyncIterator[Sequence[Event]]:
        async for page in plain():
            yield page
            world.inbox.put(NodeSeen(make_node("late", cpu=8)))
            await world.until(lambda: not len(world.inbox))

    world.recorder.listed = listed

    async def work() -> None:
        await world.some_waves(range(1), world.delete)
        await taped(world, path, lambda: world.some_waves(range(1, 3)))

    asyncio.run(world.live(work))
    assert any(each.node == "late" for each in binds(path))
    assert "all equal" in replayed(path)


def test_what_is_learned_of_nodes_is_on_the_tape(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "t.tape.gz"

    async def work() -> None:
        await world.some_waves(range(3))
        await taped(world, path, world.settled)

    asyncio.run(world.live(work))
    events = [event for step in read(path)[1] for event in step.events]
    learned = {each.learned.node: each.learned for each in events if isinstance(each, NodeRecalled)}
    rates = {node: each.work[0].rate for node, each in learned.items()}
    assert rates.keys() == {"n1", "n2", "n3", "n9"}
    assert rates["n9"] < min(rate for node, rate in rates.items() if node != "n9")


def test_nothing_is_kept_of_steps_while_nobody_records() -> None:
    assert World().loop.observers == []


# -- the page ---------------------------------------------------------------------------------------

RIGHTS = {"admin": [f"post {TAPE_PATH}"], "reader": [TAPE_PATH, f"put {TAPE_PATH}", "pods", "list pods"]}


class Served:
    """The page of a world, on this loop."""

    def __init__(self, world: World, *, controlled: bool = True, standby: str = "") -> None:
        api: Any = ReviewingApi({f"{user}-token": user for user in RIGHTS}, RIGHTS)
        self.world, self.standby = world, standby
        self.access = AccessControl(api) if controlled else None

    async def serve(self, work: Callable[[str], Any]) -> Any:
        main = asyncio.get_running_loop()
        page = RecordingPage(self.world.recorder, self.access, lambda: self.standby, main)
        app = health.application({}, {}, bytes, posts={TAPE_PATH: page.answer})
        listening = listen("127.0.0.1", 0)
        async with health.serving(app, listening):
            return await work(f"http://{bound_address(listening)}")

    def refusal(self, minutes: str, token: str) -> tuple[int, str]:
        async def ask(url: str) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{url}{TAPE_PATH}?minutes={minutes}", headers=headers) as answer,
            ):
                return answer.status, json.loads(await answer.read())["message"]

        return asyncio.run(self.serve(ask))


@pytest.mark.parametrize(
    ("token", "status", "message"),
    [
        ("", 401, "Unauthorized"),
        ("made-up", 401, "Unauthorized"),
        ("reader-token", 403, f'User "reader" cannot post path "{TAPE_PATH}"'),
    ],
)
def test_who_may_read_all_pods_may_not_record_them(token: str, status: int, message: str) -> None:
    found = Served(World()).refusal("1", token)
    assert found[0] == status
    assert message in found[1]


@pytest.mark.parametrize("minutes", ["", "0", "61", "-1", "1.5", "x" * 99])
def test_the_minutes_are_bounded(minutes: str) -> None:
    status, message = Served(World()).refusal(minutes, "admin-token")
    assert (status, message.startswith("minutes must be a whole number from 1 to 60, not")) == (400, True)


def test_a_standby_and_a_server_without_authentication_record_nothing() -> None:
    assert Served(World(), standby="a leads").refusal("1", "admin-token") == (503, "a leads")
    status, message = Served(World(), controlled=False).refusal("1", "admin-token")
    assert (status, message) == (403, "nobody may record while authentication is `none`")


def recorded(world: World, path: Path, meanwhile: Callable[[str], Any]) -> int:
    """Record as the command does, while `meanwhile(url)` goes on; the size."""

    async def work() -> int:
        async def with_server(url: str) -> int:
            copying = asyncio.create_task(received(Server(url, "admin-token", True), 1, path))
            await world.until(lambda: world.loop.observers or copying.done())
            await meanwhile(url)
            return await copying

        return await Served(world).serve(with_server)

    return asyncio.run(world.live(work))


def test_the_command_writes_the_tape_and_one_is_recorded_at_a_time(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "t.tape.gz"
    answers = []

    async def meanwhile(url: str) -> None:
        await world.until(lambda: world.inbox.is_marked)
        headers = {"Authorization": "Bearer admin-token"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}{TAPE_PATH}?minutes=1", headers=headers) as answer,
        ):
            answers.append((answer.status, json.loads(await answer.read())["message"]))
        await world.some_waves(range(2))
        world.seconds += 61.0
        world.inbox.put(NodeGone("none"))

    size = recorded(world, path, meanwhile)
    assert answers == [(429, "a recording goes on already")]
    assert size == path.stat().st_size
    assert "all equal" in replayed(path)
    assert world.loop.observers == []


@pytest.mark.parametrize("limit", ["BYTES_MOST", "WAITING_MOST"])
def test_a_recording_that_is_too_large_ends_early_and_can_be_read(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, path = World(), tmp_path / "t.tape.gz"
    monkeypatch.setattr(recording, limit, {"BYTES_MOST": 2000, "WAITING_MOST": 20}[limit])

    async def meanwhile(_: str) -> None:
        await world.until(lambda: not world.loop.observers or world.create(0))

    with pytest.raises(Exception, match="the scheduler has ended the recording early"):
        recorded(world, path, meanwhile)
    assert "the recording has ended early: " in caplog.text
    assert list(read(path)[1])
    assert world.loop.observers == []


def test_a_reader_that_goes_ends_the_recording(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "t.tape.gz"

    async def work() -> None:
        async def with_server(url: str) -> None:
            copying = asyncio.create_task(received(Server(url, "admin-token", True), 1, path))
            await world.until(lambda: path.exists() and path.stat().st_size)
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            await world.until(lambda: not world.loop.observers or world.create(0))

        await Served(world).serve(with_server)

    asyncio.run(world.live(work))
    assert world.loop.observers == []


def test_a_tape_is_named_as_what_it_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["record", "--output", str(tmp_path / "t.tape")])
    assert result.exit_code == 2
    assert "t.tape must end in .gz: tapes are compressed" in result.output
