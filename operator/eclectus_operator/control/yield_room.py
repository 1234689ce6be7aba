"""Which probe pods yield: those that block a real pod, or whose notional requests are no longer free.

A probe starts only while no real pod waits for room, but pods arrive while it runs. So while probes run,
there is a sync every second. A probe has zero requests as a rule (objects/zero_requests.py), so a real pod
starts beside it at once; the probe is ended, because its run time means nothing any more. A probe that does
reserve room is ended when a real pod waits for that room. On a node that is believed dead no probe yields:
the node gets no real work, and only a probe can find out that it works again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from eclectus.api.names import ROOM_ANNOTATION
from eclectus.api.node_profile import DEAD
from eclectus.kube import objects as kube
from eclectus.kube import probe_room
from eclectus.kube.requests import FieldError
from eclectus.kubeclient.client import list_objects
from eclectus.kubeclient.errors import MissingError
from eclectus_operator.control.context import OperatorContext, Snapshot
from eclectus_operator.control.nodes import read_node, read_profile
from eclectus_operator.decide import room, waiting
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import ALL_PODS_PATH, Pod

RECHECK_SECONDS = 1.0  # between two syncs while probes run
_log = logging.getLogger(__name__)


async def find_yielding(context: OperatorContext, snapshot: Snapshot) -> set[str]:
    """Names of the probe pods that must yield now. Raises ApiError."""
    running = [pod for pod in snapshot.pods.values() if _is_running(pod)]
    if not running:
        return set()
    snapshot.wake_by(context.now() + RECHECK_SECONDS)
    found = await list_objects(context.api, ALL_PODS_PATH, waiting.UNBOUND_REAL_PODS)
    unbound = [convert.read(each, kube.Pod) for each in found]
    short = [pod for pod in unbound if waiting.is_short_of_room(pod)]
    return {pod.metadata.name for pod in running if await _must_yield(context, pod, short)}


async def _must_yield(context: OperatorContext, probe: Pod, short: Sequence[kube.Pod]) -> bool:
    name, annotations = probe.spec.node_name, probe.metadata.annotations or {}
    if not short and ROOM_ANNOTATION not in annotations:
        return False
    try:
        there = await read_node(context.api, name)
    except MissingError:
        return False
    if (await read_profile(context.api, name)).status.state == DEAD:
        return False
    try:
        pods = there.pods
        if room.lacking(probe_room.from_annotations(annotations), room.left(there.node, pods)):
            return True
        return bool(short) and room.blocks_any(probe.metadata.uid, there.node, pods, short)
    except FieldError as error:
        _log.warning("the room of node %s is not known, so no probe yields there: %s", name, error)
        return False


def _is_running(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
