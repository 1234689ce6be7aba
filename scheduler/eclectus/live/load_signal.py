"""The measured load of nodes: one periodic query to a Prometheus server, for all nodes at once.

The answer becomes the event `LoadSeen`. Load beyond the requests of a node's pods counts as background load
in the estimate of waiting times. Scheduling never depends on it: if the server is slow, unreachable or
answers with something unexpected, the failure is logged and counted, and after STALE_QUERIES failures in a
row the last values are dropped.

The Prometheus client is blocking and has no timeout by default. It runs in a thread of its own, with a
timeout, one query at a time.
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eclectus.config.process_settings import LoadSignalSettings as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Metrics
from eclectus.model.events import LoadSeen

Query = Callable[[], list[Any]]
"""Queries Prometheus; returns an instant vector in the form of its HTTP API. Blocking; may raise."""

STALE_QUERIES = 3  # failed queries in a row after which the last values are dropped

_log = logging.getLogger(__name__)


class LoadSignal:
    """Queries Prometheus and puts LoadSeen into the inbox."""

    def __init__(
        self, settings: Settings, inbox: Inbox, metrics: Metrics, query: Query | None = None
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._metrics = metrics
        self._query = query or _client_query(settings)
        self._node_pattern = re.compile(settings.node_pattern)
        self._missed = 0

    async def run(self) -> None:
        """Query every `interval`, until cancelled."""
        thread = ThreadPoolExecutor(1, "load-signal")
        try:
            while True:
                await self._query_once(thread)
                await asyncio.sleep(self._settings.interval)
        finally:  # without waiting for a query under way: its answer is no longer needed
            thread.shutdown(wait=False, cancel_futures=True)

    async def _query_once(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        try:
            loads = self._loads(await loop.run_in_executor(thread, self._query))
            problem = "" if loads else "no node has a value"
        except Exception as error:  # the client library may raise anything, and the signal is optional
            loads, problem = {}, f"{type(error).__name__}: {error}"
        if problem:
            self._missed += 1
            self._metrics.load_queries.labels("failed").inc()
            _log.warning("load signal: query failed: %s", problem[:500])
            if self._missed != STALE_QUERIES:
                return
        else:
            self._missed = 0
            self._metrics.load_queries.labels("answered").inc()
        self._metrics.load_nodes.set(len(loads))
        self._inbox.put(LoadSeen(tuple(sorted(loads.items()))))

    def _loads(self, vector: Iterable[Any]) -> dict[str, float]:
        """Node name -> share in use, 0 to 1; of several samples of a node the greatest.

        Left out: samples that are old, negative or not finite, and those whose label names no node.
        """
        loads: dict[str, float] = {}
        oldest = time.time() - STALE_QUERIES * self._settings.interval
        for sample in vector:
            label = sample["metric"].get(self._settings.node_label, "")
            at, value = float(sample["value"][0]), float(sample["value"][1])
            match = self._node_pattern.fullmatch(label)
            if match is None or at < oldest or not math.isfinite(value) or value < 0:
                continue
            node = match.group(1) if self._node_pattern.groups else label
            loads[node] = max(loads.get(node, 0.0), min(value, 1.0))
        return loads


def _client_query(settings: Settings) -> Query:
    try:
        from prometheus_api_client import PrometheusConnect
        from urllib3.util.retry import Retry
    except ImportError as error:
        advice = "from a checkout, pip install '.[load]'"
        raise RuntimeError(f"loadSignal.url is set, but its packages are missing: {advice}") from error
    # The client's own retries could last longer than the interval between two queries.
    client = PrometheusConnect(url=settings.url, timeout=settings.timeout, retry=Retry(0))
    return lambda: client.custom_query(settings.query)
