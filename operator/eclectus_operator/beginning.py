"""Beginning a new run: only where the limits allow it, the node may be probed and no real pod waits.

What watches have told chooses the node; then the API server is asked again about all that matters, because a
watch may be late. The order is: look, write the run down, create its pod.
"""

from __future__ import annotations

from . import dispatch, objects, report, waiting
from .api import MissingError, listed
from .dispatch import Cell, Held
from .naming import RUN
from .objects import NodeProbe
from .observed import Node, Pod
from .scene import Means, Scene, write
from .settling import create

_REAL = f"!{RUN}"  # label selector of pods that are no probes


async def begin(means: Means, scene: Scene, probe: NodeProbe) -> None:
    """Begin one run of a NodeProbe now that it is due, or say in its status why not. Raises ApiError."""
    chosen = _allowed(means, scene, probe)
    if isinstance(chosen, Cell):
        chosen = await _hindrance(means, probe, chosen.node.metadata.name) or chosen
    now = means.now()
    if isinstance(chosen, Held):
        await write(means, scene, probe, report.probing(probe, probe.status, chosen, now))
        return
    status = report.probing(probe, probe.status, None, now)
    status, run = report.begun(status, chosen.node.metadata.name, chosen.work.name, now)
    written = await write(means, scene, probe, status)
    await create(means, scene, written, run)


def _allowed(means: Means, scene: Scene, probe: NodeProbe) -> Cell | Held:
    """Where the next run may go, as far as we know without asking."""
    if len(probe.status.runs) >= probe.spec.limits.running:
        return Held("AtLimit", "as many probes run as limits.running allows")
    if scene.runs_under_way() >= means.settings.most_running:
        return Held("OperatorAtLimit", "as many probes run as the operator allows of all NodeProbes together")
    nodes, profiles = means.picture.nodes.values(), means.picture.profiles
    busy = scene.busy_nodes()
    return dispatch.cell(probe, nodes, profiles, busy, now=means.now(), rng=means.rng)


async def _hindrance(means: Means, probe: NodeProbe, name: str) -> Held | None:
    """What stands against a probe on this node now, by the API server's own word."""
    try:
        node = objects.read(await means.api.send("GET", f"/api/v1/nodes/{name}"), Node)
    except MissingError:
        means.picture.nodes.pop(name, None)  # its end was told while nobody watched
        return Held("NodeUnfit", "the chosen node is gone")
    if unfit := node.unfit(probe.spec.node_selector, probe.spec.tolerations):
        return Held("NodeUnfit", f"the chosen node may not be probed: {unfit}")
    if pod := waiting.first_waiting(await _pending(means, "")):
        return Held("RealPodsWait", f"real pods wait for room, such as {_named(pod)}")
    if pod := waiting.first_real(await _pending(means, name)):
        return Held("RealPodStarts", f"a real pod is about to start on the chosen node: {_named(pod)}")
    return None


async def _pending(means: Means, node: str) -> list[Pod]:
    """The real pods that are bound to a node, or to none, and have not started."""
    query = {"fieldSelector": f"spec.nodeName={node},status.phase=Pending", "labelSelector": _REAL}
    return [objects.read(each, Pod) for each in await listed(means.api, "/api/v1/pods", query)]


def _named(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
