"""NodeProfiles against a faulty API server: no fault may stop the scheduler or cause a flood of requests."""

import asyncio
from contextlib import asynccontextmanager
from functools import wraps

import pytest
from msgspec.structs import replace

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_profile import status_of
from eclectus.config.process_settings import NodeProfilesSettings as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.learned_objects import NODES_PER_SLICE, NodeProfiles, in_slices
from eclectus.live.metrics_page import registry_of
from eclectus.model.events import NodeRecalled
from eclectus.model.learned import LearnedNode, LearnedWork

LIST = f"GET {NODE_PROFILES_PATH}"
KNOWN = LearnedNode("n1", 5, 1000.0, "live", 1.0, 0.9, (LearnedWork("web", 0.5, 5, 0.9),))
GONE, LATER = ({"message": "not found"}, 404), ({"message": "a later epoch is there already"}, 422)


def in_own_loop(coroutine):
    """Run a coroutine test in an event loop of its own."""

    @wraps(coroutine)
    def run(**fixtures):
        asyncio.run(coroutine(**fixtures))

    return run


def known(name="n1", rate=0.5, at=1000.0):
    return LearnedNode(name, 5, at, "live", 1.0, 0.9, (LearnedWork("web", rate, 5, 0.9),))


def page(*nodes, more=""):
    items = [{"metadata": {"name": each.node}, "status": status_of(each)} for each in nodes]
    return {"metadata": {"continue": more}, "items": items}


def patch(name):
    return f"PATCH {NODE_PROFILES_PATH}/{name}/status"


@asynccontextmanager
async def profiles(server, learned, holds_lease=lambda: True, **settings):
    inbox = Inbox()
    async with server.context() as context:
        yield (
            NodeProfiles(context, inbox, lambda: learned, holds_lease, Settings(interval=0.01, **settings)),
            inbox,
            context,
        )


@asynccontextmanager
async def writing(node_profiles):
    task = asyncio.create_task(node_profiles.run())
    try:
        yield task
    finally:
        task.cancel()


def writes(context, result="written"):
    name = "eclectus_node_profile_writes_total"
    return registry_of(context.metrics).get_sample_value(name, {"result": result}) or 0


@in_own_loop
async def test_what_was_learned_is_recalled_page_by_page(server, answers):
    server.on(LIST, answers.says(page(known("n1"), more="next")), answers.says(page(known("n2"))))
    async with profiles(server, []) as (node_profiles, inbox, _):
        await node_profiles.recall()
        events = await inbox.take(0)
    assert [event.learned.node for event in events if isinstance(event, NodeRecalled)] == ["n1", "n2"]


@in_own_loop
async def test_a_malformed_object_does_not_affect_the_others(server, answers):
    body = page(known("n1"), known("n2"))
    body["items"][0]["status"]["state"] = "Tired"
    server.on(LIST, answers.says(body))
    async with profiles(server, []) as (node_profiles, inbox, _):
        await node_profiles.recall()
        events = await inbox.take(0)
    assert [event.learned.node for event in events] == ["n2"]


@pytest.mark.parametrize("status", [403, 404, 500])
@in_own_loop
async def test_a_failed_list_does_not_stop_the_scheduler(server, answers, status):
    server.on(LIST, answers.says({"message": "no"}, status))
    async with profiles(server, []) as (node_profiles, inbox, _):
        await node_profiles.recall()
        assert await inbox.take(0) == []


@in_own_loop
async def test_an_unchanged_profile_is_not_written(server, answers, until):
    server.on(LIST, answers.says(page(known("n1"))))
    server.on(patch("n2"), answers.says({}))
    async with profiles(server, [known("n1"), known("n2")]) as (node_profiles, _, context):
        await node_profiles.recall()
        async with writing(node_profiles):
            await until(lambda: writes(context) == 1)
            await asyncio.sleep(0.1)
    assert (server.count(patch("n1")), server.count(patch("n2"))) == (0, 1)


@in_own_loop
async def test_a_missing_object_is_created_and_owned_by_its_node(server, answers, until):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says(*GONE), answers.says({}))
    server.on("GET /api/v1/nodes/n1", answers.says({"metadata": {"uid": "u1"}}))
    server.on(f"POST {NODE_PROFILES_PATH}", answers.says({}, 201))
    async with profiles(server, [KNOWN]) as (node_profiles, _, context), writing(node_profiles):
        await until(lambda: writes(context) == 1)
    (created,) = [body for what, _, body in server.requests if what == f"POST {NODE_PROFILES_PATH}"]
    assert created["metadata"]["ownerReferences"][0]["uid"] == "u1"


@in_own_loop
async def test_an_object_that_another_process_creates_at_the_same_time_is_written_nevertheless(
    server, answers, until
):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says(*GONE), answers.says({}))
    server.on("GET /api/v1/nodes/n1", answers.says({"metadata": {"uid": "u1"}}))
    server.on(f"POST {NODE_PROFILES_PATH}", answers.says({"message": "already exists"}, 409))
    async with profiles(server, [KNOWN]) as (node_profiles, _, context), writing(node_profiles):
        await until(lambda: writes(context) == 1)
    assert writes(context, "failed") == 0


@in_own_loop
async def test_without_the_lease_nothing_is_written(server):
    async with (
        profiles(server, [KNOWN], holds_lease=lambda: False) as (node_profiles, _, _),
        writing(node_profiles),
    ):
        await asyncio.sleep(0.1)
    assert server.requests == []


