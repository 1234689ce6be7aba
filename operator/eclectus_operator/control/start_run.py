"""Beginning a new run: only where the limits allow it, the node may be probed and no real pod waits.

The order is: ask whether pods wait, draw a node, ask about it, write the run down, create its pod. A node
that may not be probed is put aside and another drawn, so the draw is uniform over those that may: while pods
wait, over the dead. One that may, but is taken just now, is not: the probe is dropped.
"""

from __future__ import annotations

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_probe import NodeProbe
from eclectus.api.node_profile import NodeProfile
from eclectus.kube.requests import FieldError
from eclectus_operator.api import MissingError, listed
from eclectus_operator.control import node_pods
from eclectus_operator.control.advance_runs import create
from eclectus_operator.control.context import Means, Scene, write
from eclectus_operator.decide import dispatch, probe_status, waiting
from eclectus_operator.decide.dispatch import Cell, Held
from eclectus_operator.decide.room import lacking, left
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import Node, Pod
from eclectus_operator.objects.pods import stands_for

TRIES = 20  # nodes asked about for one probe: where none of so many may be probed, hardly any may


async def begin(means: Means, scene: Scene, probe: NodeProbe) -> None:
    """Begin one run of a NodeProbe now that it is due, or say in its status why not. Raises ApiError."""
    held = _at_limit(means, scene, probe)
    chosen = held or await _drawn(means, scene, probe, await _crowded(means))
    if isinstance(chosen, Cell):
        chosen = await _occupied(means, probe, chosen) or chosen
    now = means.now()
    if isinstance(chosen, Held):
        await write(means, scene, probe, probe_status.probing(probe, probe.status, chosen, now))
        return
    status = probe_status.probing(probe, probe.status, None, now)
    status, run = probe_status.begun(status, chosen.node, chosen.work.name, now)
    written = await write(means, scene, probe, status)
    await create(means, scene, written, run)


def _at_limit(means: Means, scene: Scene, probe: NodeProbe) -> Held | None:
    if len(probe.status.runs) >= probe.spec.limits.running:
        return Held("AtLimit", "as many probes run as limits.running allows")
    if scene.runs_under_way() >= means.settings.most_running:
        return Held("OperatorAtLimit", "as many probes run as the operator allows of all NodeProbes together")
    return None


async def _drawn(means: Means, scene: Scene, probe: NodeProbe, crowded: Held | None) -> Cell | Held:
    """A node that may be probed now, and with which work; while real pods wait (`crowded`), a dead one.

    To a dead node none of them would go, and it is missed most when they wait.
    """
    names = await means.pool.names(probe.spec.node_selector)
    if not names:
        return Held("NoNode", "no node matches, or all that do are cordoned or excluded")
    busy, why = scene.busy_nodes(), ""
    left = [name for name in names if name not in busy]
    for _ in range(TRIES):
        cell = dispatch.cell(probe, left, means.now(), means.rng)
        if cell is None:
            break
        unfit = await _unfit(means, probe, cell.node, is_crowded=crowded is not None)
        if not unfit:
            return cell
        why = f"; {cell.node}: {unfit}"
        left.remove(cell.node)
    return crowded or Held("NoNodeNow", f"no node that matches may be probed now{why}")


async def _unfit(means: Means, probe: NodeProbe, name: str, *, is_crowded: bool) -> str:
    """Why a node may not be probed, by the API server's own word; empty if it may."""
    spec, now = probe.spec, means.now()
    try:
        node = convert.read(await means.api.send("GET", f"/api/v1/nodes/{name}"), Node)
    except MissingError:
        return "it is gone"
    if unfit := node.unfit(spec.node_selector, spec.tolerations):
        return unfit
    try:
        profile = convert.read(await means.api.send("GET", f"{NODE_PROFILES_PATH}/{name}"), NodeProfile)
    except MissingError:
        profile = NodeProfile()
    if is_crowded and profile.status.state != "Dead":
        return "real pods wait, and might go there"
    resting = dispatch.rests(profile, spec.limits.node_interval_seconds, now)
    return "it was probed within nodeIntervalSeconds" if resting else ""


async def _crowded(means: Means) -> Held | None:
    found = await listed(means.api, waiting.PODS, waiting.pending())
    pod = waiting.first_waiting(convert.read(each, Pod) for each in found)
    return Held("RealPodsWait", f"real pods wait for room, such as {_named(pod)}") if pod else None


async def _occupied(means: Means, probe: NodeProbe, cell: Cell) -> Held | None:
    """What on the node that was drawn is against the probe: it is dropped, or idle nodes got more."""
    try:
        there = await node_pods.on(means, cell.node)
        short = lacking(stands_for(probe, cell.work, means.settings), left(there.node, there.pods))
    except MissingError:
        return Held("NoNodeNow", f"the node that was drawn, {cell.node}, is gone")
    except FieldError as error:
        return Held("RoomUnknown", f"the room of the node that was drawn, {cell.node}, is not known: {error}")
    if there.starting is not None:
        found = _named(there.starting)
        return Held("RealPodStarts", f"a real pod is about to start on the node that was drawn: {found}")
    if short:
        return Held(
            "NoRoom", f"the node that was drawn, {cell.node}, has not enough left of {', '.join(short)}"
        )
    return None


def _named(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
