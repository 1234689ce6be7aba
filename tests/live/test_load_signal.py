"""What a Prometheus says of nodes reaches the engine; what it fails to say stops nothing."""

import asyncio
import math
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from eclectus.config.shell import LoadSignal as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.learned.load_signal import STALE_QUERIES, LoadSignal
from eclectus.live.metrics import Metrics
from eclectus.model.errors import SettingsError
from eclectus.model.events import LoadSeen

URL = Settings(url="http://127.0.0.1:1", interval=0.2)


def sample(instance: str, value: object, age_seconds: float = 0.0) -> dict[str, Any]:
    return {"metric": {"instance": instance}, "value": [time.time() - age_seconds, str(value)]}


async def told(query: Callable[[], Any], settings: Settings = URL, asks: int = 1) -> list[LoadSeen]:
    """What the engine is told after so many queries."""
    inbox = Inbox()
    asked, again, loop = 0, asyncio.Event(), asyncio.get_running_loop()

    def counted() -> Any:
        nonlocal asked
        asked += 1
        if asked > asks:
            loop.call_soon_threadsafe(again.set)
            raise RuntimeError("the test is over")
        return query()

    running = asyncio.create_task(LoadSignal(settings, inbox, Metrics(), counted).run())
    async with asyncio.timeout(30):
        await again.wait()
    running.cancel()
    return [event for event in await inbox.gather(0) if isinstance(event, LoadSeen)]


def ask(*args: Any, **options: Any) -> list[LoadSeen]:
    return asyncio.run(told(*args, **options))


def test_loads_are_told_by_node() -> None:
    (seen,) = ask(lambda: [sample("b:9100", 0.25), sample("a", 0.5)])
    assert seen.loads == (("a", 0.5), ("b", 0.25))


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", -0.5])
def test_what_is_no_share_is_no_signal(value: object) -> None:
    (seen,) = ask(lambda: [sample("a", value), sample("b", 1.5)])
    assert seen.loads == (("b", 1.0),)


def test_what_is_old_is_no_signal() -> None:
    (seen,) = ask(lambda: [sample("a", 0.5, age_seconds=3600), sample("b", 0.5)])
    assert seen.loads == (("b", 0.5),)


def test_the_greatest_of_several_samples_of_a_node_counts() -> None:
    (seen,) = ask(lambda: [sample("a:1", 0.2), sample("a:2", 0.7)])
    assert seen.loads == (("a", 0.7),)


def test_how_an_instance_names_its_node_can_be_said() -> None:
    settings = Settings(url="http://x", interval=0.2, node_label="pod", node_pattern="exporter-(.+)")
    vector = [{"metric": {"pod": name}, "value": [time.time(), "0.5"]} for name in ("exporter-n1", "other")]
    (seen,) = ask(lambda: vector, settings)
    assert seen.loads == (("n1", 0.5),)


def refused() -> Any:
    raise ConnectionError("refused")


@pytest.mark.parametrize("answer", [refused, list, lambda: [{"metric": {}}], lambda: "nonsense"])
def test_a_signal_that_fails_is_forgotten_when_it_is_old(answer: Callable[[], Any]) -> None:
    answers = iter([lambda: [sample("a", 0.5)]])

    def one_good() -> Any:
        return next(answers, answer)()

    seen = ask(one_good, asks=1 + STALE_QUERIES)
    assert [event.loads for event in seen] == [(("a", 0.5),), ()]


def test_a_server_that_is_not_there_costs_a_count() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    metrics, count = Metrics(), "eclectus_load_signal_queries_total"
    inbox = Inbox()

    async def until_forgotten() -> list[Any]:
        running = asyncio.create_task(LoadSignal(Settings(url=url, interval=0.01), inbox, metrics).run())
        events = await inbox.gather(60)
        running.cancel()
        return events

    assert asyncio.run(until_forgotten()) == [LoadSeen(())]
    assert metrics.registry.get_sample_value(count, {"result": "failed"}) == STALE_QUERIES


@pytest.mark.parametrize(
    ("field", "value"), [("url", "prometheus:9090"), ("node_pattern", "(["), ("node_pattern", "*")]
)
def test_settings_that_cannot_be_are_named(field: str, value: str) -> None:
    with pytest.raises(SettingsError):
        Settings(**{field: value})


# -- a real one --------------------------------------------------------------------------------------


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[str, Gauge]]:
    """A Prometheus that scrapes a gauge `node_share{node=…}` every second; its URL and the gauge."""
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus on the PATH (Debian: apt-get install prometheus)")
    registry = CollectorRegistry()
    gauge = Gauge("node_share", "In use.", ["node"], registry=registry)
    exporter, serving = start_http_server(0, "127.0.0.1", registry)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    targets = f"[{{targets: ['127.0.0.1:{exporter.server_port}']}}]"
    config.write_text(
        f"scrape_configs: [{{job_name: nodes, scrape_interval: 1s, static_configs: {targets}}}]\n"
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}", gauge
    finally:
        process.kill()
        process.wait()
        exporter.shutdown()
        serving.join()
        exporter.server_close()


@pytest.mark.live
def test_a_real_prometheus_is_asked_once_for_all_nodes(prometheus: tuple[str, Gauge]) -> None:
    url, gauge = prometheus
    for at in range(50):
        gauge.labels(f"n{at:02}").set(at / 100)
    gauge.labels("broken").set(math.nan)
    deadline = time.monotonic() + 60
    while not _has(url, "node_share"):
        assert time.monotonic() < deadline, "Prometheus has scraped nothing"
        time.sleep(0.1)
    settings = Settings(url=url, query="max by (node) (node_share)", node_label="node", interval=1)
    inbox = Inbox()

    async def first() -> list[Any]:
        running = asyncio.create_task(LoadSignal(settings, inbox, Metrics()).run())
        events = await inbox.gather(30)
        running.cancel()
        return events

    (seen,) = asyncio.run(first())
    assert seen.loads == tuple((f"n{at:02}", at / 100) for at in range(50))


def _has(url: str, series: str) -> bool:
    try:
        return b'"node"' in requests.get(f"{url}/api/v1/query?query={series}", timeout=5).content
    except requests.ConnectionError:
        return False
