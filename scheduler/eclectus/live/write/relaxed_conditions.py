"""Sets a condition on pods whose node does not meet all of their preferences.

It says what the annotation of the Binding says (relaxed_preferences.py), for whoever waits for conditions or
counts pods by them. Unlike the annotation it costs a request. So it comes last: few are in flight, one while
binds wait, and none is queued for more than `WAITING_MOST` pods. Nothing takes the condition back, because a
bound pod stays on its node; the kubelet keeps conditions that are not its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from eclectus.api.names import PREFERENCES_MET
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.client import STRATEGIC_MERGE
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError, NotDoneError, UnsureError
from eclectus.live.context import Context
from eclectus.live.write.workers import WorkerPool
from eclectus.model.commands import Bind

IN_FLIGHT = 4  # requests, and 1 while binds wait
WAITING_MOST = 4096  # pods; further ones have the annotation alone
PATIENCE_SECONDS = 15.0  # a condition that could not be written for this long is given up

Relaxed = tuple[Bind, str]
"""The bind of a pod, and the preferences that were not met, in words."""

_log = logging.getLogger(__name__)


class RelaxedConditions:
    """Writes the condition of each pod; `workers.run()` must run."""

    def __init__(self, context: Context, holds_lease: Callable[[], bool]) -> None:
        self._context, self._holds_lease = context, holds_lease
        self.workers: WorkerPool[Relaxed] = WorkerPool("relaxed preferences", IN_FLIGHT, self._write)

    def add(self, bind: Bind, words: str) -> None:
        """The pod is bound, and its node does not meet these preferences."""
        if len(self.workers) < WAITING_MOST:
            self.workers.put((bind, words))
        else:
            _log.debug("condition not queued: %s wait already", WAITING_MOST, extra=_log_fields(bind))

    def yield_to_binds(self, are_binds_waiting: bool) -> None:
        """Leave requests in flight to binds while any are waiting."""
        self.workers.limit_to(1 if are_binds_waiting else IN_FLIGHT)

    async def _write(self, relaxed: Relaxed) -> None:
        bind, words = relaxed
        path = f"/api/v1/namespaces/{bind.namespace}/pods/{bind.name}/status"
        patch = relaxation_patch(bind, words, datetime.now(UTC))
        backoff = Backoff(0.1, 5.0, self._context.rng)
        give_up_at = elapsed() + PATIENCE_SECONDS
        while self._holds_lease() and elapsed() < give_up_at:
            try:
                await self._context.client.send("PATCH", path, patch, content_type=STRATEGIC_MERGE)
            except MissingError:
                return  # the pod has ended and is gone
            except (ConflictError, NotDoneError, UnsureError) as error:  # a repetition is harmless
                await asyncio.sleep(getattr(error, "retry_after", None) or backoff.wait())
            except ApiError as error:
                _log.warning("condition not written: %s", error, extra=_log_fields(bind))
                return
            else:
                return


def relaxation_patch(bind: Bind, words: str, now: datetime) -> dict[str, Any]:
    """A strategic merge patch of the condition alone; the uid keeps it from another pod of the same name."""
    condition = {
        "type": PREFERENCES_MET,
        "status": "False",
        "reason": "NodeDoesNotMeetThem",
        "message": f"node {bind.node} does not meet: {words}",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"metadata": {"uid": bind.uid}, "status": {"conditions": [condition]}}


def _log_fields(bind: Bind) -> dict[str, str]:
    return {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node}
