"""Many clients ask for /speeds and /metrics without a pause: the Lease is kept, and /livez answers."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import aiohttp
import pytest

from eclectus.framework import LearnedCell
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.leadership import Leadership
from eclectus.kubeclient.serving import health
from eclectus.live.pages import speeds_page
from fake_api import FakeApi

TIMES = ElectionSettings("one", "eclectus", lease_duration=2, renew_deadline=1.0, retry_period=0.1)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/one/leases"
NODES, KINDS, CLIENTS = 5_000, 64, 60
RENEWALS = 15


def learned_cells(after):
    """As of a large cluster in which all is known."""
    for node in range(int(after[1:]) + 1 if after else 0, NODES):
        for kind in range(KINDS):
            yield LearnedCell(f"n{node:05}", f"kind-{kind}", 1.0, 5, newest_at=1.0)


@asynccontextmanager
async def running(*work):
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def ask_for_ever(session, urls, statuses):
    while True:
        for url in urls:
            async with session.get(url) as answer:
                await answer.read()
                statuses[answer.status] += 1


@pytest.mark.long
def test_the_lease_is_kept_and_livez_answers_under_a_flood():
    api, statuses = FakeApi(), Counter()
    leadership = Leadership(api, "me", TIMES, Random(1), [])
    pages = {"/speeds": partial(speeds_page, learned_cells)}
    app = health.application({"election": leadership.trouble}, {}, lambda: b"", pages)

    async def work():
        listening = listen("127.0.0.1", 0)
        base = f"http://{bound_address(listening)}"
        connector = aiohttp.TCPConnector(limit=0)
        async with health.serving(app, listening), aiohttp.ClientSession(connector=connector) as session:
            floods = [
                ask_for_ever(
                    session,
                    [f"{base}/speeds?continue=n{client:05}", f"{base}/speeds", f"{base}/metrics"],
                    statuses,
                )
                for client in range(CLIENTS)
            ]
            async with asyncio.timeout(60), running(leadership.run(), *floods):
                await leadership.leading.wait()
                while api.calls.count(("PUT", f"{LEASES}/eclectus")) < RENEWALS:
                    async with session.get(f"{base}/livez") as answer:
                        assert answer.status == 200
                    assert leadership.holds_lease()

    asyncio.run(work())
    assert not leadership.lost.is_set()
    assert statuses.keys() <= {200, 429}
    assert statuses[200] > 0
