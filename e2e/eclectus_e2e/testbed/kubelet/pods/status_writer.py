"""Writing pod statuses: one request in flight a pod, the newest status wins, failures are retried."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import STRATEGIC, TRANSIENT, Api
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState, Resident

LOG = logging.getLogger("kubelet.writer")
IN_FLIGHT = 64
_RETRY_FIRST_SECONDS, _RETRY_MAX_SECONDS = 0.1, 5.0
_GONE = (404, 409)  # no such pod any more, or another one of the name (the uid did not match)

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Writer:
    """Tells the API server what became of pods. A node that is not up writes nothing."""

    def __init__(self, api: Api, spawn: Spawn) -> None:
        self._api = api
        self._spawn = spawn
        self._gate = asyncio.Semaphore(IN_FLIGHT)

    def write(self, machine: Machine, resident: Resident) -> None:
        """Begin to write what is unwritten, unless that is going on already."""
        pending = resident.unwritten is not None or resident.deletion_due
        if pending and not resident.writing and machine.state is NodeState.UP:
            resident.writing = True
            self._spawn(self._write(machine, resident))

    async def _write(self, machine: Machine, resident: Resident) -> None:
        wait_seconds = _RETRY_FIRST_SECONDS
        while machine.state is NodeState.UP and (resident.unwritten is not None or resident.deletion_due):
            try:
                async with self._gate:
                    await self._write_one(resident)
            except (*TRANSIENT, ApiError) as error:
                if isinstance(error, ApiError) and not _passing(error):
                    self._give_up(resident, error)
                    break
                LOG.warning("pod %s: %r; again in %.1f s", resident.pod.metadata.name, error, wait_seconds)
                await asyncio.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, _RETRY_MAX_SECONDS)
        resident.writing = False

    async def _write_one(self, resident: Resident) -> None:
        meta = resident.pod.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}"
        patch = resident.unwritten
        if patch is not None:
            await self._api.request("PATCH", f"{path}/status", patch, STRATEGIC)
            if resident.unwritten is patch:  # a newer one may have come meanwhile
                resident.unwritten = None
            return
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta.uid}}
        await self._api.request("DELETE", path, body)
        resident.deletion_due = False

    def _give_up(self, resident: Resident, error: ApiError) -> None:
        """The pod is gone (the watch will say so), or the server will never accept this status."""
        resident.unwritten = None
        resident.deletion_due = False
        if error.status not in _GONE:
            LOG.error("pod %s: status given up: %s", resident.pod.metadata.name, error)


def _passing(error: ApiError) -> bool:
    """Whether the same request may succeed later."""
    return error.status == 429 or error.status >= 500
