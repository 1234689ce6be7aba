"""Inbox, worker pool and loop: no deadlock, and no queue grows without bound."""

import asyncio
from itertools import pairwise

import pytest

from builders import make_task
from eclectus.live import inbox as inbox_module
from eclectus.live import loop as loops
from eclectus.live.inbox import Inbox
from eclectus.live.loop import Loop
from eclectus.live.write.write_queues import Pool, Slots
from eclectus.model.commands import Bind
from eclectus.model.events import NodeGone, Resumed, TaskSeen
from eclectus.model.objects import PodAffinityTerm, UsedClaim


def gone(count):
    return [NodeGone(str(i)) for i in range(count)]


def test_events_are_taken_in_order_and_in_batches_of_bounded_size(monkeypatch):
    monkeypatch.setattr(inbox_module, "MAX_BATCH", 3)

    async def work():
        inbox = Inbox()
        await inbox.put_all(gone(4))
        inbox.put(Resumed())
        return [await inbox.take(1), await inbox.take(1), await inbox.take(0.01)]

    assert asyncio.run(work()) == [gone(3), [NodeGone("3"), Resumed()], []]


def test_pods_of_many_terms_and_claims_fill_a_step_sooner(monkeypatch):
    monkeypatch.setattr(inbox_module, "MAX_BATCH", 5 * inbox_module.TERM_WEIGHT)
    term = PodAffinityTerm("zone")
    plain = TaskSeen(make_task("plain"))
    costly = TaskSeen(make_task("terms", anti_affinity_terms=3 * (term,), affinity_terms=(term,)))
    claims = TaskSeen(make_task("claims", claims=50 * (UsedClaim("data"),)))

    async def work():
        inbox = Inbox()
        await inbox.put_all([plain, costly, costly, plain, claims, plain])
        return [await inbox.take(1) for _ in range(3)]

    assert asyncio.run(work()) == [[plain, costly, costly], [plain, claims], [plain]]


def test_a_watch_waits_while_the_inbox_is_full_but_an_answer_does_not():
    async def work():
        inbox = Inbox()
        blocked = asyncio.create_task(inbox.put_all(gone(inbox_module.CAPACITY)))
        await asyncio.sleep(0)
        inbox.put(Resumed())
        is_blocked = not blocked.done()
        first = await inbox.take(1)
        await blocked
        return is_blocked, len(first)

    assert asyncio.run(work()) == (True, inbox_module.MAX_BATCH)


def test_a_watch_that_is_cancelled_while_it_waits_has_delivered_its_events():
    async def work():
        inbox = Inbox(capacity=1)
        blocked = asyncio.create_task(inbox.put_all(gone(2)))
        await asyncio.sleep(0)
        blocked.cancel()
        return await inbox.take(1)

    assert asyncio.run(work()) == gone(2)


