"""Which probes make way: those that are in a real pod's way, or have lost the room that they stand for.

A probe pushes nobody out and begins only while nobody waits for room; but pods come while it runs. So as long
as probes run, everything is looked at every second. A probe holds no room as a rule (borrowing.py), so a real
pod starts beside it at once; the probe is ended, since its time tells of nothing any more. One that does hold
room is ended when a pod waits for that: rather a probe ends in vain than a pod waits. But on a node that is
believed dead no probe is in anybody's way: it gets no real work, and only a probe can tell that it lives.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from eclectus.kube import objects as kube
from eclectus.kube import probe_room
from eclectus.kube.requests import FieldError
from eclectus_operator.api import MissingError, listed
from eclectus_operator.control import node_pods
from eclectus_operator.control.context import Means, Scene
from eclectus_operator.decide import waiting
from eclectus_operator.decide.room import hinders, lacking, left
from eclectus_operator.objects import resources
from eclectus_operator.objects.observed import Pod, Profile

LOOK_SECONDS = 1.0  # between two looks while probes run
_log = logging.getLogger(__name__)


async def in_the_way(means: Means, scene: Scene) -> set[str]:
    """Names of the probe pods that are to make way now. Raises ApiError."""
    running = [pod for pod in scene.pods.values() if _runs(pod)]
    if not running:
        return set()
    scene.wake_by(means.now() + LOOK_SECONDS)
    pending = await listed(means.api, waiting.PODS, waiting.pending())
    wanting = [
        resources.read(each, kube.Pod) for each in pending if waiting.lacks_room(resources.read(each, Pod))
    ]
    return {pod.metadata.name for pod in running if await _is_in_the_way(means, pod, wanting)}


async def _is_in_the_way(means: Means, probe: Pod, wanting: Sequence[kube.Pod]) -> bool:
    name, annotations = probe.spec.node_name, probe.metadata.annotations or {}
    if not wanting and probe_room.ROOM not in annotations:
        return False
    try:
        there = await node_pods.on(means, name)
    except MissingError:
        return False
    if await _believed_dead(means, name):
        return False
    try:
        pods = there.pods
        if lacking(probe_room.from_annotations(annotations), left(there.node, pods)):
            return True
        return bool(wanting) and hinders(probe.metadata.uid, there.node, pods, wanting)
    except FieldError as error:
        _log.warning(
            "the room of node %s is not known, and probes there make way for nobody: %s", name, error
        )
        return False


async def _believed_dead(means: Means, node: str) -> bool:
    try:
        found = await means.api.send("GET", f"{resources.PROFILES_PATH}/{node}")
    except MissingError:
        return False
    return resources.read(found, Profile).status.state == "Dead"


def _runs(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
