"""How busy nodes are by measurement: one query to a Prometheus now and then, for all nodes at once.

The answer becomes `LoadSeen`: what nodes do beyond what pods have asked for counts as background in the
estimate of waits. It is a hint and never a condition: a server that is slow, gone or talks nonsense costs a
line in the log and a count, and the last signal is forgotten once it is older than it should be.

The client is blocking and by itself waits for ever; it runs in a thread of its own with a time-out, one
query at a time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eclectus.config.shell import LoadSignal as Settings
from eclectus.live.inbox import Inbox
from eclectus.live.metrics import Metrics
from eclectus.model.events import LoadSeen

Query = Callable[[], list[Any]]
"""Asks Prometheus and answers with an instant vector as its HTTP API gives it. Blocking; may raise."""

STALE_QUERIES = 3  # answers missed in a row after which what was known is forgotten

_log = logging.getLogger(__name__)


class LoadSignal:
    """Asks, and tells the engine."""

    def __init__(
        self, settings: Settings, inbox: Inbox, metrics: Metrics, query: Query | None = None
    ) -> None:
        self._settings, self._inbox, self._metrics = settings, inbox, metrics
        self._query = query or _client_query(settings)
        self._node = re.compile(settings.node_pattern)
        self._missed = 0

    async def run(self) -> None:
        """Query after query, until cancelled."""
        thread = ThreadPoolExecutor(1, "load-signal")
        try:
            while True:
                await self._ask(thread)
                await asyncio.sleep(self._settings.interval)
        finally:  # without waiting for an answer that nobody will hear
            thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        try:
            vector = await loop.run_in_executor(thread, self._query)
            loads = self._loads(vector)
            problem = "" if loads else "no node has a value"
        except Exception as error:  # whatever a client library raises: it is a hint that we go without
            loads, problem = {}, f"{type(error).__name__}: {error}"
        if problem:
            self._missed += 1
            self._metrics.load_queries.labels("failed").inc()
            _log.warning("no load signal: %s", problem[:500])
            if self._missed != STALE_QUERIES:
                return
        else:
            self._missed = 0
            self._metrics.load_queries.labels("answered").inc()
        self._metrics.load_nodes.set(len(loads))
        self._inbox.put(LoadSeen(tuple(sorted(loads.items()))))

    def _loads(self, vector: Iterable[Any]) -> dict[str, float]:
        """Node to share in use; values that are no share, old, or of nobody we can name are left out.

        Where several samples name one node, the greatest counts.
        """
        loads: dict[str, float] = {}
        oldest = time.time() - STALE_QUERIES * self._settings.interval
        for sample in vector:
            label = sample["metric"].get(self._settings.node_label, "")
            at, value = float(sample["value"][0]), float(sample["value"][1])
            named = self._node.fullmatch(label)
            if named is None or at < oldest or not math.isfinite(value) or value < 0:
                continue
            node = named.group(1) if self._node.groups else label
            loads[node] = max(loads.get(node, 0.0), min(value, 1.0))
        return loads


def _client_query(settings: Settings) -> Query:
    try:
        from prometheus_api_client import PrometheusConnect
        from urllib3.util.retry import Retry
    except ImportError as error:
        raise RuntimeError("loadSignal needs more packages: pip install 'eclectus[load]'") from error
    # Its own retries would take longer than until the next query.
    client = PrometheusConnect(url=settings.url, timeout=settings.timeout, retry=Retry(0))
    return lambda: client.custom_query(settings.query)
