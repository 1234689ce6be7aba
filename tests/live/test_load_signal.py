"""Measured loads reach the engine; a failing Prometheus server stops nothing."""

import asyncio
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from eclectus.config.process_settings import LoadSignalSettings as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.load_signal import STALE_QUERIES, LoadSignal
from eclectus.live.metrics_page import registry_of
from eclectus.live.process_metrics import Metrics
from eclectus.model.errors import SettingsError
from eclectus.model.events import LoadSeen
from prometheus_server import scraping

URL = Settings(url="http://127.0.0.1:1", interval=0.2)


def sample(instance: str, value: object, age_seconds: float = 0.0) -> dict[str, Any]:
    return {"metric": {"instance": instance}, "value": [time.time() - age_seconds, str(value)]}


async def events_after(
    query: Callable[[], Any], settings: Settings = URL, queries: int = 1
) -> list[LoadSeen]:
    """The events of so many queries."""
    inbox = Inbox()
    count, is_over, loop = 0, asyncio.Event(), asyncio.get_running_loop()

    def counted() -> Any:
        nonlocal count
        count += 1
        if count > queries:
            loop.call_soon_threadsafe(is_over.set)
            raise RuntimeError("the test is over")
        return query()

    running = asyncio.create_task(LoadSignal(settings, inbox, Metrics(), counted).run())
    async with asyncio.timeout(30):
        await is_over.wait()
    running.cancel()
    return [event for event in await inbox.take(0) if isinstance(event, LoadSeen)]


def query_events(*args: Any, **options: Any) -> list[LoadSeen]:
    return asyncio.run(events_after(*args, **options))


def test_loads_are_reported_by_node() -> None:
    (seen,) = query_events(lambda: [sample("b:9100", 0.25), sample("a", 0.5)])
    assert seen.loads == (("a", 0.5), ("b", 0.25))


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", -0.5])
def test_a_value_that_is_no_share_is_ignored(value: object) -> None:
    (seen,) = query_events(lambda: [sample("a", value), sample("b", 1.5)])
    assert seen.loads == (("b", 1.0),)


def test_an_old_sample_is_ignored() -> None:
    (seen,) = query_events(lambda: [sample("a", 0.5, age_seconds=3600), sample("b", 0.5)])
    assert seen.loads == (("b", 0.5),)


def test_of_several_samples_of_a_node_the_greatest_counts() -> None:
    (seen,) = query_events(lambda: [sample("a:1", 0.2), sample("a:2", 0.7)])
    assert seen.loads == (("a", 0.7),)


def test_label_and_pattern_that_name_the_node_are_configurable() -> None:
    settings = Settings(url="http://x", interval=0.2, node_label="pod", node_pattern="exporter-(.+)")
    vector = [{"metric": {"pod": name}, "value": [time.time(), "0.5"]} for name in ("exporter-n1", "other")]
    (seen,) = query_events(lambda: vector, settings)
    assert seen.loads == (("n1", 0.5),)


def refused() -> Any:
    raise ConnectionError("refused")


@pytest.mark.parametrize("answer", [refused, list, lambda: [{"metric": {}}], lambda: "nonsense"])
def test_after_several_failed_queries_the_last_values_are_dropped(answer: Callable[[], Any]) -> None:
    answers = iter([lambda: [sample("a", 0.5)]])

    def one_good() -> Any:
        return next(answers, answer)()

    seen = query_events(one_good, queries=1 + STALE_QUERIES)
    assert [event.loads for event in seen] == [(("a", 0.5),), ()]


def test_an_unreachable_server_is_counted_and_the_values_are_dropped() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    metrics, count = Metrics(), "eclectus_load_signal_queries_total"
    inbox = Inbox()

    async def until_dropped() -> list[Any]:
        running = asyncio.create_task(LoadSignal(Settings(url=url, interval=0.01), inbox, metrics).run())
        events = await inbox.take(60)
        running.cancel()
        return events

    assert asyncio.run(until_dropped()) == [LoadSeen(())]
    assert registry_of(metrics).get_sample_value(count, {"result": "failed"}) == STALE_QUERIES


@pytest.mark.parametrize(
    ("field", "value"), [("url", "prometheus:9090"), ("node_pattern", "(["), ("node_pattern", "*")]
)
def test_invalid_settings_are_refused(field: str, value: str) -> None:
    with pytest.raises(SettingsError):
        Settings(**{field: value})


# -- with a real Prometheus --------------------------------------------------------------------------


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[str, Gauge]]:
    """A Prometheus that scrapes a gauge `node_share{node=…}` every second; its URL and the gauge."""
    registry = CollectorRegistry()
    gauge = Gauge("node_share", "In use.", ["node"], registry=registry)
    exporter, serving = start_http_server(0, "127.0.0.1", registry)
    try:
        with scraping(f"127.0.0.1:{exporter.server_port}", tmp_path) as url:
            yield url, gauge
    finally:
        exporter.shutdown()
        serving.join()
        exporter.server_close()


@pytest.mark.live
def test_one_query_of_a_real_prometheus_covers_all_nodes(prometheus: tuple[str, Gauge]) -> None:
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
        events = await inbox.take(30)
        running.cancel()
        return events

    (seen,) = asyncio.run(first())
    assert seen.loads == tuple((f"n{at:02}", at / 100) for at in range(50))


def _has(url: str, series: str) -> bool:
    try:
        return b'"node"' in requests.get(f"{url}/api/v1/query?query={series}", timeout=5).content
    except requests.ConnectionError:
        return False
