"""Does the steps before a bind by which the pod's claims get their volumes, and waits until they have them.

The volume is reserved for the claim, or the node is written on the claim; then the controllers of Kubernetes
and of the storage do the rest. Nothing is undone (as in kube-scheduler): what is written stays right for the
claim, and the pod, when it is placed again, follows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from eclectus.kube.objects import decode_head
from eclectus.kube.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, claim_from, volume_from
from eclectus.kubeclient.api_errors import ApiError, MissingError, RejectedError
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus.kubeclient.timing import elapsed
from eclectus.live.context import Context
from eclectus.live.watch.claim_states import ClaimState, ClaimStates
from eclectus.live.write.write_queues import LEASE_LOST, OUTDATED, Persistence
from eclectus.model.commands import AwaitVolume, Bind, ReserveVolume, SelectNode, VolumeStep
from eclectus.model.errors import MalformedError
from eclectus.model.volumes import Volume

WRITES_IN_FLIGHT = 16  # of all binds that wait for volumes: they must not delay other requests
WRITE_SECONDS = 5.0  # a write that takes longer fails, and so does the bind
BOUND_SECONDS = 600.0  # for the volume of one claim (kube-scheduler's bindTimeoutSeconds)
CHECK_SECONDS = 1.0  # how soon a wait ends when the pod is gone or the Lease is lost


class VolumeSteps:
    """`states`: the claims as watched. `pod_state` returns None once the pod of a uid is bound or gone.

    `bound_seconds` limits the wait for the volume of one claim.
    """

    def __init__(
        self,
        context: Context,
        states: ClaimStates,
        pod_state: Callable[[str], object | None],
        holds_lease: Callable[[], bool],
        bound_seconds: float = BOUND_SECONDS,
    ) -> None:
        self._context = context
        self._states = states
        self._bound_seconds = bound_seconds
        self._pod_state = pod_state
        self._holds_lease = holds_lease
        self._persistence = Persistence(context, holds_lease)
        self._in_flight = asyncio.Semaphore(WRITES_IN_FLIGHT)

    async def do(self, bind: Bind, step: VolumeStep) -> str:
        """Do one step; returns why it is not done, or nothing."""
        match step:
            case ReserveVolume():
                return await self._written(lambda: self._reserve(step))
            case SelectNode():
                return await self._written(lambda: self._select(step))
            case AwaitVolume():
                return await self._bound(bind, step)

    async def _written(self, write: Callable[[], Awaitable[None]]) -> str:
        try:
            async with self._in_flight:
                error = await self._persistence.attempt(write, OUTDATED, WRITE_SECONDS)
        except ApiError as refused:
            error = refused
        except MalformedError as malformed:
            return str(malformed)
        return "" if error is None else error.reason

    async def _reserve(self, step: ReserveVolume) -> None:
        path = f"/api/v1/persistentvolumes/{step.volume}"
        body = await self._context.client.get(path)
        volume, version = volume_from(body), decode_head(body).metadata.resource_version
        key = f"{step.namespace}/{step.claim}"
        if volume.claim not in ("", key) or volume.claim_uid not in ("", step.claim_uid):
            message = f'persistentvolume "{step.volume}" is reserved for {volume.claim} meanwhile'
            raise RejectedError("PATCH", message=message)
        if volume.claim_uid != step.claim_uid:
            await self._patch(path, reservation_patch(step, volume, version))

    async def _select(self, step: SelectNode) -> None:
        path = f"/api/v1/namespaces/{step.namespace}/persistentvolumeclaims/{step.claim}"
        body = await self._context.client.get(path)
        claim, version = claim_from(body), decode_head(body).metadata.resource_version
        if claim.uid != step.claim_uid:
            raise MissingError("PATCH", message=f'persistentvolumeclaim "{step.claim}" not found')
        if claim.volume or claim.selected_node == step.node:
            return  # it is bound, or is about to be
        if claim.selected_node:
            message = f'persistentvolumeclaim "{step.claim}" is provisioned for node {claim.selected_node}'
            raise RejectedError("PATCH", message=message)
        metadata = {"resourceVersion": version, "annotations": {SELECTED_NODE: step.node}}
        await self._patch(path, {"metadata": metadata})

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await self._context.client.send("PATCH", path, body, content_type=MERGE_PATCH)

    # -- waiting -------------------------------------------------------------------------------------

    async def _bound(self, bind: Bind, step: AwaitVolume) -> str:
        key, give_up_at = f"{step.namespace}/{step.claim}", elapsed() + self._bound_seconds
        was_selected = False
        while self._holds_lease():
            state = self._states.get(key)
            problem = _problem(state, step, was_selected=was_selected)
            if problem or state is None:
                return problem
            if state.volume:
                return ""
            if self._pod_state(bind.uid) is None:
                return "the pod is bound or gone"
            if elapsed() >= give_up_at:
                return f'persistentvolumeclaim "{step.claim}" is not bound after {self._bound_seconds:g} s'
            was_selected = was_selected or state.selected_node == step.node
            await self._states.changed(key, CHECK_SECONDS)
        return LEASE_LOST


def _problem(state: ClaimState | None, step: AwaitVolume, *, was_selected: bool) -> str:
    """Why waiting helps no more; empty if it may. `was_selected`: the watch has shown our write."""
    if state is None or state.uid != step.claim_uid:
        return f'persistentvolumeclaim "{step.claim}" not found'
    if step.volume and state.volume not in ("", step.volume):
        return f'persistentvolumeclaim "{step.claim}" got another volume: "{state.volume}"'
    if was_selected and not state.volume and state.selected_node != step.node:
        return f'provisioning failed for PVC "{step.claim}"'  # the provisioner has taken the node back
    return ""


def reservation_patch(step: ReserveVolume, volume: Volume, version: str) -> dict[str, Any]:
    """A merge patch that reserves this version of a volume for the claim."""
    metadata: dict[str, Any] = {"resourceVersion": version}
    if not volume.claim:  # otherwise a person has reserved it, and it is kept when the claim is deleted
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": step.namespace,
        "name": step.claim,
        "uid": step.claim_uid,
    }
    return {"metadata": metadata, "spec": {"claimRef": reference}}
