"""Saying on the pod itself why it is not placed: condition PodScheduled=False.

Two traps. A patch that arrives after the bind would take the server's PodScheduled=True away, so each
carries the resourceVersion it was made for and comes to nothing when the pod has changed since. And
`lastTransitionTime` is when the status turned, so it is left out where the pod says False already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from eclectus.config.shell import ClientConnection
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.client import STRATEGIC_MERGE
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, ConflictError, NotDoneError, UnsureError
from eclectus.live.context import Means
from eclectus.live.watch.watched import Standing
from eclectus.live.write.workers import Crew
from eclectus.model.commands import Report

PATIENCE_SECONDS = 120.0  # a condition that could not be written for so long is left

_log = logging.getLogger(__name__)


class Conditions:
    """Writes the newest words to each pod, once each. `crew.run()` must run."""

    def __init__(
        self,
        means: Means,
        standing: Callable[[str], Standing | None],
        may_write: Callable[[], bool],
        connection: ClientConnection,
    ) -> None:
        self._means, self._standing, self._may_write = means, standing, may_write
        self._newest: dict[str, Report] = {}  # uid -> words; newer ones overtake those that still wait
        self.crew: Crew[str] = Crew("conditions", connection.conditions_in_flight, self._write)

    def say(self, report: Report) -> None:
        """These words shall stand on the pod."""
        waits = report.uid in self._newest
        self._newest[report.uid] = report
        if not waits:
            self.crew.put(report.uid)

    def cancel(self, uid: str) -> None:
        """The pod is being bound: say nothing any more."""
        self._newest.pop(uid, None)

    async def _write(self, uid: str) -> None:
        backoff = Backoff(0.1, 5.0, self._means.rng)
        give_up_at = elapsed() + PATIENCE_SECONDS
        while elapsed() < give_up_at:
            report, standing = self._newest.get(uid), self._standing(uid)
            if report is None or standing is None or not self._may_write():
                break  # being bound, bound, gone, or not ours to say
            try:
                await self._patch(report, standing)
            except (ConflictError, NotDoneError, UnsureError) as error:
                # A conflict: the watch is about to bring the newer version. In doubt: a patch that was
                # done moved the version on, so its repetition does no harm.
                await asyncio.sleep(getattr(error, "retry_after", None) or backoff.wait())
            except ApiError as error:
                _log.warning(
                    "condition not written: %s", error, extra={"pod": f"{report.namespace}/{report.name}"}
                )
                break
            else:
                if self._newest.get(uid) is report:  # else newer words have come while these were written
                    break
        self._newest.pop(uid, None)

    async def _patch(self, report: Report, standing: Standing) -> None:
        path = f"/api/v1/namespaces/{report.namespace}/pods/{report.name}/status"
        await self._means.client.send(
            "PATCH", path, patch(report, standing, datetime.now(UTC)), content_type=STRATEGIC_MERGE
        )


def patch(report: Report, standing: Standing, now: datetime) -> dict[str, Any]:
    """A strategic merge patch: the condition alone, good for this version of the pod only."""
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": report.reason,
        "message": report.message,
        "observedGeneration": standing.generation,
    }
    if not standing.refused:
        condition["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"uid": report.uid, "resourceVersion": standing.version},
        "status": {"conditions": [condition]},
    }
