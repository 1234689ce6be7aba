"""Taking the steps of a NodeProbe's runs: what is written down is written first, and then done."""

from __future__ import annotations

import logging
from typing import Any

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Run
from eclectus_operator.api import ApiError, MissingError, NotLeadingError, RefusedError, listed
from eclectus_operator.control.context import Means, Scene, intents, observed, pods_of, write
from eclectus_operator.decide import adoption, probe_status, runs, stages
from eclectus_operator.decide.runs import Create, Delete, End, Forget, Note, Step, Wait
from eclectus_operator.decide.stages import Sight, Stage
from eclectus_operator.objects import convert, events, pods
from eclectus_operator.objects.observed import Node, Pod, PodEvent

PASSES = 8  # more than a run has steps: a server that forgets what it is told is not told for ever
_log = logging.getLogger(__name__)
Steps = list[tuple[Run, Step]]


async def settle(means: Means, scene: Scene, uid: str) -> None:
    """Take the next steps of a NodeProbe's runs, until there is nothing to do but wait. Raises ApiError.

    A run whose step fails is left for a later look, and keeps no other run back.
    """
    left: set[int] = set()  # runs for a later look: of these a step failed, or their pods were told to go
    failed: list[ApiError] = []
    for _ in range(PASSES):
        probe = scene.probes[uid]
        steps = [(run, step) for run, step in await _steps(means, scene, probe) if run.number not in left]
        if all(isinstance(step, Wait) for _, step in steps):
            break
        await write(means, scene, probe, _noted(probe.status, steps))
        for run, step in steps:
            try:
                await _act(means, scene, uid, run, step)
            except NotLeadingError:
                raise
            except ApiError as error:
                failed.append(error)
                left.add(run.number)
            if isinstance(step, Delete) and not step.at_once:
                left.add(run.number)
    for _, step in steps:
        if isinstance(step, Wait):
            scene.wake_by(step.until)
    if failed:
        raise failed[0]


async def _steps(means: Means, scene: Scene, probe: NodeProbe) -> Steps:
    """The next step of each run, by the tables."""
    now, deadlines = means.now(), probe.spec.deadlines
    mine = {pod.metadata.name: pod for pod in pods_of(scene, probe)}
    found = adoption.join(
        intents(probe, means.settings), map(observed, mine.values()), means.settings.instance, now, 0.0
    )
    by_number = {run.number: run for run in probe.status.runs}
    steps: Steps = []
    for lost in found.lost:
        run = by_number[lost.probe.seq]
        wanted = probe.find_class(run.class_name) is not None and not probe.spec.suspend
        wanted = wanted and probe.metadata.uid not in scene.invalid
        steps.append((run, runs.without_pod(run, deadlines, now, wanted=wanted)))
    for taken in found.taken:
        run = by_number[taken.intent.probe.seq]
        steps.append((run, runs.taken(run, taken.reason, now)))
    for adopted in found.adopted:
        run, pod = by_number[adopted.intent.probe.seq], mine[adopted.pod.name]
        work = probe.find_class(run.class_name)
        measured = work is not None and work.unit is not None
        seen = await _sight(means, pod, probe)
        hinders = pod.metadata.name in scene.in_the_way
        steps.append((run, runs.with_pod(run, pod, seen, deadlines, now, measured=measured, hinders=hinders)))
    return steps


async def _sight(means: Means, pod: Pod, probe: NodeProbe) -> Sight:
    """The stage of a pod; its events are asked for only when pulling or starting takes long."""
    seen, deadlines = stages.sight(pod), probe.spec.deadlines
    soonest = min(deadlines.pulling_seconds, deadlines.starting_seconds)
    if seen.stage not in (Stage.PULLING, Stage.STARTING) or means.now() - seen.since < soonest:
        return seen
    path = f"/api/v1/namespaces/{means.settings.namespace}/events"
    try:
        found = await listed(means.api, path, {"fieldSelector": f"involvedObject.uid={pod.metadata.uid}"})
    except ApiError as error:
        _log.warning("judging %s without its events: %s", pod.metadata.name, error)
        return seen
    return stages.sight(pod, [convert.read(each, PodEvent) for each in found])


