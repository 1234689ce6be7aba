"""Which probes make way: those that hold room that a real pod waits for.

A probe pushes nobody out and begins only while nobody waits for room; but pods come while it runs. So as long
as probes hold room, the pods that wait are looked at every second, and a probe that hinders one is ended.
Rather a probe ends in vain than a pod waits for it. But on a node that is believed dead no probe hinders
anybody: it gets no real work, and only a probe can tell that it lives.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from eclectus.kube import objects as kube
from eclectus.kube.requests import FieldError

from . import objects, waiting
from .api import MissingError, listed
from .observed import Pod, Profile
from .room import hinders
from .scene import Means, Scene

LOOK_SECONDS = 1.0  # between two looks at who waits, while probes hold room
_log = logging.getLogger(__name__)


async def in_the_way(means: Means, scene: Scene) -> set[str]:
    """Names of the probe pods that are to make way now. Raises ApiError."""
    holders = [pod for pod in scene.pods.values() if _holds_room(pod)]
    if not holders:
        return set()
    scene.wake_by(means.now() + LOOK_SECONDS)
    pending = await listed(means.api, waiting.PODS, waiting.pending())
    wanting = [
        objects.read(each, kube.Pod) for each in pending if waiting.lacks_room(objects.read(each, Pod))
    ]
    if not wanting:
        return set()
    return {pod.metadata.name for pod in holders if await _hinders(means, pod, wanting)}


async def _hinders(means: Means, probe: Pod, wanting: Sequence[kube.Pod]) -> bool:
    name = probe.spec.node_name
    try:
        node = objects.read(await means.api.send("GET", f"/api/v1/nodes/{name}"), kube.Node)
    except MissingError:
        return False
    if await _believed_dead(means, name):
        return False
    found = await listed(means.api, waiting.PODS, {"fieldSelector": f"spec.nodeName={name}"})
    try:
        return hinders(probe.metadata.uid, node, [objects.read(each, kube.Pod) for each in found], wanting)
    except FieldError as error:
        _log.warning(
            "the room of node %s is not known, and probes there make way for nobody: %s", name, error
        )
        return False


async def _believed_dead(means: Means, node: str) -> bool:
    try:
        found = await means.api.send("GET", f"{objects.PROFILES_PATH}/{node}")
    except MissingError:
        return False
    return objects.read(found, Profile).status.state == "Dead"


def _holds_room(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
