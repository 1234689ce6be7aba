"""Advancing the runs of a NodeProbe: `run_steps` gives each run's next step, and it is carried out here.

step        status, written first       then
Create      -                           create the pod
RecordPod   the pod's uid               -
End         the outcome                 an event, if the run failed by itself
Delete      -                           delete the pod; an event, if its node had not done so in time
Finish      -                           the outcome into the NodeProfile; then count the run in the
                                        status and remove it
Wait        -                           nothing; the sync after it finds it over
"""

import logging
from functools import reduce

from eclectus.api import node_profile
from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Outcome, Run
from eclectus.api.node_profile import NodeProfile
from eclectus.kubeclient.api_errors import ApiError, MissingError, RejectedError
from eclectus.kubeclient.client import list_objects
from eclectus_operator import convert
from eclectus_operator.metrics import YIELDED
from eclectus_operator.node_probes import probe_pods, probe_status, recent_pods, run_steps
from eclectus_operator.node_probes.recent_pods import OriginalError
from eclectus_operator.node_probes.run_steps import Delete, Step, Wait
from eclectus_operator.node_probes.snapshot import Snapshot
from eclectus_operator.observed import Node, Pod, PodEvent
from eclectus_operator.operator_context import NotLeadingError
from eclectus_operator.pod_stages import FORCED, StageSince, current_stage, forced_note, needs_events

MAX_PASSES = 8  # more than a run has steps: ends the loop if the API server loses what was written
_log = logging.getLogger(__name__)


async def advance_runs(snapshot: Snapshot, uid: str) -> None:
    """Carry out the next steps of a NodeProbe's runs until each of them waits. Raises ApiError.

    A run whose step fails is left for a later sync, and delays no other run; its error is raised at the end.
    """
    left: set[int] = set()  # numbers of the runs for a later sync: a step failed, or the pod is terminating
    failed: list[ApiError] = []
    for _ in range(MAX_PASSES):
        steps = await _next_steps(snapshot, snapshot.probes[uid])
        steps = [(run, step) for run, step in steps if run.number not in left]
        for _, step in steps:
            if isinstance(step, Wait):
                snapshot.wake_by(step.until)
        if all(isinstance(step, Wait) for _, step in steps):
            break
        probe = snapshot.probes[uid]
        await snapshot.write_status(probe, reduce(_recorded, steps, probe.status))
        for run, step in steps:
            try:
                await _act(snapshot, snapshot.probes[uid], run, step)
            except NotLeadingError:
                raise
            except ApiError as error:
                failed.append(error)
                left.add(run.number)
            if isinstance(step, Delete) and not step.at_once:
                left.add(run.number)
    if failed:
        raise failed[0]


async def create_pod(snapshot: Snapshot, probe: NodeProbe, run: Run) -> None:
    """Create the pod of a run that the status records already. Raises ApiError.

    ConflictError means that a pod of that name exists; the next sync decides whether it is the run's own.
    """
    context, work = snapshot.context, probe.find_class(run.class_name)
    if work is None:
        raise ValueError(f"NodeProbe {probe.metadata.name} has no class {run.class_name}")
    try:
        original = None if work.recent is None else await recent_pods.read_original(context, probe, run)
        body = probe_pods.pod(probe, run, work, context.settings, original)
        created = await context.api.send("POST", context.pods_path, body)
    except (RejectedError, OriginalError) as error:
        end = run_steps.refused(str(error), snapshot.now)
        await snapshot.write_status(probe, _recorded(probe.status, (run, end)))
        await _report_failure(snapshot, probe, run, end.outcome)
        return
    pod = convert.read_authored(created, Pod)
    snapshot.pods[pod.metadata.name] = pod
    _log.info("created %s on node %s", pod.metadata.name, run.node)


def _recorded(status: NodeProbeStatus, due: tuple[Run, Step]) -> NodeProbeStatus:
    """The status with what is written of a step before it is carried out."""
    run, step = due
    match step:
        case run_steps.RecordPod(uid):
            return probe_status.changed(status, run, pod_uid=uid)
        case run_steps.End(outcome):
            _log.info("run %d on node %s ended: %s %s", run.number, run.node, outcome.reason, outcome.message)
            return probe_status.changed(status, run, outcome=outcome)
    return status


