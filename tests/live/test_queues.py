"""Inbox, crew and loop: nothing waits for itself, nothing grows without bound."""

import asyncio

import pytest
from prometheus_client import Histogram

from eclectus.live import inbox as inbox_module
from eclectus.live.inbox import Inbox
from eclectus.live.loop import Loop
from eclectus.live.write.workers import Crew
from eclectus.model.commands import Bind
from eclectus.model.events import NodeGone, Resumed


def gone(count):
    return [NodeGone(str(i)) for i in range(count)]


def test_events_come_out_in_the_order_they_came_in_and_never_too_many_at_once(monkeypatch):
    monkeypatch.setattr(inbox_module, "MOST_AT_ONCE", 3)

    async def work():
        inbox = Inbox()
        await inbox.offer(gone(4))
        inbox.put(Resumed())
        return [await inbox.gather(1), await inbox.gather(1), await inbox.gather(0.01)]

    assert asyncio.run(work()) == [gone(3), [NodeGone("3"), Resumed()], []]


def test_a_watch_waits_while_the_inbox_is_full_and_an_answer_never_does():
    async def work():
        inbox = Inbox(most=2)
        blocked = asyncio.create_task(inbox.offer(gone(2)))
        await asyncio.sleep(0)
        inbox.put(Resumed())
        held_up = not blocked.done()
        first = await inbox.gather(1)
        await blocked
        return held_up, len(first)

    assert asyncio.run(work()) == (True, 3)


def test_a_watch_that_is_cancelled_while_it_waits_has_told_its_news():
    async def work():
        inbox = Inbox(most=1)
        blocked = asyncio.create_task(inbox.offer(gone(2)))
        await asyncio.sleep(0)
        blocked.cancel()
        return await inbox.gather(1)

    assert asyncio.run(work()) == gone(2)


def test_a_crew_serves_everything_with_no_more_at_once_than_it_has_workers():
    async def work():
        at_once, most, served = 0, 0, []

        async def serve(item):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            served.append(item)

        crew = Crew("test", 3, serve)
        for item in range(50):
            crew.put(item)
        running = asyncio.create_task(crew.run())
        await crew.fewer_than(1)
        for item in range(50, 60):  # idle workers take up again
            crew.put(item)
        await crew.fewer_than(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return most, sorted(served)

    assert asyncio.run(work()) == (3, list(range(60)))


def test_a_crew_whose_work_is_defect_says_so():
    async def work():
        async def serve(_):
            raise ZeroDivisionError

        crew = Crew("test", 2, serve)
        crew.put(1)
        await crew.run()

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(work())
    assert caught.group_contains(ZeroDivisionError)


class Engine:
    """Answers each step with one bind; wakes when told."""

    def __init__(self):
        self.steps, self.wake = [], None

    def step(self, events, now):
        self.steps.append((list(events), now))
        self.wake = None
        return [Bind("u", "d", "p", "n", "e")]

    def next_step_at(self):
        return self.wake


class Outbox:
    def __init__(self):
        self.accepted, self.free = [], asyncio.Event()
        self.free.set()

    def accept(self, commands):
        self.accepted += commands

    async def room(self):
        await self.free.wait()


def looping(engine, outbox, inbox, seen):
    histogram = Histogram("t", "t", registry=None)
    now = asyncio.get_running_loop().time
    return Loop(
        engine, inbox, outbox, now, step_seconds=histogram, witnesses=[lambda *step: seen.append(step)]
    )


def test_the_loop_steps_on_events_and_hands_decisions_to_outbox_and_witnesses(until):
    async def work():
        engine, outbox, inbox, seen = Engine(), Outbox(), Inbox(), []
        loop = looping(engine, outbox, inbox, seen)
        running = asyncio.create_task(loop.run())
        await inbox.offer(gone(2))
        await until(lambda: engine.steps)
        loop.stop()
        await running
        return engine.steps, outbox.accepted, seen

    steps, accepted, seen = asyncio.run(work())
    assert [events for events, _ in steps] == [gone(2)]
    assert [(now, list(events)) for now, events, _ in seen] == [(now, events) for events, now in steps]
    assert len(accepted) == 1


def test_the_loop_wakes_when_the_engine_asked_for_it_and_not_otherwise(until):
    async def work():
        engine, inbox = Engine(), Inbox()
        engine.wake = asyncio.get_running_loop().time() + 0.05
        due = engine.wake
        running = asyncio.create_task(looping(engine, Outbox(), inbox, []).run())
        await until(lambda: engine.steps)
        running.cancel()
        return due, engine.steps

    due, steps = asyncio.run(work())
    assert [events for events, _ in steps] == [[]]
    assert steps[0][1] >= due


def test_the_loop_decides_nothing_new_while_the_outbox_is_full(until):
    async def work():
        engine, outbox, inbox = Engine(), Outbox(), Inbox()
        outbox.free.clear()
        loop = looping(engine, outbox, inbox, [])
        running = asyncio.create_task(loop.run())
        await inbox.offer(gone(1))
        await until(lambda: engine.steps)
        await inbox.offer(gone(1))
        for _ in range(10):
            await asyncio.sleep(0)
        full = len(engine.steps)
        outbox.free.set()
        await until(lambda: len(engine.steps) == 2)
        running.cancel()
        return full, loop.trouble()

    assert asyncio.run(work()) == (1, "")
