"""Binds one pod, with the steps before its bind, and finds out how the bind has ended.

After an uncertain answer (a timeout, a lost connection) a bind is neither repeated nor given up: the pod is
read. A bound pod stays bound, so reading it as bound settles the matter at once. Reading it as unbound
settles it only after the API server has certainly stopped working on our request, whose time limit we set.

Some binds have steps before them. If the bind fails, the steps that can be undone are undone.

By some steps the pod's claims get their volumes, and the bind waits until they have them: the volume is
reserved for the claim, or the node is written on the claim; then the controllers of Kubernetes and of the
storage do the rest. Nothing of that is undone (as in kube-scheduler): what is written stays right for the
claim, and the pod, when it is placed again, follows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from eclectus.kube.cluster_objects import BOUND_BY_CONTROLLER, SELECTED_NODE, claim_from, volume_from
from eclectus.kube.objects import Pod, decode_head, decode_pod
from eclectus.kubeclient import api_errors
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus.kubeclient.timing import Backoff, elapsed
from eclectus.live.process_metrics import Context
from eclectus.live.watch.watched_kinds import ClaimState, ClaimStates
from eclectus.live.write.status_patches import Nominator
from eclectus.live.write.write_queues import LEASE_LOST, OUTDATED, Persistence, log_fields, pod_path
from eclectus.model import commands
from eclectus.model.errors import MalformedError
from eclectus.model.events import BindConfirmed, BindRefused
from eclectus.model.volumes import Volume

PATIENCE_SECONDS = 15.0  # a bind not sent for this long is refused, since the cluster has changed meanwhile
STEP_SECONDS = 5.0  # a step that takes longer fails, and so does the bind: the cluster has changed
END_PROBE_SECONDS = 1.0  # the bind waits no longer: then the operator has ended the probe
MARGIN_SECONDS = 1.0  # the server's write to etcd may outlast the time limit of the request by a moment

Answer = BindConfirmed | BindRefused
Outcome = Literal["bound", "elsewhere", "gone", "unbound", "unsent"]
_log = logging.getLogger(__name__)


class Binder(Struct, frozen=True, eq=False):
    """Sends binds; `annotations` returns those that a pod gets with its bind, by uid."""

    context: Context
    persistence: Persistence
    timeout_seconds: float  # for us and, as a query parameter, for the server
    annotations: Callable[[str], Mapping[str, str]]
    nominator: Nominator
    volume_steps: VolumeSteps

    async def bind(self, bind: commands.Bind) -> Answer:
        """Do the steps, then bind the pod; returns once it is known, however late, whether it is bound.

        The steps are undone if it is not.
        """
        done, problem = list[commands.BindStep](), ""
        for step in bind.before:
            problem = await self._do(bind, step)
            if problem:
                break
            done.append(step)
        answer = BindRefused(bind.uid, bind.node, problem) if problem else await self._bind(bind)
        if not isinstance(answer, BindConfirmed):
            for step in reversed(done):
                await self._undo(bind, step)
        return answer

    async def _bind(self, bind: commands.Bind) -> Answer:
        try:
            given_up = await self.persistence.attempt(
                lambda: self._post(bind), (api_errors.NotDoneError,), PATIENCE_SECONDS
            )
        except api_errors.UnsureError as error:
            _log.warning("bind uncertain, reading the pod: %s", error, extra=log_fields(bind))
            self.context.metrics.uncertain_answers.inc()
            # Not from when it was begun: a process that stood still has sent it only when it went on.
            return await self._settle(bind, error, elapsed() + self.timeout_seconds + MARGIN_SECONDS)
        except api_errors.ApiError as error:
            # A conflict may be our own bind, if a proxy has sent the request twice.
            return await self._settle(bind, error, elapsed())
        if given_up is None:
            return BindConfirmed(bind.uid, bind.node)
        if not self.persistence.may_write():
            return BindRefused(bind.uid, bind.node, f"not sent: {LEASE_LOST}")
        return self._refused(bind, given_up, "unsent")

    async def _post(self, bind: commands.Bind) -> None:
        body = binding(bind, self.annotations(bind.uid))
        # `timeout` ends the server's work on the request when we stop waiting for the answer.
        query = {"timeout": f"{self.timeout_seconds:g}s"}
        await self.context.client.send(
            "POST", pod_path(bind) + "/binding", body, query=query, seconds=self.timeout_seconds
        )

    async def _settle(self, bind: commands.Bind, cause: api_errors.ApiError, certain_after: float) -> Answer:
        """Read the pod until the result is known. No bind can be under way after `certain_after`."""
        backoff = Backoff(0.1, 5.0, self.context.rng)
        while True:
            read_at = elapsed()
            try:
                pod = decode_pod(await self.context.client.get(pod_path(bind)))
            except api_errors.MissingError:
                return self._refused(bind, cause, "gone")
            except (api_errors.ApiError, MalformedError) as error:
                # 64 binds in flight would repeat for each pod that the API server is away.
                _log.debug("cannot read the pod yet: %s", error, extra=log_fields(bind))
                await asyncio.sleep(backoff.wait())
                continue
            outcome = verdict(bind, pod, is_certain=read_at >= certain_after)
            if outcome == "bound":
                return BindConfirmed(bind.uid, bind.node)
            if outcome is not None:
                return self._refused(bind, cause, outcome)
            await asyncio.sleep(max(certain_after - elapsed(), 0.0) + 0.05)

    def _refused(self, bind: commands.Bind, cause: api_errors.ApiError, outcome: Outcome) -> BindRefused:
        self.context.metrics.bind_conflicts.labels(outcome).inc()
        _log.warning("bind refused (%s): %s", outcome, cause, extra=log_fields(bind))
        return BindRefused(bind.uid, bind.node, cause.reason)

    async def _do(self, bind: commands.Bind, step: commands.BindStep) -> str:
        match step:
            case commands.Renominate():
                problem = await self.nominator.write(bind, step.node, STEP_SECONDS)
                return f"not nominated before the bind: {problem}" if problem else ""
            case commands.EndProbe():
                await self._end_probe(step)
                return ""
            case _:
                return await self.volume_steps.do(bind, step)

    async def _undo(self, bind: commands.Bind, step: commands.BindStep) -> None:
        """A failure does no harm: room is held by the engine, and the status is for others to read."""
        if not isinstance(step, commands.Renominate):
            return
        problem = await self.nominator.write(bind, step.from_node, STEP_SECONDS)
        if problem:
            fields = {**log_fields(bind), "node": step.from_node}
            _log.warning("not nominated again after a failed bind: %s", problem, extra=fields)

    async def _end_probe(self, step: commands.EndProbe) -> None:
        """Delete a probe whose room the pod takes, with its own grace period. Not repeated.

        The operator ends such probes too, within a second. This second is saved here: a CPU-bound probe on a
        slow node delays the start of the pod as long as they share the node.
        """
        if not self.persistence.may_write():
            return  # nor is the bind sent
        path = f"/api/v1/namespaces/{step.namespace}/pods/{step.name}"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": step.uid}}
        fields = {"pod": f"{step.namespace}/{step.name}", "uid": step.uid}
        try:
            await self.context.client.send("DELETE", path, options, seconds=END_PROBE_SECONDS)
        except (api_errors.MissingError, api_errors.ConflictError):
            _log.debug("the probe has ended already", extra=fields)
        except api_errors.ApiError as error:
            _log.warning("probe not ended before a bind to its node: %s", error, extra=fields)
        else:
            _log.info("ended a probe whose room a pod takes", extra=fields)


def binding(bind: commands.Bind, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The Binding to create; the pod gets the annotations with it."""
    # The uid is a precondition: a new pod of the same name is not the one that was scheduled.
    metadata: dict[str, Any] = {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }


