"""The elector against an API server that fails in every way."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from msgspec.structs import replace

from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.leadership import Elector

TIMES = ElectionSettings("kube-system", "eclectus", lease_duration=2, renew_deadline=1.0, retry_period=0.2)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
ONE = f"{LEASES}/eclectus"


class LeaseServer:
    """Stores one Lease as an API server does; while `fault` is set, that is the answer."""

    def __init__(self, server):
        self.stored, self.version, self.fault = None, 0, None
        for what in (f"GET {ONE}", f"PUT {ONE}", f"POST {LEASES}"):
            server.on(what, self.answer)

    async def answer(self, request):
        return await (self.fault or self.stored_answer)(request)

    async def stored_answer(self, request):
        if request.method == "GET":
            return web.json_response(self.stored or {}, status=200 if self.stored else 404)
        body = await request.json()
        known = (self.stored or {"metadata": {}})["metadata"].get("resourceVersion")
        if body["metadata"].get("resourceVersion") != known:
            return web.json_response({"message": "modified"}, status=409)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.stored = body
        return web.json_response(body)

    @property
    def holder(self):
        return self.stored["spec"]["holderIdentity"] if self.stored else ""


def take(api):
    """Another process acquires the Lease."""
    api.version += 1
    api.stored["metadata"]["resourceVersion"] = str(api.version)
    api.stored["spec"]["holderIdentity"] = "usurper"


@asynccontextmanager
async def electing(server, identity="me", settings=TIMES, **options):
    async with server.context() as context:
        elector = Elector(ObjectApi(context.client), identity, settings, context.rng, **options)
        task = asyncio.create_task(elector.run())
        try:
            yield elector
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_a_free_lease_is_created_and_renewed(server, until):
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            await until(lambda: api.version >= 3)
            return elector.holds_lease()

    assert asyncio.run(work())
    assert api.holder == "me"


def test_annotations_follow_with_the_next_renewal(server, until):
    api, said = LeaseServer(server), {}
    settings = replace(TIMES, metadata={"annotations": {"names": "a,b"}})

    def written():
        return api.stored["metadata"].get("annotations")

    async def work():
        async with electing(server, settings=settings, annotations=lambda: said) as elector:
            await elector.leading.wait()
            assert written() == {"names": "a,b"}
            said["server"] = "here"
            await until(lambda: written() == {"names": "a,b", "server": "here"})
            said.clear()
            await until(lambda: written() == {"names": "a,b"})

    asyncio.run(work())


def test_a_hung_process_lets_its_lease_expire_and_takes_none(server, until):
    api, hung = LeaseServer(server), [""]

    async def work():
        async with electing(server, hung=lambda: hung[0]) as elector:
            await elector.leading.wait()
            hung[0] = "the main loop has not turned for 61 s"
            await until(lambda: not elector.holds_lease())
        puts = server.count(f"PUT {ONE}")
        async with electing(server, hung=lambda: hung[0]) as elector:
            await elector.tried.wait()
            assert not elector.holds_lease()
        return puts, server.count(f"PUT {ONE}")

    before, after = asyncio.run(work())
    assert before == after
    assert api.holder == "me", "nobody else was there to take it"


@pytest.mark.parametrize("fault", ["hangs", "resets", "500", "429", "403"])
def test_a_leader_that_cannot_renew_stops_before_its_lease_expires(server, answers, until, fault, caplog):
    api = LeaseServer(server)
    play = answers.says({}, int(fault)) if fault.isdigit() else getattr(answers, fault)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            loop = asyncio.get_running_loop()
            api.fault, began = play, loop.time()
            await until(lambda: not elector.holds_lease())
            return loop.time() - began

    # By its own clock, before a standby may take over.
    assert asyncio.run(work()) < TIMES.lease_duration


def test_a_leader_goes_on_after_an_outage_in_which_nobody_took_the_lease(server, answers, until, caplog):
    caplog.set_level(logging.INFO)
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            since, api.fault = elector.election.since, answers.resets
            await until(lambda: not elector.holds_lease())
            await until(lambda: "nothing is written until it is" in caplog.text)
            api.fault = None
            await until(elector.holds_lease)
            return elector.election.since == since, elector.lost.is_set()

    assert asyncio.run(work()) == (True, False)
    assert "the lease is renewed again; nobody else has led meanwhile" in caplog.text


def test_a_leader_that_finds_its_lease_taken_after_an_outage_has_lost_it(server, answers, until):
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            api.fault = answers.resets
            await until(lambda: not elector.holds_lease())
            api.fault = None
            take(api)
            await elector.lost.wait()
            return elector.holds_lease()

    assert asyncio.run(work()) is False


def test_a_slow_answer_is_a_renewal(server, until):
    """It takes longer than a retry period, as from an API server that is short of CPU."""
    api = LeaseServer(server)

    async def slow(request):
        await asyncio.sleep(1.5 * TIMES.retry_period)
        return await api.stored_answer(request)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            api.fault, version = slow, api.version
            await until(lambda: api.version >= version + 4)
            return elector.holds_lease()

    assert asyncio.run(work())


def test_a_short_outage_costs_no_leadership(server, answers, until):
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            api.fault = answers.resets
            await until(lambda: server.count(f"GET {ONE}") >= 2)
            api.fault, version = None, api.version
            await until(lambda: api.version > version)
            return elector.holds_lease(), elector.lost.is_set()

    assert asyncio.run(work()) == (True, False)


def test_a_lease_taken_by_another_is_lost(server, caplog):
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            take(api)
            await elector.lost.wait()
            return elector.holds_lease()

    assert asyncio.run(work()) is False
    assert api.holder == "usurper"
    assert "lost the lease to 'usurper'" in caplog.text


def test_resigning_frees_the_lease_for_a_standby_at_once(server, until):
    api = LeaseServer(server)

    async def work():
        async with electing(server) as elector:
            await elector.leading.wait()
            await elector.resign()
            freed = api.holder
            async with electing(server, "next") as standby:
                async with asyncio.timeout(TIMES.lease_duration / 2):
                    await standby.leading.wait()
            return freed, elector.holds_lease(), elector.lost.is_set()

    assert asyncio.run(work()) == ("", False, False)


def test_without_election_one_always_leads(server):
    async def work():
        async with server.context() as context:
            elector = Elector(ObjectApi(context.client), "me", replace(TIMES, enabled=False), context.rng)
            await elector.resign()
            return elector.holds_lease(), elector.leading.is_set()

    assert asyncio.run(work()) == (True, True)
    assert not server.requests


def test_labels_and_annotations_of_the_lease_are_written_with_every_renewal(server, until):
    api = LeaseServer(server)
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d,e"}}

    async def scenario():
        async with server.context() as context:
            settings = replace(TIMES, metadata=metadata)
            elector = Elector(ObjectApi(context.client), "me", settings, context.rng)
            task = asyncio.create_task(elector.run())
            await until(lambda: api.version >= 2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert {key: api.stored["metadata"][key] for key in metadata} == metadata
