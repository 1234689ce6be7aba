"""A bind in two parts: it counts as soon as it is assumed, and its command is made when it is sent.

Between the two it can be undone, which is how a gang is placed whole or not at all (engine/gangs/).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from eclectus.cluster.nodes import Cluster
from eclectus.engine.placed_pods import PlacedPods
from eclectus.engine.probe_validity import ProbeValidity
from eclectus.engine.volumes.pod_volumes import PodVolumes
from eclectus.model.commands import Bind, BindStep, EndProbe, Renominate
from eclectus.model.grant import Grant
from eclectus.model.objects import Task


class AssumedBind(NamedTuple):
    """A bind that counts already, and has not been sent."""

    task: Task
    row: int
    node: str
    nominated: str  # another node, to which the pod was nominated until now; or empty
    for_volumes: tuple[BindStep, ...]


class Binds:
    """Assumes binds, undoes them, and makes their commands."""

    def __init__(
        self, cluster: Cluster, placed: PlacedPods, volumes: PodVolumes, probe_validity: ProbeValidity
    ) -> None:
        self._cluster, self._placed = cluster, placed
        self._volumes, self._probe_validity = volumes, probe_validity

    def assume(
        self, task: Task, row: int, grant: Grant, instead_of: Iterable[Task], now: float
    ) -> AssumedBind:
        """Count the pod as placed. `instead_of`: nominated pods of lower priority, whose room it may take."""
        node = self._cluster.names[row]
        if self._cluster.devices is not None:
            task = self._cluster.devices.with_grant(row, task, grant, instead_of)
        nominated = self._placed.assume(task, node, now)
        return AssumedBind(task, row, node, nominated, self._volumes.steps_before(task, row, node))

    def undo(self, assumed: AssumedBind) -> None:
        """Count a pod that was not nominated, and whose bind was not sent, no longer as placed."""
        self._placed.forget(assumed.task.uid, assumed.node)
        self._volumes.bind_undone(assumed.task.uid)

    def command(self, assumed: AssumedBind) -> Bind:
        """What is asked of the API server."""
        task, _, node, nominated, for_volumes = assumed
        is_untold = not nominated and task.nominated != node
        if for_volumes and is_untold:  # it may take minutes: others should know
            for_volumes = (Renominate(node, ""), *for_volumes)
        before = (*self._steps_before(node, nominated), *for_volumes)
        return Bind(task.uid, task.namespace, task.name, node, task.profile, task.grant, before)

    def _steps_before(self, node: str, nominated: str) -> tuple[BindStep, ...]:
        """`nominated`: another node, to which the pod was nominated until now; or empty."""
        displaced = self._probe_validity.take_displaced(node)
        ends = tuple(EndProbe(probe.uid, probe.namespace, probe.name) for probe in displaced)
        return (Renominate(node, nominated), *ends) if nominated else ends
