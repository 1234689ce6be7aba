"""Advancing the runs of a NodeProbe: each run's next step, by the table of `decide.runs`, is carried out.

step        status, written first       then
Create      -                           create the pod
RecordPod   the pod's uid               -
End         the outcome                 an event, if the run failed by itself
Delete      -                           delete the pod
Finish      -                           the outcome into the NodeProfile; then count the run in the
                                        status and remove it
Wait        -                           sync again when it is over
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from eclectus.api import node_profile
from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Run
from eclectus.kubeclient.client import list_objects
from eclectus.kubeclient.errors import ApiError, MissingError, RejectedError
from eclectus_operator.control.context import (
    NotLeadingError,
    OperatorContext,
    Snapshot,
    delete_pod,
    record_event,
    write_status,
)
from eclectus_operator.decide import adoption, probe_status, runs, stages
from eclectus_operator.decide.runs import Create, Delete, End, Finish, RecordPod, Step, Wait
from eclectus_operator.decide.stages import StageSince
from eclectus_operator.objects import convert, events, pods
from eclectus_operator.objects.observed import Node, Pod, PodEvent

MAX_PASSES = 8  # more than a run has steps: ends the loop if the API server loses what was written
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


async def advance_runs(context: OperatorContext, snapshot: Snapshot, uid: str) -> None:
    """Carry out the next steps of a NodeProbe's runs until each of them waits. Raises ApiError.

    A run whose step fails is left for a later sync, and delays no other run; its error is raised at the end.
    """
    left: set[int] = set()  # numbers of the runs for a later sync: a step failed, or the pod is terminating
    failed: list[ApiError] = []
    for _ in range(MAX_PASSES):
        probe = snapshot.probes[uid]
        steps = [each for each in await _next_steps(context, snapshot, probe) if each[0].number not in left]
        for _, step in steps:
            if isinstance(step, Wait):
                snapshot.wake_by(step.until)
        if all(isinstance(step, Wait) for _, step in steps):
            break
        status = probe.status
        for run, step in steps:
            status = HANDLERS[type(step)].record(status, run, step)
        await write_status(context, snapshot, probe, status)
        for run, step in steps:
            try:
                await HANDLERS[type(step)].act(Action(context, snapshot, uid, run, step))
            except NotLeadingError:
                raise
            except ApiError as error:
                failed.append(error)
                left.add(run.number)
            if isinstance(step, Delete) and not step.at_once:
                left.add(run.number)
    if failed:
        raise failed[0]


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
        outcome = runs.refused(str(error), context.now()).outcome
        await write_status(context, snapshot, probe, probe_status.ended(probe.status, run, outcome))
        await record_event(context, events.run_failed(probe, run, outcome))
        return
    pod = convert.read(created, Pod)
    snapshot.pods[pod.metadata.name] = pod
    _log.info("created %s on node %s", pod.metadata.name, run.node)


async def _next_steps(
    context: OperatorContext, snapshot: Snapshot, probe: NodeProbe
) -> list[tuple[Run, Step]]:
    """The next step of each run."""
    now, deadlines, instance = context.now(), probe.spec.deadlines, context.settings.instance
    own = {pod.metadata.name: pod for pod in pods.of_probe(snapshot.pods.values(), probe)}
    intents = adoption.intents_of(probe, context.settings)
    found = adoption.join(intents, map(adoption.observed, own.values()), instance, now, 0.0)
    by_number = {run.number: run for run in probe.status.runs}
    is_active = not probe.spec.suspend and probe.metadata.uid not in snapshot.invalid
    steps: list[tuple[Run, Step]] = []
    for intent in found.lost:
        run = by_number[intent.probe.seq]
        is_wanted = is_active and probe.find_class(run.class_name) is not None
        steps.append((run, runs.without_pod(run, deadlines, now, is_wanted=is_wanted)))
    for taken in found.taken:
        run = by_number[taken.intent.probe.seq]
        steps.append((run, runs.name_taken(run, taken.reason, now)))
    for adopted in found.adopted:
        run, pod = by_number[adopted.intent.probe.seq], own[adopted.pod.name]
        stage = await _stage_of(context, pod, probe)
        step = runs.with_pod(
            run,
            pod,
            stage,
            deadlines,
            now,
            is_unit=_is_unit(probe, run),
            must_yield=pod.metadata.name in snapshot.yielding,
        )
        steps.append((run, step))
    return steps


async def _stage_of(context: OperatorContext, pod: Pod, probe: NodeProbe) -> StageSince:
    """The stage of a pod. Its events are read only when pulling or starting takes long."""
    stage = stages.current_stage(pod)
    if not stages.needs_events(stage, probe.spec.deadlines, context.now()):
        return stage
    path = f"/api/v1/namespaces/{context.settings.namespace}/events"
    query = {"fieldSelector": f"involvedObject.uid={pod.metadata.uid}"}
    try:
        found = await list_objects(context.api, path, query)
    except ApiError as error:
        _log.warning("the stage of %s is decided without its events: %s", pod.metadata.name, error)
        return stage
    return stages.current_stage(pod, [convert.read(each, PodEvent) for each in found])


def _is_unit(probe: NodeProbe, run: Run) -> bool:
    """Whether the run is one of the built-in benchmark."""
    work = probe.find_class(run.class_name)
    return work is not None and work.unit is not None


# The handlers of steps.


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


def _keep_status(status: NodeProbeStatus, run: Run, step: Any) -> NodeProbeStatus:
    return status


async def _do_nothing(action: Action) -> None: ...


@dataclass(frozen=True)
class Handler:
    """How a step is carried out: `record` changes the status, which is written before `act` is called."""

    record: Callable[[NodeProbeStatus, Run, Any], NodeProbeStatus] = _keep_status
    act: Callable[[Action], Awaitable[None]] = _do_nothing


HANDLERS: dict[type[Step], Handler] = {
    Create: Handler(act=_create),
    RecordPod: Handler(record=_record_pod),
    End: Handler(record=_record_end, act=_report_failure),
    Delete: Handler(act=_delete),
    Finish: Handler(act=_finish),
    Wait: Handler(),
}
