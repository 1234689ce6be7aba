"""The controller of NodeProbes: in every sync it reads the cluster and carries out the next step of each run.

It keeps no state that matters. Every sync starts from what the API server says, every step is a line of the
tables in `run_steps`, and a step that fails is repeated by a later sync. So a crash at any request, a lost
answer and a silent watch cost time and nothing else.
"""

import logging
from collections.abc import Awaitable
from typing import Any

from msgspec import Struct

from eclectus.api.common import ObjectMeta
from eclectus.api.names import NODE_PROBE, NODE_PROBES_PATH, RUN_ID_LABEL
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, selector
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import list_objects
from eclectus_operator import convert
from eclectus_operator.cluster_nodes import NodeLabeller
from eclectus_operator.convert import ShapeError
from eclectus_operator.node_probes import dispatch, probe_pods, probe_status, run_steps
from eclectus_operator.node_probes.advance_runs import advance_runs
from eclectus_operator.node_probes.dispatch import Due
from eclectus_operator.node_probes.probe_templates import problems
from eclectus_operator.node_probes.snapshot import Snapshot
from eclectus_operator.node_probes.start_run import start_run
from eclectus_operator.node_probes.yield_room import mark_yielding
from eclectus_operator.observed import Pod
from eclectus_operator.operator_context import NotLeadingError, OperatorContext
from eclectus_operator.pod_stages import current_stage, forced_note, overdue_message

RETRY_SECONDS = 2.0  # to the next sync after a failure; doubled up to look_seconds
MIN_SECONDS = 0.2  # between two syncs
_log = logging.getLogger(__name__)


class _Head(Struct, frozen=True):
    """What can be read of a NodeProbe whose spec cannot."""

    metadata: ObjectMeta
    status: NodeProbeStatus = NodeProbeStatus()


