"""Batch jobs of Alibaba's cluster-trace-v2018, one job a line as JSON, with parents by the tasks' ids.

Their tasks are our stages, their instances our tasks. The times on the record do not respect the graph, so
the graph is replayed and not the times; a job's first start stands for its arrival.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from eclectus.sim.base.dag import Draft, build, class_of
from eclectus.sim.base.work import Dag
from eclectus.sim.workloads.work_classes import Needs


class _Task(Struct, frozen=True):
    """One of their tasks."""

    id: int
    instances: Annotated[float, Meta(ge=1, le=1e7)]
    duration: Annotated[float, Meta(gt=0, le=1e9)]  # mean of an instance, seconds
    start_time: float
    cpu: Annotated[float, Meta(ge=0, le=1e6)]  # hundredths of a core
    mem: Annotated[float, Meta(ge=0, le=100)]  # per cent of a machine
    parents: tuple[int, ...] = ()


class _Job(Struct, frozen=True):
    job: str
    tasks: tuple[_Task, ...]


def read_alibaba(data: bytes, *, machine_memory: int, instead: Needs | None, by_stage: bool) -> list[Dag]:
    """The jobs of a file, asking for what is on the record, or all `instead`.

    `machine_memory`: bytes of one of their machines. Raises ValueError with the line that is wrong.
    """
    found = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(_dag(msgspec.json.decode(line, type=_Job), machine_memory, instead, by_stage))
        except (ValueError, msgspec.DecodeError) as error:
            raise ValueError(f"line {number}: {error}") from None
    return found


def _dag(job: _Job, machine_memory: int, instead: Needs | None, by_stage: bool) -> Dag:
    drafts = []
    for task in job.tasks:
        if task.instances != int(task.instances):
            raise ValueError(f"job {job.job!r}: task {task.id} has {task.instances:g} instances")
        needs = _needs(task, machine_memory) if instead is None else instead
        kind = needs.kind(class_of(job.job, str(task.id), by_stage))
        parents = tuple(str(parent) for parent in task.parents)
        drafts.append(Draft(str(task.id), kind, int(task.instances), task.duration, parents))
    return build(job.job, drafts, min((task.start_time for task in job.tasks), default=0.0))


def _needs(task: _Task, machine_memory: int) -> Needs:
    return Needs(
        requests={"cpu": f"{round(task.cpu * 10)}m", "memory": round(task.mem / 100 * machine_memory)}
    )
