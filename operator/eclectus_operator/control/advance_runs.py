"""Advancing the runs of a NodeProbe.

The table of `decide.runs` gives each run's next step; the table of `step_handlers` carries it out.
"""

from __future__ import annotations

import logging

from eclectus.api.node_probe import NodeProbe, Run
from eclectus.kubeclient.errors import ApiError
from eclectus.kubeclient.listing import list_objects
from eclectus_operator.control.context import NotLeadingError, OperatorContext, Snapshot, write_status
from eclectus_operator.control.step_handlers import HANDLERS, Action
from eclectus_operator.decide import adoption, runs, stages
from eclectus_operator.decide.runs import Delete, Step, Wait
from eclectus_operator.decide.stages import StageSince
from eclectus_operator.objects import convert, pods
from eclectus_operator.objects.observed import Pod, PodEvent

MAX_PASSES = 8  # more than a run has steps: ends the loop if the API server loses what was written
_log = logging.getLogger(__name__)
Steps = list[tuple[Run, Step]]


async def advance_runs(context: OperatorContext, snapshot: Snapshot, uid: str) -> None:
    """Carry out the next steps of a NodeProbe's runs until each of them waits. Raises ApiError.

    A run whose step fails is left for a later sync, and delays no other run; its error is raised at the end.
    """
    left: set[int] = set()  # numbers of the runs for a later sync: a step failed, or the pod is terminating
    failed: list[ApiError] = []
    for _ in range(MAX_PASSES):
        steps = await _next_steps(context, snapshot, snapshot.probes[uid])
        steps = [(run, step) for run, step in steps if run.number not in left]
        for _, step in steps:
            if isinstance(step, Wait):
                snapshot.wake_by(step.until)
        if all(isinstance(step, Wait) for _, step in steps):
            break
        await _record(context, snapshot, uid, steps)
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


async def _record(context: OperatorContext, snapshot: Snapshot, uid: str, steps: Steps) -> None:
    """Write what the steps change in the status, in one request."""
    probe = snapshot.probes[uid]
    status = probe.status
    for run, step in steps:
        status = HANDLERS[type(step)].record(status, run, step)
    await write_status(context, snapshot, probe, status)


async def _next_steps(context: OperatorContext, snapshot: Snapshot, probe: NodeProbe) -> Steps:
    """The next step of each run."""
    now, deadlines, instance = context.now(), probe.spec.deadlines, context.settings.instance
    own = {pod.metadata.name: pod for pod in pods.of_probe(snapshot.pods.values(), probe)}
    intents = adoption.intents_of(probe, context.settings)
    found = adoption.join(intents, map(adoption.observed, own.values()), instance, now, 0.0)
    by_number = {run.number: run for run in probe.status.runs}
    is_active = not probe.spec.suspend and probe.metadata.uid not in snapshot.invalid
    steps: Steps = []
    step: Step
    for intent in found.lost:
        run = by_number[intent.probe.seq]
        is_wanted = is_active and probe.find_class(run.class_name) is not None
        has_yielded = intent.probe.name in snapshot.yielding
        step = runs.without_pod(run, deadlines, now, is_wanted=is_wanted, has_yielded=has_yielded)
        steps.append((run, step))
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
