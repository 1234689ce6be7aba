"""Which probe pods yield: those that block a real pod, or whose notional requests are no longer free.

A probe starts only while no real pod waits for room, but pods arrive while it runs. So while probes run,
there is a sync every second. A probe has zero requests as a rule (probe_pods.py), so a real pod
starts beside it at once; the probe is ended, because its run time means nothing any more. A probe that does
reserve room is ended when a real pod waits for that room. On a node that is believed dead no probe yields:
the node gets no real work, and only a probe can find out that it works again.

The scheduler itself deletes a probe with zero requests before it binds a pod that takes its room. Such a run
has yielded too.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial

from eclectus.api.node_profile import DEAD
from eclectus.kube.requests import FieldError, annotated_room
from eclectus.kubeclient.api_errors import MissingError
from eclectus.model.objects import Amounts
from eclectus_operator import room
from eclectus_operator.cluster_nodes import NodeWithPods, read_node, read_profile, unbound_pods
from eclectus_operator.node_probes import probe_pods
from eclectus_operator.node_probes.snapshot import Snapshot
from eclectus_operator.observed import Pod
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.room import ProbeRoom

RECHECK_SECONDS = 1.0  # between two syncs while probes run
_log = logging.getLogger(__name__)


async def mark_yielding(snapshot: Snapshot) -> None:
    """Mark the probe pods that must yield now, or were deleted because they had to. Raises ApiError."""
    context, may_block = snapshot.context, dict[str, ProbeRoom]()
    yielding = await _find_displaced(snapshot)
    running = [
        each
        for each in snapshot.pods.values()
        if each.spec.node_name and each.status.phase == "Running" and not each.metadata.deletion_timestamp
    ]
    if running:
        snapshot.wake_by(snapshot.now + RECHECK_SECONDS)
    for probe in running:
        there = await _read_node(context, probe.spec.node_name)
        held = None if there is None else await _find_room(context, probe, there)
        if there is None or held is None:
            continue
        # It wants the notional requests that it was created with.
        if _is_taken(there, partial(annotated_room, probe.metadata.annotations)):
            yielding.add(probe.metadata.name)
        elif held.may_block():
            may_block[probe.metadata.name] = held
    snapshot.yielding = yielding | await _find_blocking(context, may_block)


async def _read_node(context: OperatorContext, name: str) -> NodeWithPods | None:
    """A node and the pods on it; None if it is gone."""
    try:
        return await read_node(context.api, name)
    except MissingError:
        return None


async def _find_room(context: OperatorContext, probe: Pod, there: NodeWithPods) -> ProbeRoom | None:
    """The room of a probe on its node; None if it never has to yield."""
    name = probe.spec.node_name
    if (await read_profile(context.api, name)).status.state == DEAD:
        return None
    try:
        return room.probe_room(probe.metadata.uid, there.node, there.pods)
    except FieldError as error:
        _log.warning("the room of node %s is not known, so no probe yields there: %s", name, error)
        return None


def _is_taken(there: NodeWithPods, wanted: Callable[[], Amounts]) -> bool:
    """Whether real pods use what a probe wants of a node; not, if the node or the probe cannot be read."""
    try:
        return bool(room.lacking(dict(wanted()), room.left(there.node, there.pods)))
    except FieldError as error:
        _log.warning("whether the room of a probe is taken is not known: %s", error)
        return False


async def _find_blocking(context: OperatorContext, rooms: Mapping[str, ProbeRoom]) -> set[str]:
    """Names of the probe pods that block a real pod.

    The pods that wait may be very many. They are read page by page, nothing of them is kept, and they are
    read no further than to the last probe that blocks one.
    """
    left, found = dict(rooms), set[str]()
    if not left:
        return found
    async for pod in unbound_pods(context.api):
        if room.is_short_of_room(pod):
            found |= {name for name, there in left.items() if there.blocks(pod)}
            left = {name: there for name, there in left.items() if name not in found}
        if not left:
            break
    return found


async def _find_displaced(snapshot: Snapshot) -> set[str]:
    """Names of the pods that were deleted, by whatever client, while real pods use their room."""
    context, found = snapshot.context, set[str]()
    for probe in snapshot.probes.values():
        for run in probe.status.runs:
            name = probe_pods.identity(probe, run, context.settings.instance).name
            work = probe.find_class(run.class_name)
            pod = snapshot.pods.get(name)
            is_deleted = pod is None or pod.metadata.deletion_timestamp is not None
            if work is None or not is_deleted or not run.pod_uid or run.outcome is not None:
                continue
            # The pod may be gone, so what it requested is read from its NodeProbe.
            wanted = partial(probe_pods.room_of, probe, run, work, context.settings)
            there = await _read_node(context, run.node)
            if there is not None and _is_taken(there, wanted):
                found.add(name)
    return found
