"""The keeper of runs: looks at everything, and takes the next step of each run.

It remembers nothing that matters. Every look begins with what the API server says, every step is one line
of the tables in `reconcile` and `runs`, and a step that fails is taken again by a later look. So a crash at
any request, an answer that never came and a watch that fell silent all cost time, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

from msgspec import Struct

from eclectus.api.common import ObjectMeta
from eclectus.api.names import NODE_PROBES_PATH, RUN_ID_LABEL
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus
from eclectus.api.probe_names import selector
from eclectus_operator.api import ApiError, ConflictError, MissingError, NotLeadingError, listed
from eclectus_operator.control.advance_runs import announce, delete, settle
from eclectus_operator.control.context import Means, Scene, intents, observed, write
from eclectus_operator.control.start_run import begin
from eclectus_operator.control.yield_room import in_the_way
from eclectus_operator.decide import adoption, dispatch, probe_status
from eclectus_operator.decide.dispatch import Due
from eclectus_operator.objects import convert, events, pods
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.objects.observed import Pod
from eclectus_operator.objects.validation import problems

AGAIN_SECONDS = 2.0  # after something has gone wrong; doubled up to the time between looks
LEAST_SECONDS = 0.2  # between two looks
_log = logging.getLogger(__name__)


class _Head(Struct, frozen=True):
    """What can be read of a NodeProbe whose spec cannot."""

    metadata: ObjectMeta
    status: NodeProbeStatus = NodeProbeStatus()


class Keeper:
    """One operator's work, look by look."""

    def __init__(self, means: Means) -> None:
        self._means, self._settings = means, means.settings
        self._due: dict[str, Due] = {}  # by uid; losing it costs nothing: the times are memoryless
        self._again = AGAIN_SECONDS

    async def look(self) -> float:
        """Look once; seconds until the next look.

        Raises ApiError when nothing can be seen at all: MissingError where NodeProbe is not defined.
        """
        # 1. The pods first, what is written down afterwards: else a new pod would look like an orphan.
        scene = Scene(await self._pods())
        found = await self._node_probes()
        # 2. Who cannot be obeyed is told so, and stops nobody else.
        well = [await _guarded(_name(each), self._take_in(scene, each)) for each in found]
        # 3. Pods of ours that nobody knows of are deleted.
        well.append(await _guarded("orphans", self._collect(scene)))
        # 4. Probes that hold room for which real pods wait are to make way.
        well.append(await _guarded("making way", self._make_way(scene)))
        # 5. Every run takes its next steps.
        for uid, probe in list(scene.probes.items()):
            well.append(await _guarded(probe.metadata.name, settle(self._means, scene, uid)))
        # 6. New runs begin where they are due.
        for uid, probe in list(scene.probes.items()):
            well.append(await _guarded(probe.metadata.name, self._begin_due(scene, uid)))
        return self._rest(scene, all(well))

    async def _pods(self) -> dict[str, Pod]:
        query = {"labelSelector": selector(self._settings.instance)}
        found = await listed(self._means.api, self._means.pods_path, query)
        return {pod.metadata.name: pod for pod in (convert.read(each, Pod) for each in found)}

    async def _node_probes(self) -> list[dict[str, Any]]:
        try:
            return await listed(self._means.api, NODE_PROBES_PATH)
        except MissingError as error:
            raise MissingError("NodeProbe is not defined here: install the chart's definitions") from error

    async def _take_in(self, scene: Scene, found: dict[str, Any]) -> None:
        """Note a NodeProbe in the scene, and on itself whether it can be obeyed."""
        try:
            probe = convert.read(found, NodeProbe)
        except ShapeError as error:
            scene.unreadable.add(pods.run_id(found["metadata"]["uid"]))
            await self._reject_unread(found, str(error))
            return
        scene.probes[probe.metadata.uid] = probe
        now = self._means.now()
        wrong = problems(probe.spec, self._settings)
        if not wrong:
            await write(self._means, scene, probe, probe_status.accepted(probe, now))
            return
        scene.invalid.add(probe.metadata.uid)
        status = probe_status.rejected(probe.status, probe.metadata.generation, wrong, now)
        if status != probe.status:
            await write(self._means, scene, probe, status)
            await self._announce_invalid(probe.metadata, wrong)

    async def _reject_unread(self, found: dict[str, Any], wrong: str) -> None:
        """Say on a NodeProbe of another shape than its definition's what is wrong with it."""
        head = convert.read(found, _Head)
        status = probe_status.rejected(head.status, head.metadata.generation, [wrong], self._means.now())
        if status != head.status:
            path = f"{NODE_PROBES_PATH}/{head.metadata.name}/status"
            await self._means.api.send("PATCH", path, convert.conditions_patch(head.metadata, status))
            await self._announce_invalid(head.metadata, [wrong])

    async def _announce_invalid(self, meta: ObjectMeta, wrong: list[str]) -> None:
        await announce(self._means, events.invalid(meta, "; ".join(wrong)))

    async def _collect(self, scene: Scene) -> None:
        """Delete the orphans; those of a NodeProbe whose runs nobody can read are not known to be any."""
        known = [each for probe in scene.probes.values() for each in intents(probe, self._settings)]
        settings, now = self._settings, self._means.now()
        mine = [
            observed(pod)
            for pod in scene.pods.values()
            if (pod.metadata.labels or {}).get(RUN_ID_LABEL) not in scene.unreadable
        ]
        found = adoption.join(known, mine, settings.instance, now, settings.orphan_seconds)
        for young in found.young:
            scene.wake_by(young.created_seconds + settings.orphan_seconds)
        for orphan in found.orphans:
            _log.warning("nobody knows of pod %s: deleting it", orphan.name)
            await delete(self._means, scene, orphan.name, orphan.uid, at_once=False)

    async def _make_way(self, scene: Scene) -> None:
        scene.in_the_way = await in_the_way(self._means, scene)

    async def _begin_due(self, scene: Scene, uid: str) -> None:
        """Begin a run if one is due, and note when the next will be."""
        probe, now, rng = scene.probes[uid], self._means.now(), self._means.rng
        idle = probe.spec.suspend or uid in scene.invalid
        rate = 0.0 if idle else dispatch.rate(probe, now)
        due = dispatch.due(self._due.pop(uid, None), rate, now, rng)
        if due is None:
            return
        if now < due.at:
            self._due[uid] = due
            scene.wake_by(due.at)
        else:
            scene.wake_by(now)  # the look after this draws the next time
            await begin(self._means, scene, probe)
            await settle(self._means, scene, uid)  # write down at once that the pod is there

    def _rest(self, scene: Scene, well: bool) -> float:
        """Seconds until the next look."""
        self._due = {uid: due for uid, due in self._due.items() if uid in scene.probes}
        most = self._settings.look_seconds
        self._again = AGAIN_SECONDS if well else min(self._again * 2.0, most)
        wait = scene.wake - self._means.now()
        return min(max(wait, LEAST_SECONDS), most if well else self._again)


async def _guarded(name: str, work: Awaitable[None]) -> bool:
    """Whether it went well. The trouble of one NodeProbe is not another's, and the next look tries again."""
    try:
        await work
    except NotLeadingError:
        raise
    except ConflictError as error:
        _log.info("%s: looking again: %s", name, error)
        return False
    except (ApiError, ShapeError) as error:
        _log.warning("%s: %s", name, error)
        return False
    return True


def _name(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])
