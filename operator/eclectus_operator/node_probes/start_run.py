"""Starting a new run: only where the limits allow it, the node may be probed and no real pod waits for room.

In this order: is any real pod waiting, draw a node, and the pod to copy if the class is measured by copies,
read the node, write the run into the status, create its pod. A node that may not be probed is excluded and
another is drawn, so the draw is uniform over those that may; while real pods wait, over those believed dead.
If the drawn node may be probed but lacks room now, or there is no pod to copy, no other is drawn: the run is
dropped.
"""

from eclectus.api.node_probe import NodeProbe
from eclectus.api.node_profile import DEAD
from eclectus.kube import objects as kube
from eclectus.kube.requests import FieldError
from eclectus.kubeclient.api_errors import MissingError
from eclectus.model.objects import Amounts
from eclectus_operator import convert, room
from eclectus_operator.cluster_nodes import read_node, read_profile, unbound_pods
from eclectus_operator.node_probes import dispatch, probe_status, recent_pods
from eclectus_operator.node_probes.advance_runs import create_pod
from eclectus_operator.node_probes.dispatch import Blocked, Target
from eclectus_operator.node_probes.probe_pods import notional_requests
from eclectus_operator.node_probes.snapshot import Snapshot
from eclectus_operator.observed import Node
from eclectus_operator.operator_context import OperatorContext

MAX_DRAWS = 20  # nodes read for one run: if none of so many may be probed, hardly any may


async def start_run(snapshot: Snapshot, probe: NodeProbe) -> None:
    """Start the run that is due, or let the Probing condition say why not. Raises ApiError."""
    context, now = snapshot.context, snapshot.now
    chosen = _find_limit(snapshot, probe) or await _draw(snapshot, probe, await _find_waiting(context))
    if isinstance(chosen, Target) and (recent := chosen.work.recent) is not None:
        chosen = await recent_pods.with_original(context, probe, chosen, recent)
    if isinstance(chosen, Target):
        chosen = await _find_shortage(context, probe, chosen) or chosen
    if isinstance(chosen, Blocked):
        await snapshot.write_status(probe, probe_status.probing(probe, chosen, now))
        return
    status = probe_status.probing(probe, None, now)
    status, run = probe_status.begun(status, chosen, _wanted(context, probe, chosen), now)
    await create_pod(snapshot, await snapshot.write_status(probe, status), run)


def _find_limit(snapshot: Snapshot, probe: NodeProbe) -> Blocked | None:
    if len(probe.status.runs) >= probe.spec.limits.running:
        return Blocked("AtLimit", "as many probes run as limits.running allows")
    if len(snapshot.runs) >= snapshot.context.settings.most_running:
        message = "as many probes run as the operator allows of all NodeProbes together"
        return Blocked("OperatorAtLimit", message)
    return None


async def _draw(snapshot: Snapshot, probe: NodeProbe, pods_wait: Blocked | None) -> Target | Blocked:
    """A node that may be probed now, and with which class; while real pods wait (`pods_wait`), a dead one.

    No scheduler sends them to a dead node, and they need it back most when they wait.
    """
    context = snapshot.context
    names = await context.pool.names(probe.spec.node_selector)
    if not names:
        return Blocked("NoNode", "no node matches, or all that do are cordoned or excluded")
    busy, last_reason = {run.node for run in snapshot.runs}, ""
    candidates = [name for name in names if name not in busy]
    for _ in range(MAX_DRAWS):
        target = dispatch.draw(probe, candidates, context.now(), context.rng)
        if target is None:
            break
        reason = await _why_unfit(context, probe, target.node, only_dead=pods_wait is not None)
        if not reason:
            return target
        last_reason = f"; {target.node}: {reason}"
        candidates.remove(target.node)
    return pods_wait or Blocked("NoNodeNow", f"no node that matches may be probed now{last_reason}")


async def _why_unfit(context: OperatorContext, probe: NodeProbe, name: str, *, only_dead: bool) -> str:
    """Why a node may not be probed, as the API server says now; empty if it may."""
    spec, now = probe.spec, context.now()
    try:
        node = convert.read_authored(await context.api.send("GET", f"/api/v1/nodes/{name}"), Node)
    except MissingError:
        return "it is gone"
    if reason := node.why_unfit(spec.node_selector, spec.tolerations):
        return reason
    profile = await read_profile(context.api, name)
    if only_dead and profile.status.state != DEAD:
        return "real pods wait, and might go there"
    is_resting = dispatch.is_resting(profile, spec.limits.node_interval_seconds, now)
    return "it was probed within nodeIntervalSeconds" if is_resting else ""


async def _find_waiting(context: OperatorContext) -> Blocked | None:
    """That a real pod waits for room that a node could give. Lists no further than to the first one."""
    async for pod in unbound_pods(context.api):
        waits = room.blocks_probes(pod, context.now())
        if waits and room.could_ever_fit(pod, await context.pool.capacities()):
            name = kube.full_name(pod.metadata.namespace, pod.metadata.name)
            return Blocked("RealPodsWait", f"real pods wait for room, such as {name}")
    return None


def _wanted(context: OperatorContext, probe: NodeProbe, target: Target) -> Amounts:
    return notional_requests(probe, target.work, context.settings, target.original)


async def _find_shortage(context: OperatorContext, probe: NodeProbe, target: Target) -> Blocked | None:
    """What on the drawn node forbids the probe. No other is drawn: that would favour idle nodes."""
    name = target.node
    try:
        there = await read_node(context.api, name)
        wanted = dict(_wanted(context, probe, target))
        lacking = room.lacking(wanted, room.left(there.node, there.pods))
    except MissingError:
        return Blocked("NoNodeNow", f"the node that was drawn, {name}, is gone")
    except FieldError as error:
        return Blocked("RoomUnknown", f"the room of the node that was drawn, {name}, is not known: {error}")
    if there.starting is not None:
        pod = kube.full_name(there.starting.metadata.namespace, there.starting.metadata.name)
        return Blocked("RealPodStarts", f"a real pod is about to start on the node that was drawn: {pod}")
    if lacking:
        message = f"the node that was drawn, {name}, has not enough left of {', '.join(lacking)}"
        return Blocked("NoRoom", message)
    return None
