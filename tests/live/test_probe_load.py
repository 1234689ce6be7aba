"""The load in NodeProbes, against a faulty API server: no fault may stop the scheduler."""

import asyncio
from contextlib import asynccontextmanager
from functools import wraps

import pytest

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import load_of
from eclectus.live.learned_objects import ProbeLoad
from eclectus.model.learned import LearnedLoad

NOW = 1_800_000_000.0
LOAD = LearnedLoad(2.0, 10.0, (("web", 1.0),))
LIST, PATCH = f"GET {NODE_PROBES_PATH}", f"PATCH {NODE_PROBES_PATH}/p/status"


def in_own_loop(coroutine):
    """Run a coroutine test in an event loop of its own."""

    @wraps(coroutine)
    def run(**fixtures):
        asyncio.run(coroutine(**fixtures))

    return run


def page(*names, more="", load=None):
    status = {"load": load} if load else {}
    items = [{"metadata": {"name": name}, "status": status} for name in names]
    return {"metadata": {"continue": more}, "items": items}


@asynccontextmanager
async def writing(server, load=LOAD, holds_lease=True):
    async with server.context() as context:
        probe_load = ProbeLoad(context, lambda now: load, lambda: NOW, lambda: holds_lease, 0.01)
        task = asyncio.create_task(probe_load.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled(), "it ran until it was cancelled"


@in_own_loop
async def test_the_load_is_written_to_every_node_probe_page_by_page(server, answers, until):
    server.on(LIST, answers.says(page("p", more="next")), answers.says(page("q")))
    server.on(PATCH, answers.says({}))
    server.on(f"PATCH {NODE_PROBES_PATH}/q/status", answers.says({}))
    async with writing(server):
        await until(lambda: server.count(f"PATCH {NODE_PROBES_PATH}/q/status"))
    body = next(body for what, _, body in server.requests if what == PATCH)
    assert body == {"status": {"load": load_of(LOAD, NOW)}}


@in_own_loop
async def test_a_load_that_is_still_right_is_not_written_again(server, answers, until):
    server.on(LIST, answers.says(page("p", load=load_of(LOAD, NOW))))
    async with writing(server):
        await until(lambda: server.count(LIST) >= 5)
    assert server.count(PATCH) == 0


@pytest.mark.parametrize("status", [403, 404, 409, 500])
@in_own_loop
async def test_a_refused_request_is_tried_again(server, answers, until, status):
    server.on(LIST, answers.says({"message": "no"}, status), answers.says(page("p")))
    server.on(PATCH, answers.says({"message": "no"}, status), answers.says({}))
    async with writing(server):
        await until(lambda: server.count(PATCH) >= 2)


@in_own_loop
async def test_without_the_lease_or_without_a_load_no_request_is_sent(server, until):
    async with writing(server, holds_lease=False):
        await asyncio.sleep(0.1)
    async with writing(server, load=None):
        await asyncio.sleep(0.1)
    assert server.requests == []