def _noted(status: NodeProbeStatus, steps: Steps) -> NodeProbeStatus:
    """The status after the steps that are a matter of writing down."""
    for run, step in steps:
        match step:
            case Note(uid):
                status = probe_status.noted(status, run, uid)
            case End(outcome):
                status = probe_status.ended(status, run, outcome)
                _log.info(
                    "run %d on node %s ended: %s %s", run.number, run.node, outcome.reason, outcome.message
                )
    return status


async def _act(means: Means, scene: Scene, uid: str, run: Run, step: Step) -> None:
    """What a step does beyond what `_noted` has written down. Raises ApiError."""
    probe = scene.probes[uid]
    match step:
        case Create():
            await create(means, scene, probe, run)
        case Forget():  # the profile first: what is forgotten nobody tells it any more
            await _tell_profile(means, probe, run)
            await write(means, scene, probe, probe_status.forgotten(probe.status, run))
            if run.outcome is not None:
                means.metrics.ended(run.outcome)
        case Delete(pod_uid, at_once):
            name = pods.identity(probe, run, means.settings.instance).name
            await delete(means, scene, name, pod_uid, at_once)
        case End(outcome) if not outcome.succeeded and outcome.reason != stages.MADE_WAY:
            await announce(means, events.run_failed(probe, run, outcome))


async def create(means: Means, scene: Scene, probe: NodeProbe, run: Run) -> None:
    """Create the pod of a run, which is written down already. Raises ApiError.

    A pod of the name that is there by then is a ConflictError, and the next look's to judge.
    """
    work = probe.find_class(run.class_name)
    if work is None:
        raise ValueError(f"NodeProbe {probe.metadata.name} has no class {run.class_name}")
    try:
        made = await means.api.send("POST", means.pods_path, pods.pod(probe, run, work, means.settings))
    except RefusedError as error:
        end = runs.refused(str(error), means.now())
        await write(means, scene, probe, _noted(probe.status, [(run, end)]))
        await announce(means, events.run_failed(probe, run, end.outcome))
        return
    pod = convert.read(made, Pod)
    scene.pods[pod.metadata.name] = pod
    _log.info("created %s on node %s", pod.metadata.name, run.node)


async def delete(means: Means, scene: Scene, name: str, uid: str, at_once: bool) -> None:
    """Delete a pod, that one and no namesake. It is no error when it is gone. Raises ApiError."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    grace = {"gracePeriodSeconds": 0} if at_once else {}
    try:
        await means.api.send("DELETE", f"{means.pods_path}/{name}", {**body, **grace})
    except MissingError:
        at_once = True
    if at_once:
        scene.pods.pop(name, None)
    _log.info("deleted %s", name)


async def announce(means: Means, event: dict[str, Any]) -> None:
    """Write an event; one that cannot be written is logged and lost, like any other event."""
    stamped = events.stamped(event, means.settings.instance, means.now())
    try:
        await means.api.send("POST", events.PATH, stamped)
    except ApiError as error:
        _log.warning("event not written: %s", error)


async def _tell_profile(means: Means, probe: NodeProbe, run: Run) -> None:
    """Write the outcome into the profile of the node, if there is one. Raises ApiError.

    A profile that must not be written is no reason to keep a run for ever.
    """
    patch = probe_status.profile_patch(probe.metadata.name, run)
    path = f"{NODE_PROFILES_PATH}/{run.node}/status"
    try:
        try:
            await means.api.send("PATCH", path, patch)
        except MissingError:
            node = convert.read(await means.api.send("GET", f"/api/v1/nodes/{run.node}"), Node)
            await means.api.send("POST", NODE_PROFILES_PATH, probe_status.new_profile(node))
            await means.api.send("PATCH", path, patch)
    except MissingError:
        _log.info("node %s is gone, and its profile with it", run.node)
    except RefusedError as error:
        _log.warning("the profile of node %s is not told: %s", run.node, error)
