"""NodeProfiles against a server that misbehaves: nothing of it may stop the scheduler or flood the server."""

import asyncio
from contextlib import asynccontextmanager
from functools import wraps

import pytest
from msgspec.structs import replace

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_profile import status_of
from eclectus.config.shell import NodeProfiles as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.learned.node_profiles import NodeProfiles
from eclectus.model.events import NodeRecalled
from eclectus.model.learned import LearnedNode, LearnedWork

LIST = f"GET {NODE_PROFILES_PATH}"
KNOWN = LearnedNode("n1", 5, 1000.0, "live", 1.0, 0.9, (LearnedWork("web", 0.5, 5, 0.9),))
GONE, LATER = ({"message": "not found"}, 404), ({"message": "a later epoch is there already"}, 422)


def alone(story):
    """A test that is a coroutine, in a loop of its own."""

    @wraps(story)
    def run(**fixtures):
        asyncio.run(story(**fixtures))

    return run


def known(name="n1", rate=0.5, at=1000.0):
    return LearnedNode(name, 5, at, "live", 1.0, 0.9, (LearnedWork("web", rate, 5, 0.9),))


def page(*nodes, more=""):
    items = [{"metadata": {"name": each.node}, "status": status_of(each)} for each in nodes]
    return {"metadata": {"continue": more}, "items": items}


def patch(name):
    return f"PATCH {NODE_PROFILES_PATH}/{name}/status"


@asynccontextmanager
async def profiles(server, now, leads=lambda: True, **settings):
    inbox = Inbox()
    async with server.means() as means:
        yield (
            NodeProfiles(means, inbox, lambda: now, leads, Settings(interval=0.01, **settings)),
            inbox,
            means,
        )


@asynccontextmanager
async def writing(made):
    task = asyncio.create_task(made.run())
    try:
        yield task
    finally:
        task.cancel()


def written(means, result="written"):
    name = "eclectus_node_profile_writes_total"
    return means.metrics.registry.get_sample_value(name, {"result": result}) or 0


@alone
async def test_what_was_known_is_recalled_page_by_page(server, answers):
    server.on(LIST, answers.says(page(known("n1"), more="next")), answers.says(page(known("n2"))))
    async with profiles(server, []) as (made, inbox, _):
        await made.recall()
        events = await inbox.gather(0)
    assert [event.learned.node for event in events if isinstance(event, NodeRecalled)] == ["n1", "n2"]


@alone
async def test_one_bad_object_does_not_stop_the_others(server, answers):
    body = page(known("n1"), known("n2"))
    body["items"][0]["status"]["state"] = "Tired"
    server.on(LIST, answers.says(body))
    async with profiles(server, []) as (made, inbox, _):
        await made.recall()
        events = await inbox.gather(0)
    assert [event.learned.node for event in events] == ["n2"]


@pytest.mark.parametrize("status", [403, 404, 500])
@alone
async def test_a_list_that_fails_stops_nobody(server, answers, status):
    server.on(LIST, answers.says({"message": "no"}, status))
    async with profiles(server, []) as (made, inbox, _):
        await made.recall()
        assert await inbox.gather(0) == []


@alone
async def test_what_has_not_changed_is_not_written(server, answers, until):
    server.on(LIST, answers.says(page(known("n1"))))
    server.on(patch("n2"), answers.says({}))
    async with profiles(server, [known("n1"), known("n2")]) as (made, _, means):
        await made.recall()
        async with writing(made):
            await until(lambda: written(means) == 1)
            await asyncio.sleep(0.1)
    assert (server.count(patch("n1")), server.count(patch("n2"))) == (0, 1)


@alone
async def test_an_object_that_is_not_there_is_made_and_owned_by_its_node(server, answers, until):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says(*GONE), answers.says({}))
    server.on("GET /api/v1/nodes/n1", answers.says({"metadata": {"uid": "u1"}}))
    server.on(f"POST {NODE_PROFILES_PATH}", answers.says({}, 201))
    async with profiles(server, [KNOWN]) as (made, _, means), writing(made):
        await until(lambda: written(means) == 1)
    (made_of,) = [body for what, _, body in server.asked if what == f"POST {NODE_PROFILES_PATH}"]
    assert made_of["metadata"]["ownerReferences"][0]["uid"] == "u1"


@alone
async def test_an_object_that_another_makes_at_the_same_time_is_written_all_the_same(server, answers, until):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says(*GONE), answers.says({}))
    server.on("GET /api/v1/nodes/n1", answers.says({"metadata": {"uid": "u1"}}))
    server.on(f"POST {NODE_PROFILES_PATH}", answers.says({"message": "already exists"}, 409))
    async with profiles(server, [KNOWN]) as (made, _, means), writing(made):
        await until(lambda: written(means) == 1)
    assert written(means, "failed") == 0


@alone
async def test_who_does_not_lead_writes_nothing(server):
    async with profiles(server, [KNOWN], leads=lambda: False) as (made, _, _), writing(made):
        await asyncio.sleep(0.1)
    assert server.asked == []


