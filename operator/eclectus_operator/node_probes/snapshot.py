"""The cluster as a sync of the NodeProbes sees it, and the writes that every part of a sync makes."""

import logging
from dataclasses import dataclass, field
from typing import Any

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Run
from eclectus_operator import convert
from eclectus_operator.node_probes import probe_status
from eclectus_operator.observed import Pod
from eclectus_operator.operator_context import Sync

_log = logging.getLogger(__name__)


@dataclass
class Snapshot(Sync):
    """The probe pods by name and the NodeProbes by uid, each as last read or written in this sync."""

    pods: dict[str, Pod]
    probes: dict[str, NodeProbe] = field(default_factory=dict)
    invalid: set[str] = field(default_factory=set)  # uids of those whose spec cannot be obeyed
    unreadable: set[str] = field(default_factory=set)  # run ids of those whose runs cannot be read
    yielding: set[str] = field(default_factory=set)  # names of the pods that must yield their room, or have

    @property
    def runs(self) -> list[Run]:
        """The runs in progress, of all NodeProbes."""
        return [run for probe in self.probes.values() for run in probe.status.runs]

    async def write_status(self, probe: NodeProbe, status: NodeProbeStatus) -> NodeProbe:
        """Write a NodeProbe's status if it has changed. The NodeProbe as it is then.

        Raises ApiError; ConflictError when the object has been written since it was read.
        """
        if status == probe.status:
            return probe
        path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
        answer = await self.context.api.send("PATCH", path, probe_status.status_patch(probe, status))
        written = convert.read_authored(answer, NodeProbe)
        self.probes[written.metadata.uid] = written
        return written

    async def delete_pod(self, name: str, uid: str, *, at_once: bool = False) -> None:
        """Delete the pod with this uid, and no other of its name; it may be gone already. Raises ApiError.

        `at_once`: without a grace period, so without waiting for its node.
        """
        grace: dict[str, Any] = {"gracePeriodSeconds": 0} if at_once else {}
        was_there = await self.context.delete(f"{self.context.pods_path}/{name}", uid, **grace)
        if at_once or not was_there:
            self.pods.pop(name, None)
        _log.info("deleted %s", name)
