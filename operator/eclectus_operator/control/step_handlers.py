"""How each step of a run is carried out.

step        status, written first       then
Create      -                           create the pod
RecordPod   the pod's uid               -
End         the outcome                 an event, if the run failed by itself
Delete      -                           delete the pod
Finish      -                           the outcome into the NodeProfile; then count the run in the
                                        status and remove it
Wait        -                           nothing; the sync after it finds it over
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from eclectus.api import node_profile
from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Run
from eclectus.kubeclient.errors import MissingError, RejectedError
from eclectus_operator.control.context import (
    OperatorContext,
    Snapshot,
    delete_pod,
    record_event,
    write_status,
)
from eclectus_operator.decide import probe_status, runs, stages
from eclectus_operator.decide.runs import Create, Delete, End, Finish, RecordPod, Step, Wait
from eclectus_operator.objects import convert, events, pods
from eclectus_operator.objects.observed import Node, Pod

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Action:
    """A step to carry out for a run of the NodeProbe with this uid."""

    context: OperatorContext
    snapshot: Snapshot
    uid: str
    run: Run
    step: Any

    @property
    def probe(self) -> NodeProbe:
        """The NodeProbe as last written."""
        return self.snapshot.probes[self.uid]


def _keep_status(status: NodeProbeStatus, run: Run, step: Any) -> NodeProbeStatus:
    return status


async def _do_nothing(action: Action) -> None: ...


@dataclass(frozen=True)
class Handler:
    """How a step is carried out: `record` changes the status, which is written before `act` is called."""

    record: Callable[[NodeProbeStatus, Run, Any], NodeProbeStatus] = _keep_status
    act: Callable[[Action], Awaitable[None]] = _do_nothing


async def create_pod(context: OperatorContext, snapshot: Snapshot, probe: NodeProbe, run: Run) -> None:
    """Create the pod of a run that the status records already. Raises ApiError.

    ConflictError means that a pod of that name exists; the next sync decides whether it is the run's own.
    """
    work = probe.find_class(run.class_name)
    if work is None:
        raise ValueError(f"NodeProbe {probe.metadata.name} has no class {run.class_name}")
    body = pods.pod(probe, run, work, context.settings)
    try:
        created = await context.api.send("POST", context.pods_path, body)
    except RejectedError as error:
        end = runs.refused(str(error), context.now())
        await write_status(context, snapshot, probe, _record_end(probe.status, run, end))
        await record_event(context, events.run_failed(probe, run, end.outcome))
        return
    pod = convert.read(created, Pod)
    snapshot.pods[pod.metadata.name] = pod
    _log.info("created %s on node %s", pod.metadata.name, run.node)


def _record_pod(status: NodeProbeStatus, run: Run, step: RecordPod) -> NodeProbeStatus:
    return probe_status.pod_seen(status, run, step.uid)


def _record_end(status: NodeProbeStatus, run: Run, step: End) -> NodeProbeStatus:
    outcome = step.outcome
    _log.info("run %d on node %s ended: %s %s", run.number, run.node, outcome.reason, outcome.message)
    return probe_status.ended(status, run, outcome)


async def _create(action: Action) -> None:
    await create_pod(action.context, action.snapshot, action.probe, action.run)


async def _report_failure(action: Action) -> None:
    outcome = action.step.outcome
    if not outcome.succeeded and outcome.reason != stages.YIELDED:
        await record_event(action.context, events.run_failed(action.probe, action.run, outcome))


async def _delete(action: Action) -> None:
    name = pods.identity(action.probe, action.run, action.context.settings.instance).name
    step = action.step
    await delete_pod(action.context, action.snapshot, name, step.uid, at_once=step.at_once)


async def _finish(action: Action) -> None:
    """The profile is written first: once the run is removed from the status, nothing would write it."""
    context, probe, run = action.context, action.probe, action.run
    await _write_profile(context, probe, run)
    await write_status(context, action.snapshot, probe, probe_status.finished(probe.status, run))
    if run.outcome is not None:
        context.metrics.ended(run.outcome)


async def _write_profile(context: OperatorContext, probe: NodeProbe, run: Run) -> None:
    """Write the outcome into the node's profile, which is created if the node exists. Raises ApiError.

    A profile that may not be written does not keep the run.
    """
    patch = probe_status.profile_patch(probe.metadata.name, run)
    path = f"{NODE_PROFILES_PATH}/{run.node}/status"
    try:
        try:
            await context.api.send("PATCH", path, patch)
        except MissingError:
            node = convert.read(await context.api.send("GET", f"/api/v1/nodes/{run.node}"), Node)
            body = node_profile.new_object(node.metadata.name, node.metadata.uid)
            await context.api.send("POST", NODE_PROFILES_PATH, body)
            await context.api.send("PATCH", path, patch)
    except MissingError:
        _log.info("node %s and its profile are gone", run.node)
    except RejectedError as error:
        _log.warning("the profile of node %s was not written: %s", run.node, error)


HANDLERS: dict[type[Step], Handler] = {
    Create: Handler(act=_create),
    RecordPod: Handler(record=_record_pod),
    End: Handler(record=_record_end, act=_report_failure),
    Delete: Handler(act=_delete),
    Finish: Handler(act=_finish),
    Wait: Handler(),
}
