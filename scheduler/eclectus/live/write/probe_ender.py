"""Deletes the probes whose room a pod has taken, right before that pod is bound.

The operator ends such probes too, within a second. This second is saved here: a CPU-bound probe on a slow
node delays the start of the pod as long as they share the node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError
from eclectus.live.context import Context
from eclectus.model.commands import EndProbe

REQUEST_SECONDS = 1.0  # the bind waits no longer: then the operator has ended the probe

_log = logging.getLogger(__name__)


class ProbeEnder:
    """`holds_lease` is asked before each request."""

    def __init__(self, context: Context, holds_lease: Callable[[], bool]) -> None:
        self._context, self._holds_lease = context, holds_lease

    async def end(self, step: EndProbe) -> None:
        """Delete the probe, with its own grace period. Not repeated: the operator tries too."""
        if not self._holds_lease():
            return  # nor is the bind sent
        path = f"/api/v1/namespaces/{step.namespace}/pods/{step.name}"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": step.uid}}
        fields = {"pod": f"{step.namespace}/{step.name}", "uid": step.uid}
        try:
            await self._context.client.send("DELETE", path, options, seconds=REQUEST_SECONDS)
        except (MissingError, ConflictError):
            _log.debug("the probe has ended already", extra=fields)
        except ApiError as error:
            _log.warning("probe not ended before a bind to its node: %s", error, extra=fields)
        else:
            _log.info("ended a probe whose room a pod takes", extra=fields)