async def _act(snapshot: Snapshot, probe: NodeProbe, run: Run, step: Step) -> None:
    """Carry out a step whose record is written. Raises ApiError."""
    match step:
        case run_steps.Create():
            await create_pod(snapshot, probe, run)
        case run_steps.End(outcome):
            if not outcome.succeeded and outcome.reason != YIELDED:
                await _report_failure(snapshot, probe, run, outcome)
        case Delete(uid, at_once, late):
            name = probe_pods.identity(probe, run, snapshot.context.settings.instance).name
            await snapshot.delete_pod(name, uid, at_once=at_once)
            if late:
                await snapshot.context.record(probe.metadata, "Reconcile", FORCED, forced_note(late))
        case run_steps.Finish():
            # The profile is written first: once the run is removed from the status, nothing would write it.
            await _write_profile(snapshot, probe, run)
            await snapshot.write_status(probe, probe_status.finished(probe.status, run))
            if run.outcome is not None:
                snapshot.context.metrics.probe_ended(run.outcome)


async def _report_failure(snapshot: Snapshot, probe: NodeProbe, run: Run, outcome: Outcome) -> None:
    """Write the event of a run that failed: at most one for each run."""
    note = f"on node {run.node}, class {run.class_name}, {outcome.stage}: {outcome.message}"
    await snapshot.context.record(probe.metadata, "ProbeFailed", outcome.reason, note)


async def _write_profile(snapshot: Snapshot, probe: NodeProbe, run: Run) -> None:
    """Write the outcome into the node's profile, which is created if the node exists. Raises ApiError.

    A profile that may not be written does not keep the run.
    """
    api, path = snapshot.context.api, f"{NODE_PROFILES_PATH}/{run.node}"
    try:
        try:
            found = await api.send("GET", path)
        except MissingError:
            node = convert.read_authored(await api.send("GET", f"/api/v1/nodes/{run.node}"), Node)
            body = node_profile.new_object(node.metadata.name, node.metadata.uid)
            found = await api.send("POST", NODE_PROFILES_PATH, body)
        version = convert.read(found, NodeProfile).metadata.resource_version
        patch = probe_status.profile_patch(version, probe.metadata.name, run)
        await api.send("PATCH", f"{path}/status", patch)
    except MissingError:
        _log.info("node %s and its profile are gone", run.node)
    except RejectedError as error:
        _log.warning("the profile of node %s was not written: %s", run.node, error)


async def _next_steps(snapshot: Snapshot, probe: NodeProbe) -> list[tuple[Run, Step]]:
    now, deadlines, instance = snapshot.now, probe.spec.deadlines, snapshot.context.settings.instance
    own = probe_pods.of_probe(snapshot.pods.values(), probe)
    found = run_steps.join(probe_pods.recorded(probe, instance), own, instance, now, 0.0)
    by_number = {run.number: run for run in probe.status.runs}
    is_active = not probe.spec.suspend and probe.metadata.uid not in snapshot.invalid
    steps: list[tuple[Run, Step]] = []
    step: Step
    for one in found.lost:
        run = by_number[one.seq]
        is_wanted = is_active and probe.find_class(run.class_name) is not None
        has_yielded = one.name in snapshot.yielding
        step = run_steps.without_pod(run, deadlines, now, is_wanted=is_wanted, has_yielded=has_yielded)
        steps.append((run, step))
    for one, reason in found.taken:
        steps.append((by_number[one.seq], run_steps.name_taken(by_number[one.seq], reason, now)))
    for one, pod in found.adopted:
        run, stage = by_number[one.seq], await _stage_of(snapshot, pod, probe)
        work = probe.find_class(run.class_name)
        step = run_steps.with_pod(
            run,
            pod,
            stage,
            deadlines,
            now,
            is_unit=work is not None and work.unit is not None,
            must_yield=pod.metadata.name in snapshot.yielding,
        )
        steps.append((run, step))
    return steps


async def _stage_of(snapshot: Snapshot, pod: Pod, probe: NodeProbe) -> StageSince:
    """The stage of a pod. Its events are read only when pulling or starting takes long."""
    stage, context = current_stage(pod), snapshot.context
    if not needs_events(stage, probe.spec.deadlines, snapshot.now):
        return stage
    path = f"/api/v1/namespaces/{context.settings.namespace}/events"
    query = {"fieldSelector": f"involvedObject.uid={pod.metadata.uid}"}
    try:
        found = await list_objects(context.api, path, query)
    except ApiError as error:
        _log.warning("the stage of %s is decided without its events: %s", pod.metadata.name, error)
        return stage
    return current_stage(pod, [convert.read(each, PodEvent) for each in found])
