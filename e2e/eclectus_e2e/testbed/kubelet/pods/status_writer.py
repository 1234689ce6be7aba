"""Writes pod statuses: at most one request in flight per pod, newest status first, failures retried."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import STRATEGIC, TRANSIENT, Api
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState, PlacedPod

LOG = logging.getLogger("kubelet.writer")
IN_FLIGHT = 64
_RETRY_FIRST_SECONDS, _RETRY_MAX_SECONDS = 0.1, 5.0
_GONE = (404, 409)  # the pod was deleted, or another pod has its name (the uid did not match)

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class StatusWriter:
    """Sends statuses and final deletions of pods to the API server. A node that is not up writes nothing."""

    def __init__(self, api: Api, spawn: Spawn) -> None:
        self._api = api
        self._spawn = spawn
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)

    def write(self, machine: Machine, placed: PlacedPod) -> None:
        """Start to send the pending status or deletion, unless a task does so already."""
        pending = placed.pending_status is not None or placed.deletion_due
        if pending and not placed.is_writing and machine.state is NodeState.UP:
            placed.is_writing = True
            self._spawn(self._write(machine, placed))

    async def _write(self, machine: Machine, placed: PlacedPod) -> None:
        wait_seconds = _RETRY_FIRST_SECONDS
        while machine.state is NodeState.UP and (placed.pending_status is not None or placed.deletion_due):
            try:
                async with self._in_flight:
                    await self._write_one(placed)
            except (*TRANSIENT, ApiError) as error:
                if isinstance(error, ApiError) and not _is_transient(error):
                    self._give_up(placed, error)
                    break
                LOG.warning("pod %s: %r; retrying in %.1f s", placed.pod.metadata.name, error, wait_seconds)
                await asyncio.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, _RETRY_MAX_SECONDS)
        placed.is_writing = False

    async def _write_one(self, placed: PlacedPod) -> None:
        meta = placed.pod.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}"
        patch = placed.pending_status
        if patch is not None:
            await self._api.request("PATCH", f"{path}/status", patch, STRATEGIC)
            if placed.pending_status is patch:  # else a newer one replaced it during the request
                placed.pending_status = None
            return
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta.uid}}
        await self._api.request("DELETE", path, body)
        placed.deletion_due = False

    def _give_up(self, placed: PlacedPod, error: ApiError) -> None:
        """Drop the status: the pod was deleted (the watch reports that), or the server never accepts it."""
        placed.pending_status = None
        placed.deletion_due = False
        if error.status not in _GONE:
            LOG.error("pod %s: status dropped: %s", placed.pod.metadata.name, error)


def _is_transient(error: ApiError) -> bool:
    """Whether the same request may succeed later."""
    return error.status == 429 or error.status >= 500
