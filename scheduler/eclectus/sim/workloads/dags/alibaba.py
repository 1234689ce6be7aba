"""Batch jobs of Alibaba's cluster-trace-v2018: one job per line as JSON, parents by task id.

The trace's tasks become stages, its instances tasks. Its recorded times do not respect the graphs, so the
graphs are replayed and not the times; a job arrives when its first task started.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from eclectus.sim.base.work import Classes, Dag, StageDraft, build_dag, class_name
from eclectus.sim.workloads.work_classes import Needs, TaskNeeds


class _Task(Struct, frozen=True):
    """One task of the trace."""

    id: int
    instances: Annotated[float, Meta(ge=1, le=1e7)]
    duration: Annotated[float, Meta(gt=0, le=1e9)]  # mean of the instances, seconds
    start_time: float
    cpu: Annotated[float, Meta(ge=0, le=1e6)]  # hundredths of a core
    mem: Annotated[float, Meta(ge=0, le=100)]  # per cent of a machine
    parents: tuple[int, ...] = ()


class _Job(Struct, frozen=True):
    job: str
    tasks: tuple[_Task, ...]


def read_alibaba(data: bytes, *, machine_memory: int, instead: Needs, classes: Classes) -> list[Dag]:
    """The jobs of a file with their recorded requests, or with those that `instead` returns.

    `machine_memory` is that of a machine of the trace, in bytes. Raises ValueError naming the line.
    """
    found = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(_dag(msgspec.json.decode(line, type=_Job), machine_memory, instead, classes))
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(f"line {number}: {error}") from None
    return found


def _dag(job: _Job, machine_memory: int, instead: Needs, classes: Classes) -> Dag:
    drafts = []
    for task in job.tasks:
        if task.instances != int(task.instances):
            raise ValueError(f"job {job.job!r}: task {task.id} has {task.instances:g} instances")
        needs = instead(job.job, str(task.id)) or _needs(task, machine_memory)
        work_class = needs.work_class(class_name(job.job, str(task.id), classes))
        parents = tuple(str(parent) for parent in task.parents)
        drafts.append(StageDraft(str(task.id), work_class, int(task.instances), task.duration, parents))
    return build_dag(job.job, drafts, min((task.start_time for task in job.tasks), default=0.0))


def _needs(task: _Task, machine_memory: int) -> TaskNeeds:
    return TaskNeeds(
        requests={"cpu": f"{round(task.cpu * 10)}m", "memory": round(task.mem / 100 * machine_memory)}
    )
