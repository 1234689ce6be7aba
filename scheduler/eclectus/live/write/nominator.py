"""Writes `status.nominatedNodeName` of pending pods.

The patch carries the resourceVersion it was made for, so it never arrives after the pod's bind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eclectus.kubeclient.client import STRATEGIC_MERGE
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError, NotDoneError, UnsureError
from eclectus.live.context import Context
from eclectus.live.watch.watched import ConditionState
from eclectus.live.write.persistence import Persistence
from eclectus.model.commands import Bind, Nominate


class Nominator:
    """`state_of` returns the state of a pending pod of ours by uid, None once it is bound or gone."""

    def __init__(
        self,
        context: Context,
        state_of: Callable[[str], ConditionState | None],
        holds_lease: Callable[[], bool],
    ) -> None:
        self._context, self._state_of = context, state_of
        self._persistence = Persistence(context, holds_lease)

    async def write(self, pod: Bind | Nominate, node: str, patience_seconds: float) -> str:
        """Write the node, or that there is none if empty; returns why that was not possible, or nothing."""

        async def patch() -> None:
            state = self._state_of(pod.uid)
            if state is None:
                raise MissingError("PATCH", message="the pod is bound or gone")
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
            body = nomination_patch(pod.uid, node, state)
            await self._context.client.send("PATCH", path, body, content_type=STRATEGIC_MERGE)

        try:
            # After a conflict the watch brings the newer version of the pod.
            again = (ConflictError, NotDoneError, UnsureError)
            return await self._persistence.attempt(patch, again, patience_seconds)
        except ApiError as error:
            return error.message or str(error)


def nomination_patch(uid: str, node: str, state: ConditionState) -> dict[str, Any]:
    """A patch of the nomination alone; it applies to this version of the pod only."""
    return {
        "metadata": {"uid": uid, "resourceVersion": state.resource_version},
        "status": {"nominatedNodeName": node or None},
    }