def verdict(bind: commands.Bind, pod: Pod, *, is_certain: bool) -> Outcome | None:
    """What the pod, as read, says about the bind; None: unbound, but our request may still be under way."""
    if pod.metadata.uid != bind.uid:
        return "gone"  # replaced by another pod of the same name
    if pod.spec.node_name:
        return "bound" if pod.spec.node_name == bind.node else "elsewhere"
    return "unbound" if is_certain else None


# -- volumes ----------------------------------------------------------------------------------------

WRITES_IN_FLIGHT = 16  # of all binds that wait for volumes: they must not delay other requests
WRITE_SECONDS = 5.0  # a write that takes longer fails, and so does the bind
BOUND_SECONDS = 600.0  # for the volume of one claim (kube-scheduler's bindTimeoutSeconds)
CHECK_SECONDS = 1.0  # how soon a wait ends when the pod is gone or the Lease is lost


@dataclass(eq=False)
class VolumeSteps:
    """Does the steps by which claims get volumes.

    `states`: the claims as watched. `pod_state` returns None once the pod of a uid is bound or gone.
    """

    context: Context
    persistence: Persistence
    states: ClaimStates
    pod_state: Callable[[str], object | None]

    def __post_init__(self) -> None:
        self._in_flight = asyncio.Semaphore(WRITES_IN_FLIGHT)

    async def do(self, bind: commands.Bind, step: commands.VolumeStep) -> str:
        """Do one step; returns why it is not done, or nothing."""
        match step:
            case commands.ReserveVolume():
                return await self._written(lambda: self._reserve(step))
            case commands.SelectNode():
                return await self._written(lambda: self._select(step))
            case commands.AwaitVolume():
                return await self._bound(bind, step)

    async def _written(self, write: Callable[[], Awaitable[None]]) -> str:
        try:
            async with self._in_flight:
                return await self.persistence.why_not(write, OUTDATED, WRITE_SECONDS)
        except MalformedError as malformed:
            return str(malformed)

    async def _reserve(self, step: commands.ReserveVolume) -> None:
        path = f"/api/v1/persistentvolumes/{step.volume}"
        body = await self.context.client.get(path)
        volume, version = volume_from(body), decode_head(body).metadata.resource_version
        key = f"{step.namespace}/{step.claim}"
        if volume.claim not in ("", key) or volume.claim_uid not in ("", step.claim_uid):
            message = f'persistentvolume "{step.volume}" is reserved for {volume.claim} meanwhile'
            raise api_errors.RejectedError("PATCH", message=message)
        if volume.claim_uid != step.claim_uid:
            await self._patch(path, reservation_patch(step, volume, version))

    async def _select(self, step: commands.SelectNode) -> None:
        path = f"/api/v1/namespaces/{step.namespace}/persistentvolumeclaims/{step.claim}"
        body = await self.context.client.get(path)
        claim, version = claim_from(body), decode_head(body).metadata.resource_version
        if claim.uid != step.claim_uid:
            raise api_errors.MissingError("PATCH", message=f'persistentvolumeclaim "{step.claim}" not found')
        if claim.volume or claim.selected_node == step.node:
            return  # it is bound, or is about to be
        if claim.selected_node:
            message = f'persistentvolumeclaim "{step.claim}" is provisioned for node {claim.selected_node}'
            raise api_errors.RejectedError("PATCH", message=message)
        metadata = {"resourceVersion": version, "annotations": {SELECTED_NODE: step.node}}
        await self._patch(path, {"metadata": metadata})

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await self.context.client.send("PATCH", path, body, content_type=MERGE_PATCH)

    async def _bound(self, bind: commands.Bind, step: commands.AwaitVolume) -> str:
        key, give_up_at = f"{step.namespace}/{step.claim}", elapsed() + BOUND_SECONDS
        was_selected = False
        while self.persistence.may_write():
            state = self.states.get(key)
            problem = _problem(state, step, was_selected=was_selected)
            if problem or state is None:
                return problem
            if state.volume:
                return ""
            if self.pod_state(bind.uid) is None:
                return "the pod is bound or gone"
            if elapsed() >= give_up_at:
                return f'persistentvolumeclaim "{step.claim}" is not bound after {BOUND_SECONDS:g} s'
            was_selected = was_selected or state.selected_node == step.node
            await self.states.changed(key, CHECK_SECONDS)
        return LEASE_LOST


def _problem(state: ClaimState | None, step: commands.AwaitVolume, *, was_selected: bool) -> str:
    """Why waiting helps no more; empty if it may. `was_selected`: the watch has shown our write."""
    if state is None or state.uid != step.claim_uid:
        return f'persistentvolumeclaim "{step.claim}" not found'
    if step.volume and state.volume not in ("", step.volume):
        return f'persistentvolumeclaim "{step.claim}" got another volume: "{state.volume}"'
    if was_selected and not state.volume and state.selected_node != step.node:
        return f'provisioning failed for PVC "{step.claim}"'  # the provisioner has taken the node back
    return ""


def reservation_patch(step: commands.ReserveVolume, volume: Volume, version: str) -> dict[str, Any]:
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