@in_own_loop
async def test_a_round_writes_a_bounded_number_of_objects_and_the_oldest_first(server, answers, until):
    now = [known(f"n{at}", rate=9.0) for at in range(5)]
    old = [known(f"n{at}", at=1000.0 - at) for at in range(5)]
    lists = [old, old, [*old[:3], *now[3:]], [*old[:1], *now[1:]]]
    server.on(LIST, *(answers.says(page(*each)) for each in lists))
    for at in range(5):
        server.on(patch(f"n{at}"), answers.says({}))
    async with profiles(server, now, writes_a_round=2) as (node_profiles, _, context):
        await node_profiles.recall()
        async with writing(node_profiles):
            await until(lambda: writes(context) == 5)
    order = [what for what, _, _ in server.requests if what.startswith("PATCH")]
    assert order == [patch(name) for name in ("n4", "n3", "n2", "n1", "n0")]


@in_own_loop
async def test_a_later_epoch_written_between_our_read_and_our_write_is_kept(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(replace(KNOWN, epoch=6))))
    server.on(patch("n1"), answers.says(*LATER))
    async with profiles(server, [KNOWN]) as (node_profiles, inbox, context), writing(node_profiles):
        await until(lambda: writes(context, "refused") == 1)
        await until(lambda: server.count(LIST) >= 2)
        events = await inbox.take(1.0)
    assert [event.learned.epoch for event in events] == [6]
    assert server.count(patch("n1")) == 1


@in_own_loop
async def test_what_another_scheduler_has_written_is_not_written_again(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(known("n1"), known("n2"))))
    server.on(patch("n2"), answers.says({}))
    now = [known("n2")]
    async with profiles(server, now) as (node_profiles, _, context), writing(node_profiles):
        await until(lambda: writes(context) == 1)
        now += [known("n1", rate=0.51)]  # both observe the same pods, so the rates are nearly equal
        await until(lambda: server.count(LIST) >= 2)
        await asyncio.sleep(0.1)
    assert (server.count(patch("n1")), server.count(patch("n2"))) == (0, 1)


@in_own_loop
async def test_an_object_that_another_scheduler_has_just_written_is_left_alone_for_a_round(
    server, answers, until
):
    """Two schedulers that disagree, as with different settings, do not write more often than one."""
    theirs = replace(known("n1", rate=1.0), at=1001.0)
    server.on(LIST, answers.says(page(known("n1"))), answers.says(page(theirs)))
    server.on(patch("n1"), answers.says({}))
    async with profiles(server, [known("n1", rate=9.0)]) as (node_profiles, _, _):
        await node_profiles.recall()
        async with writing(node_profiles):
            await until(lambda: server.count(patch("n1")))
    asked = [what for what, _, _ in server.requests]
    assert (
        asked[: asked.index(patch("n1"))] == [LIST] * 3
    )  # recall; the round that finds theirs; the round that writes


@in_own_loop
async def test_an_earlier_epoch_than_the_stored_one_is_not_written(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(replace(known("n1", rate=9.0), epoch=6))))
    now = []
    async with profiles(server, now) as (node_profiles, inbox, _):
        await node_profiles.recall()
        now += [known("n1")]
        async with writing(node_profiles):
            (recalled,) = await inbox.take(10.0)
            await asyncio.sleep(0.1)
    assert recalled.learned.epoch == 6
    assert server.count(patch("n1")) == 0


@in_own_loop
async def test_a_deleted_profile_is_written_again(server, answers, until):
    now = [known("n1"), known("n2")]
    server.on(LIST, answers.says(page(known("n1"))), answers.says(page()))
    server.on(patch("n1"), answers.says({}))
    server.on(patch("n2"), answers.says({}))
    async with profiles(server, now) as (node_profiles, _, context):
        await node_profiles.recall()
        async with writing(node_profiles):
            await until(lambda: writes(context) == 2)
    assert server.count(patch("n1")) == 1


@in_own_loop
async def test_other_tasks_run_while_many_nodes_are_read_and_compared(server, answers, until):
    turns, nodes = [], 4 * NODES_PER_SLICE

    async def count_turns():
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    def learned():
        turns.clear()
        for at in range(nodes):
            yield known(f"n{at}")

    server.on(LIST, answers.says(page(*(known(f"n{at}") for at in range(nodes)))))
    async with profiles(server, []) as (node_profiles, _, _):
        await node_profiles.recall()
        others = asyncio.create_task(count_turns())
        await node_profiles._write_changes([each async for each in in_slices(learned())])
        others.cancel()
    assert len(turns) >= 8  # four while the engine is read, four while what it knows is compared


@in_own_loop
async def test_without_changes_nothing_is_read(server, answers, until):
    server.on(LIST, answers.says(page(known("n1"))))
    async with profiles(server, [known("n1")]) as (node_profiles, _, _):
        await node_profiles.recall()
        async with writing(node_profiles):
            await asyncio.sleep(0.1)
    assert server.count(LIST) == 1


@in_own_loop
async def test_without_the_right_to_write_there_is_one_attempt_per_round(server, answers, until):
    now = [known(f"n{at}") for at in range(3)]
    server.on(LIST, answers.says(page()))
    for each in now:
        server.on(patch(each.node), answers.says({"message": "forbidden"}, 403))
    async with profiles(server, now) as (node_profiles, _, context), writing(node_profiles):
        await until(lambda: writes(context, "refused") == 3)
    assert sum(what.startswith("PATCH") for what, _, _ in server.requests) == 3


@in_own_loop
async def test_after_a_failed_write_the_next_round_tries_again(server, answers, until):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says({"message": "busy"}, 503), answers.says({}))
    async with profiles(server, [KNOWN]) as (node_profiles, _, context), writing(node_profiles):
        await until(lambda: writes(context) == 1)
    assert writes(context, "failed") == 1
