"""`workload: {kubernetes: …}`: a manifest of Pods and Jobs, each with its true work in an annotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Plan
from eclectus.sim.workloads.manifest import arrivals
from eclectus.sim.workloads.recorded import recorded
from eclectus.sim.workloads.workload import Workload


@dataclass(frozen=True)
class Kubernetes(Workload):
    """Settings, and the stream they make."""

    file: Annotated[str, Setting("path of the manifest, from the scenario's folder: YAML or JSON")]

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Read the manifest. Raises SettingsError with the document, the object and the field."""
        del machines
        try:
            jobs = arrivals((folder / self.file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError("file", f"{self.file} cannot be read: {error}") from error
        except SettingsError as error:
            raise SettingsError("file", f"{self.file}{',' if error.path else ''} {error}") from None
        if not jobs:
            raise SettingsError("file", f"{self.file} holds no Pod and no Job")
        return recorded(jobs, lambda seed: iter(jobs))