def test_a_pool_handles_every_item_and_at_most_one_per_worker_at_a_time():
    async def work():
        at_once, most, handled = 0, 0, []

        async def handle(item):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            handled.append(item)

        pool = Pool("test", 3, handle)
        for item in range(50):
            pool.put(item)
        running = asyncio.create_task(pool.run())
        await pool.wait_below(1)
        for item in range(50, 60):  # idle workers start again
            pool.put(item)
        await pool.wait_below(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return most, sorted(handled)

    assert asyncio.run(work()) == (3, list(range(60)))


def test_slots_follow_their_limit_and_the_lowest_rank_is_first(until):
    async def work():
        begun, limit, free = [], [2], {}

        async def use(name, rank):
            async with slots.one(rank):
                begun.append(name)
                await free.setdefault(name, asyncio.Event()).wait()

        slots = Slots(lambda: limit[0])
        tasks = {
            name: asyncio.create_task(use(name, int(name[0]))) for name in ("1a", "1b", "1c", "1d", "0a")
        }
        await until(lambda: len(begun) == 2)
        tasks["1c"].cancel()  # while it waits
        await asyncio.gather(tasks["1c"], return_exceptions=True)
        limit[0] = 1
        free["1a"].set()
        await tasks["1a"]
        lowered = list(begun)
        limit[0] = 3
        slots.admit()
        await until(lambda: len(begun) == 4)
        tasks["1b"].cancel()  # while it holds one
        for name in ("0a", "1d"):
            free[name].set()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        return lowered, begun, slots._taken

    assert asyncio.run(work()) == (["1a", "1b"], ["1a", "1b", "0a", "1d"], 0)


def test_an_exception_of_the_handler_ends_the_pool():
    async def work():
        async def handle(_):
            raise ZeroDivisionError

        pool = Pool("test", 2, handle)
        pool.put(1)
        await pool.run()

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(work())
    assert caught.group_contains(ZeroDivisionError)


def test_the_items_of_one_key_keep_no_others_waiting(until):
    async def work():
        begun, free = [], asyncio.Event()

        async def handle(item):
            begun.append(item)
            if item[0] == "a":
                await free.wait()

        pool = Pool("test", 2, handle, lambda item: item[0])
        for item in ("a0", "a1", "a2"):  # before it runs
            pool.put(item)
        running = asyncio.create_task(pool.run())
        await until(lambda: len(begun) == 2)
        for item in ("a3", "b0", "c0", "b1", "b2"):
            pool.put(item)
        await until(lambda: len(pool) == 4)
        counts = [sorted(begun)]
        free.set()
        await pool.wait_below(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        pool.put("late")
        return counts, begun[-2:], len(pool), pool._busy

    others = ["b0", "b1", "b2", "c0"]
    assert asyncio.run(work()) == ([["a0", "a1", *others]], ["a2", "a3"], 1, {})


class Engine:
    """Answers each step with one bind; the next step is due at `due_at`."""

    def __init__(self):
        self.steps, self.due_at, self.waits = [], None, False

    def step(self, events, now):
        self.steps.append((list(events), now))
        self.due_at = None
        return [Bind("u", "d", "p", "n", "e")]

    def next_step_at(self):
        return self.due_at


class Outbox:
    def __init__(self):
        self.accepted, self.free = [], asyncio.Event()
        self.free.set()

    def accept(self, commands):
        self.accepted += commands

    async def wait_for_room(self):
        await self.free.wait()


def looping(engine, outbox, inbox, seen):
    now, seconds = asyncio.get_running_loop().time, []
    observers = [lambda *step: seen.append(step)]
    return Loop(engine, inbox, outbox, now, observe_seconds=seconds.append, observers=observers)


def test_the_loop_steps_on_events_and_passes_commands_to_outbox_and_observers(until):
    async def work():
        engine, outbox, inbox, seen = Engine(), Outbox(), Inbox(), []
        loop = looping(engine, outbox, inbox, seen)
        running = asyncio.create_task(loop.run())
        await inbox.put_all(gone(2))
        await until(lambda: engine.steps)
        loop.stop()
        await running
        return engine.steps, outbox.accepted, seen

    steps, accepted, seen = asyncio.run(work())
    assert [events for events, _ in steps] == [gone(2)]
    assert [(now, list(events)) for now, events, _ in seen] == [(now, events) for events, now in steps]
    assert len(accepted) == 1


def test_the_loop_steps_when_the_engine_is_due_and_not_before(until):
    async def work():
        engine, inbox = Engine(), Inbox()
        engine.due_at = asyncio.get_running_loop().time() + 0.05
        due = engine.due_at
        running = asyncio.create_task(looping(engine, Outbox(), inbox, []).run())
        await until(lambda: engine.steps)
        running.cancel()
        return due, engine.steps

    due, steps = asyncio.run(work())
    assert [events for events, _ in steps] == [[]]
    assert steps[0][1] >= due


def test_waits_that_end_one_by_one_end_together(until):
    class OneByOne(Engine):
        def step(self, events, now):
            super().step(events, now)
            self.due_at = now + 0.001
            return []

    async def work():
        engine = OneByOne()
        engine.due_at = asyncio.get_running_loop().time()
        running = asyncio.create_task(looping(engine, Outbox(), Inbox(), []).run())
        await until(lambda: len(engine.steps) == 4)
        running.cancel()
        return [now for _, now in engine.steps]

    times = asyncio.run(work())
    assert all(later - earlier >= loops.APART_SECONDS for earlier, later in pairwise(times))


@pytest.mark.parametrize(
    ("took", "why", "rest"),
    [
        (0.01, "pods wait", 0.02),
        (0.04, "pods wait", 0.08),
        (0.06, "pods wait", 0.1),
        (9.0, "pods wait", 0.1),
        (0.01, "", 0.0),
        (0.06, "", 0.02),
        (0.01, "pods wait, and the cycle goes on", 0.0),
        (0.06, "pods wait, and the cycle goes on", 0.02),
    ],
)
def test_the_loop_rests_in_proportion_to_its_step_while_pods_wait(until, monkeypatch, took, why, rest):
    clock = [0.0]
    monkeypatch.setattr(loops, "elapsed", lambda: clock[0])

    class Slow(Engine):
        def step(self, events, now):
            super().step(events, now)
            clock[0] += took
            self.due_at = now if "goes on" in why else None
            return []

    async def work():
        engine, inbox, rests = Slow(), Inbox(), []

        async def record(seconds):
            rests.append(seconds)
            await asyncio.sleep(0)

        engine.waits = "pods wait" in why
        loop = looping(engine, Outbox(), inbox, [])
        loop.rest = record
        running = asyncio.create_task(loop.run())
        await inbox.put_all(gone(1))
        await until(lambda: rests)
        running.cancel()
        return rests[0]

    assert asyncio.run(work()) == pytest.approx(rest)


def test_the_loop_does_not_step_while_the_outbox_is_full(until):
    async def work():
        engine, outbox, inbox = Engine(), Outbox(), Inbox()
        outbox.free.clear()
        loop = looping(engine, outbox, inbox, [])
        running = asyncio.create_task(loop.run())
        await inbox.put_all(gone(1))
        await until(lambda: engine.steps)
        await inbox.put_all(gone(1))
        for _ in range(10):
            await asyncio.sleep(0)
        full = len(engine.steps)
        outbox.free.set()
        await until(lambda: len(engine.steps) == 2)
        running.cancel()
        return full, loop.trouble()

    assert asyncio.run(work()) == (1, "")
