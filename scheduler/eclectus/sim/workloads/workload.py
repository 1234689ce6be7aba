"""What every kind of workload answers. Each is a settings class in a file of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Plan
from eclectus.sim.world.cluster import Cluster


class Workload(ABC):
    """Settings of one kind of workload, and the stream they make."""

    def equip(self, cluster: Cluster, folder: Path) -> Cluster:
        """The machines as this workload knows them: those that bring rates of their own say how fast.

        Raises SettingsError like `plan`.
        """
        del folder
        return cluster

    @abstractmethod
    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """What it brings to these machines; files it names are looked for in `folder`.

        Raises SettingsError, its path from this kind's own fields.
        """