@alone
async def test_a_round_writes_no_more_than_its_bound_and_the_oldest_first(server, answers, until):
    now = [known(f"n{at}", rate=9.0) for at in range(5)]
    old = [known(f"n{at}", at=1000.0 - at) for at in range(5)]
    looks = [old, old, [*old[:3], *now[3:]], [*old[:1], *now[1:]]]
    server.on(LIST, *(answers.says(page(*look)) for look in looks))
    for at in range(5):
        server.on(patch(f"n{at}"), answers.says({}))
    async with profiles(server, now, writes_a_round=2) as (made, _, means):
        await made.recall()
        async with writing(made):
            await until(lambda: written(means) == 5)
    order = [what for what, _, _ in server.asked if what.startswith("PATCH")]
    assert order == [patch(name) for name in ("n4", "n3", "n2", "n1", "n0")]


@alone
async def test_a_later_epoch_written_between_our_look_and_our_write_is_let_stand(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(replace(KNOWN, epoch=6))))
    server.on(patch("n1"), answers.says(*LATER))
    async with profiles(server, [KNOWN]) as (made, inbox, means), writing(made):
        await until(lambda: written(means, "refused") == 1)
        await until(lambda: server.count(LIST) >= 2)
        events = await inbox.gather(1.0)
    assert [event.learned.epoch for event in events] == [6]
    assert server.count(patch("n1")) == 1


@alone
async def test_what_another_scheduler_has_written_is_not_written_again(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(known("n1"), known("n2"))))
    server.on(patch("n2"), answers.says({}))
    now = [known("n2")]
    async with profiles(server, now) as (made, _, means), writing(made):
        await until(lambda: written(means) == 1)
        now += [known("n1", rate=0.51)]  # as two see the same pods: nearly the same
        await until(lambda: server.count(LIST) >= 2)
        await asyncio.sleep(0.1)
    assert (server.count(patch("n1")), server.count(patch("n2"))) == (0, 1)


@alone
async def test_what_another_has_just_written_is_left_to_it_for_a_round(server, answers, until):
    """Two that do not agree, as with other settings, do not write more often than one."""
    theirs = replace(known("n1", rate=1.0), at=1001.0)
    server.on(LIST, answers.says(page(known("n1"))), answers.says(page(theirs)))
    server.on(patch("n1"), answers.says({}))
    async with profiles(server, [known("n1", rate=9.0)]) as (made, _, _):
        await made.recall()
        async with writing(made):
            await until(lambda: server.count(patch("n1")))
    asked = [what for what, _, _ in server.asked]
    assert asked[: asked.index(patch("n1"))] == [LIST] * 3  # at the start, theirs, and theirs still


@alone
async def test_who_knows_less_than_what_stands_there_writes_nothing(server, answers, until):
    server.on(LIST, answers.says(page()), answers.says(page(replace(known("n1", rate=9.0), epoch=6))))
    now = []
    async with profiles(server, now) as (made, inbox, _):
        await made.recall()
        now += [known("n1")]
        async with writing(made):
            (told,) = await inbox.gather(10.0)
            await asyncio.sleep(0.1)
    assert told.known.epoch == 6
    assert server.count(patch("n1")) == 0


@alone
async def test_a_profile_that_somebody_deleted_is_made_again(server, answers, until):
    now = [known("n1"), known("n2")]
    server.on(LIST, answers.says(page(known("n1"))), answers.says(page()))
    server.on(patch("n1"), answers.says({}))
    server.on(patch("n2"), answers.says({}))
    async with profiles(server, now) as (made, _, means):
        await made.recall()
        async with writing(made):
            await until(lambda: written(means) == 2)
    assert server.count(patch("n1")) == 1


@alone
async def test_who_has_no_news_does_not_even_read(server, answers, until):
    server.on(LIST, answers.says(page(known("n1"))))
    async with profiles(server, [known("n1")]) as (made, _, _):
        await made.recall()
        async with writing(made):
            await asyncio.sleep(0.1)
    assert server.count(LIST) == 1


@alone
async def test_without_the_right_to_write_it_asks_once_a_round(server, answers, until):
    now = [known(f"n{at}") for at in range(3)]
    server.on(LIST, answers.says(page()))
    for each in now:
        server.on(patch(each.node), answers.says({"message": "forbidden"}, 403))
    async with profiles(server, now) as (made, _, means), writing(made):
        await until(lambda: written(means, "refused") == 3)
    assert sum(what.startswith("PATCH") for what, _, _ in server.asked) == 3


@alone
async def test_a_server_that_is_away_is_asked_again_next_round(server, answers, until):
    server.on(LIST, answers.says(page()))
    server.on(patch("n1"), answers.says({"message": "busy"}, 503), answers.says({}))
    async with profiles(server, [KNOWN]) as (made, _, means), writing(made):
        await until(lambda: written(means) == 1)
    assert written(means, "failed") == 1
