"""/readyz of a scheduler falls when the API server is away, and rises when it answers again."""

import asyncio
from types import SimpleNamespace

import aiohttp
import pytest

from eclectus.config.process_settings import ProcessSettings
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.serving import health
from eclectus.live.loop import Watchdog
from eclectus.live.process_metrics import Metrics
from eclectus.live.scheduler_process import SchedulerProcess
from eclectus.tape import Header


def readyz(unanswered: str, *, is_synced: bool = True) -> tuple[int, str]:
    """Status and text of /readyz, by what the election knows of the API server."""
    synced = asyncio.Event()
    if is_synced:
        synced.set()
    parts = SimpleNamespace(
        leadership=SimpleNamespace(trouble=lambda: "", unanswered=lambda: unanswered, why_standby=lambda: ""),
        watchdog=Watchdog(),
        clock=SimpleNamespace(now=lambda: 0.0),
        loop=SimpleNamespace(trouble=lambda: "", observers=[]),
        inbox=None,
        reflectors=(SimpleNamespace(synced=synced),),
    )
    context = SimpleNamespace(metrics=Metrics(), client=None)
    engine = SimpleNamespace(learn=SimpleNamespace(learned_cells=list), read=list)

    async def work() -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        settings, of_tapes = ProcessSettings(), Header(eclectus="", configuration="", seed=0)
        process = SchedulerProcess(
            engine, settings, context, parts, {}, lambda: of_tapes, running=None, front=loop
        )
        socket = listen("127.0.0.1", 0)
        url = f"http://{bound_address(socket)}/readyz"
        async with health.serving(process._health_server(loop), socket):  # noqa: SIM117
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status, await answer.text()

    return asyncio.run(work())


def test_it_is_ready_while_the_api_server_answers():
    assert readyz("") == (200, "ok")


def test_it_is_not_ready_while_the_api_server_is_away():
    status, text = readyz("no answer from the API server for 16 s")
    assert status == 503
    assert "[-]api-server failed: no answer from the API server for 16 s" in text


def test_it_is_not_ready_before_the_first_lists():
    assert readyz("", is_synced=False)[0] == 503


@pytest.mark.parametrize(
    ("decides", "leads", "is_stale", "is_current", "may"),
    [
        (True, True, False, True, True),
        (True, True, False, False, True),  # a watch begins again now and then
        (True, False, False, True, False),
        (True, True, True, True, False),
        (False, True, False, False, False),  # etcd may have been restored: the next watch says so
        (False, True, False, True, True),
    ],
)
def test_after_a_pause_pods_and_nodes_are_watched_again_before_anything_is_decided(
    decides, leads, is_stale, is_current, may
):
    reflector = SimpleNamespace(is_stale=is_stale, is_current=lambda: is_current)
    leadership = SimpleNamespace(holds_lease=lambda: leads)
    process = SimpleNamespace(parts=SimpleNamespace(reflectors=[reflector], leadership=leadership))
    assert SchedulerProcess._may_decide(process, decides) is may