class ProbeController:
    """The work of one operator, sync by sync."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._settings = context.settings
        self._labeller = NodeLabeller(context.api, context.now, context.settings.node_labels)
        # By uid. Losing it in a crash changes nothing: the times between runs are memoryless.
        self._due: dict[str, Due] = {}
        self._retry_seconds = RETRY_SECONDS

    async def sync(self) -> float:
        """Sync once. Seconds until the next sync.

        Raises ApiError when nothing can be read at all: MissingError where NodeProbe is not defined.
        """
        # 1. Pods are listed before NodeProbes: else the pod of a new run would look like an orphan.
        snapshot = Snapshot(self._context, await self._list_pods())
        found = await self._list_node_probes()
        # 2. Each NodeProbe is accepted or rejected; a bad one does not stop the others.
        done = [await _attempt(each["metadata"]["name"], self._accept(snapshot, each)) for each in found]
        # 3. Probe pods that belong to no run are deleted.
        done.append(await _attempt("orphans", self._delete_orphans(snapshot)))
        # 4. Running probe pods whose room real pods need are marked to yield.
        done.append(await _attempt("yielding", mark_yielding(snapshot)))
        # 5. Every run takes its next steps.
        for uid, probe in list(snapshot.probes.items()):
            name = probe.metadata.name
            done.append(await _attempt(name, advance_runs(snapshot, uid)))
        # 6. New runs start where they are due.
        for uid, probe in list(snapshot.probes.items()):
            done.append(await _attempt(probe.metadata.name, self._start_due(snapshot, uid)))
        # 7. Nodes get the labels of the mapping.
        done.append(await _attempt("node labels", self._label_nodes(snapshot)))
        return self._seconds_to_next(snapshot, is_well=all(done))

    async def _list_pods(self) -> dict[str, Pod]:
        query = {"labelSelector": selector(self._settings.instance)}
        found = await list_objects(self._context.api, self._context.pods_path, query)
        return {each["metadata"]["name"]: convert.read_authored(each, Pod) for each in found}

    async def _list_node_probes(self) -> list[dict[str, Any]]:
        try:
            return await list_objects(self._context.api, NODE_PROBES_PATH)
        except MissingError as error:
            problem = f"{NODE_PROBE} is not defined here: install the chart's definitions"
            raise MissingError(problem) from error

    async def _accept(self, snapshot: Snapshot, found: dict[str, Any]) -> None:
        """Take a NodeProbe into the snapshot, and set its Ready condition."""
        try:
            probe = convert.read_authored(found, NodeProbe)
        except ShapeError as error:
            snapshot.unreadable.add(probe_pods.run_id(found["metadata"]["uid"]))
            await self._reject_unread(found, str(error))
            return
        snapshot.probes[probe.metadata.uid] = probe
        now = self._context.now()
        wrong = problems(probe.spec, self._settings)
        if not wrong:
            await snapshot.write_status(probe, probe_status.accepted(probe, now))
            return
        snapshot.invalid.add(probe.metadata.uid)
        status = probe_status.rejected(probe.status, probe.metadata.generation, wrong, now)
        if status != probe.status:
            await snapshot.write_status(probe, status)
            await self._context.record(probe.metadata, "Check", "InvalidSpec", "; ".join(wrong))

    async def _reject_unread(self, found: dict[str, Any], problem: str) -> None:
        """Reject a NodeProbe whose spec cannot be read. Its runs stay as they are."""
        head = convert.read(found, _Head)
        now, meta = self._context.now(), head.metadata
        status = probe_status.rejected(head.status, meta.generation, [problem], now)
        if status != head.status:
            path = f"{NODE_PROBES_PATH}/{meta.name}/status"
            await self._context.api.send("PATCH", path, probe_status.conditions_patch(meta, status))
            await self._context.record(meta, "Check", "InvalidSpec", problem)

    async def _delete_orphans(self, snapshot: Snapshot) -> None:
        """Delete pods that belong to no run. Pods of a NodeProbe whose runs cannot be read are left alone."""
        settings, now = self._settings, self._context.now()
        instance, grace = settings.instance, settings.orphan_seconds
        recorded = [
            each for probe in snapshot.probes.values() for each in probe_pods.recorded(probe, instance)
        ]
        readable = [
            pod
            for pod in snapshot.pods.values()
            if pod.metadata.labels.get(RUN_ID_LABEL) not in snapshot.unreadable
        ]
        found = run_steps.join(recorded, readable, instance, now, grace)
        for young in found.young:
            snapshot.wake_by(young.created + grace)
        for orphan in found.orphans:
            _log.warning("pod %s belongs to no run: deleting it", orphan.metadata.name)
            await snapshot.delete_pod(orphan.metadata.name, orphan.metadata.uid)
        for silent in found.silent:
            late = overdue_message(silent, current_stage(silent), run_steps.ORPHAN_DEADLINES)
            _log.warning("%s", forced_note(late))
            await snapshot.delete_pod(silent.metadata.name, silent.metadata.uid, at_once=True)

    async def _label_nodes(self, snapshot: Snapshot) -> None:
        if await self._labeller.label():
            snapshot.wake_by(self._context.now())

    async def _start_due(self, snapshot: Snapshot, uid: str) -> None:
        """Start a run if one is due, and note when the next will be."""
        probe, now, rng = snapshot.probes[uid], self._context.now(), self._context.rng
        is_idle = probe.spec.suspend or uid in snapshot.invalid
        rate = 0.0 if is_idle else dispatch.rate(probe, now)
        due = dispatch.due(self._due.pop(uid, None), rate, now, rng)
        if due is None:
            return
        if now < due.at:
            self._due[uid] = due
            snapshot.wake_by(due.at)
        else:
            snapshot.wake_by(now)  # the next sync draws the next time
            await start_run(snapshot, probe)
            await advance_runs(snapshot, uid)  # record at once that the pod exists

    def _seconds_to_next(self, snapshot: Snapshot, *, is_well: bool) -> float:
        self._due = {uid: due for uid, due in self._due.items() if uid in snapshot.probes}
        most = self._settings.look_seconds
        self._retry_seconds = RETRY_SECONDS if is_well else min(self._retry_seconds * 2.0, most)
        wait = snapshot.wake_at - self._context.now()
        return min(max(wait, MIN_SECONDS), most if is_well else self._retry_seconds)


async def _attempt(name: str, work: Awaitable[None]) -> bool:
    """Whether it succeeded. A failure is logged and stops no other NodeProbe; the next sync retries it."""
    try:
        await work
    except NotLeadingError:
        raise
    except ConflictError as error:
        _log.info("%s: to be repeated: %s", name, error)
        return False
    except (ApiError, ShapeError) as error:
        _log.warning("%s: %s", name, error)
        return False
    return True
