"""Jobs with stages in Eclectus's own JSON format: docs/dags.schema.json, explained in docs/simulator.md.

{"jobs": [{"name": "report", "arrival": 0, "stages": [
    {"name": "read", "tasks": 8, "seconds": 2.5, "requests": {"cpu": "500m", "memory": "1Gi"}},
    {"name": "join", "tasks": 4, "seconds": 4, "parents": ["read"]}]}]}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from eclectus.config.settings_reading import read
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.work import Classes, Dag, StageDraft, build_dag, class_name
from eclectus.sim.workloads.work_classes import TaskNeeds

SECONDS_MOST = 1e9


@dataclass(frozen=True, kw_only=True)
class StageField(TaskNeeds):
    """One stage: identical tasks."""

    name: Annotated[str, Setting("name by which other stages refer to it")]
    seconds: Annotated[
        float, Setting("mean size of a task, at speed 1", unit="s", least=1e-6, most=SECONDS_MOST)
    ]
    tasks: Annotated[int, Setting("number of tasks", least=1, most=1_000_000)] = 1
    parents: Annotated[tuple[str, ...], Setting("stages that must have ended before this one starts")] = ()
    workload: Annotated[
        str, Setting("the pods' class, for reports and learners; by default as `classes` says")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class JobField:
    """One job."""

    name: Annotated[str, Setting("name in messages and in names of classes")]
    stages: tuple[StageField, ...]
    arrival: Annotated[
        float | None, Setting("arrival time, for arrivals: recorded", unit="s", least=0, most=SECONDS_MOST)
    ] = None

    def dag(self, classes: Classes) -> Dag:
        """The validated graph. Raises ValueError."""
        drafts = [
            StageDraft(
                stage.name,
                stage.work_class(stage.workload or class_name(self.name, stage.name, classes)),
                stage.tasks,
                stage.seconds,
                stage.parents,
            )
            for stage in self.stages
        ]
        return build_dag(self.name, drafts, self.arrival)


@dataclass(frozen=True, kw_only=True)
class DagFile:
    """The contents of a file."""

    jobs: tuple[JobField, ...]


def read_dags(data: bytes, *, classes: Classes) -> list[Dag]:
    """The jobs of a file. Raises ValueError naming the field."""
    try:
        jobs = read(DagFile, msgspec.json.decode(data), "").jobs
    except SettingsError as error:  # the path is in this file, not in the settings
        raise ValueError(str(error)) from None
    names: dict[str, int] = {}
    for at, job in enumerate(jobs):
        first = names.setdefault(job.name, at)
        if first != at:
            raise ValueError(f"jobs[{at}].name: {job.name!r} is already used by jobs[{first}]")
    return [job.dag(classes) for job in jobs]
