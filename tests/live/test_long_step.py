"""A step of the engine that does not end costs latency: the Lease is renewed, health checks are answered."""

import asyncio
import threading
import urllib.request

import pytest
from aiohttp import web

from eclectus.config.configuration import parse
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.kubeclient.side_loop import entered, side_loop
from eclectus.live import loop as loops
from eclectus.live import scheduler_process
from eclectus.tape import Header
from fake_server import FakeServer

DEADLINE = 60.0
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/eclectus"
CONFIGURATION = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
clientConnection: {requestTimeout: 10s}
leaderElection: {leaseDuration: 60s, renewDeadline: 50s, retryPeriod: 100ms, resourceNamespace: kube-system}
nodeProfiles: {enabled: false}
profiles: [{schedulerName: eclectus}]
"""


class Cluster(FakeServer):
    """An API server with nothing in it, which accepts every Lease."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            body = await request.json()
            self.requests.append((f"{request.method} {request.path}", {}, body))
            body["metadata"]["resourceVersion"] = "1"
            return web.json_response(body)
        if "/leases/" in request.path:
            return web.json_response({}, status=404)
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(DEADLINE)
            return response
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})


class LongStep:
    """Keeps the main loop in one step until it is released."""

    def __init__(self, engine):
        self._step = engine.step
        engine.step = self.step
        engine.next_step_at = lambda: 0.0
        self.is_wanted = False
        self.began = threading.Event()
        self.released = threading.Event()

    def step(self, events, now):
        if self.is_wanted:
            self.began.set()
            assert self.released.wait(DEADLINE)
        return self._step(events, now)


def observed(long_step: LongStep, server: FakeServer, address: str, caplog) -> str:
    """What /livez says during the step, once the Lease was renewed many times in it."""

    def wait_for(condition):
        ended = threading.Event()
        for _ in range(int(DEADLINE / 0.02)):
            if condition():
                return
            ended.wait(0.02)
        raise AssertionError("not in time")

    def livez(seconds: float) -> str:
        with urllib.request.urlopen(f"http://{address}/livez?verbose", timeout=seconds) as answer:
            return answer.read().decode()

    try:
        wait_for(lambda: server.count(f"PUT {LEASE}") >= 2)
        livez(DEADLINE)  # requests are answered once the modules for it are imported, by the main loop
        long_step.is_wanted = True
        assert long_step.began.wait(DEADLINE)
        before = server.count(f"PUT {LEASE}")
        # Renewals are counted, and the Lease is long: a busy machine may not renew a short one in time.
        wait_for(lambda: server.count(f"PUT {LEASE}") >= before + 25)
        wait_for(lambda: "test_long_step.py" in caplog.text)
        return livez(5)
    finally:
        long_step.is_wanted = False
        long_step.released.set()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(loops, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(loops, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(loops, "REPORT_SECONDS", 0.5)


def test_the_lease_is_kept_and_livez_answers_during_a_long_step(quick, monkeypatch, caplog):
    configuration, server = parse(CONFIGURATION), Cluster()
    listening = listen("127.0.0.1", 0)
    address = bound_address(listening)
    monkeypatch.setattr(scheduler_process, "listen", lambda *_: listening)
    engine = configuration.engine()
    long_step = LongStep(engine)

    async def work():
        # The API server has a thread of its own: the main loop is to be kept from turning.
        async with side_loop("api") as api, entered(api, server.running()) as url:
            access = Credentials(Endpoint(url))
            running = asyncio.create_task(
                scheduler_process.run(
                    engine,
                    frozenset({"eclectus"}),
                    configuration.process,
                    access,
                    header=lambda: Header(eclectus="", configuration=CONFIGURATION, seed=0),
                    running=None,
                )
            )
            said = await asyncio.to_thread(observed, long_step, server, address, caplog)
            await asyncio.sleep(0)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return said

    said = asyncio.run(work())
    assert "livez check passed" in said
    assert "lost the lease" not in caplog.text
    assert "the main loop has not turned for" in caplog.text
