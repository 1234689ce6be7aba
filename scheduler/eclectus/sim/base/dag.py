"""Jobs as graphs of stages: validation, topological order and critical paths (Kelley, Walker, 1959)."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eclectus.config.settings_reading import nearest
from eclectus.sim.base.work import Dag, Stage, WorkClass


class StageDraft(Struct, frozen=True):
    """A stage as read from a file: parents by name, in any order."""

    name: str
    work_class: WorkClass
    tasks: int
    seconds: float
    parents: tuple[str, ...] = ()


Classes = Literal["job", "stage", "all"]
"""What the tasks of a class have in common."""


def class_name(job: str, stage: str, classes: Classes) -> str:
    """The default class of a stage's tasks."""
    return {"job": job, "stage": f"{job}-{stage}", "all": "work"}[classes]


def build_dag(name: str, drafts: Sequence[StageDraft], arrival: float | None = None) -> Dag:
    """Check and sort the stages of a job. Raises ValueError naming the stage that is wrong."""
    by_name = {draft.name: draft for draft in drafts}
    if not drafts:
        raise ValueError(f"job {name!r} has no stage")
    for draft in drafts:
        if by_name[draft.name] is not draft:
            raise ValueError(f"job {name!r} has two stages {draft.name!r}")
        for parent in draft.parents:
            if parent not in by_name:
                hint = nearest(parent, list(by_name))
                raise ValueError(
                    f"job {name!r}: stage {draft.name!r} has a parent {parent!r} that is not a stage; {hint}"
                )
    try:
        order = tuple(TopologicalSorter({draft.name: draft.parents for draft in drafts}).static_order())
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise ValueError(f"job {name!r}: its stages form a cycle: {cycle}") from None
    return Dag(name, _stages([by_name[each] for each in order]), arrival)


def shrunk(dag: Dag, divisor: int) -> Dag:
    """The job with so many times fewer tasks in each stage, rounded, at least one."""
    stages = (replace(stage, tasks=max(round(stage.tasks / divisor), 1)) for stage in dag.stages)
    return replace(dag, stages=tuple(stages))


def _stages(drafts: Sequence[StageDraft]) -> tuple[Stage, ...]:
    place = {draft.name: at for at, draft in enumerate(drafts)}
    parents = [tuple(sorted({place[parent] for parent in draft.parents})) for draft in drafts]
    children: list[list[int]] = [[] for _ in drafts]
    for at, above in enumerate(parents):
        for parent in above:
            children[parent].append(at)
    paths = [0.0] * len(drafts)
    for at in reversed(range(len(drafts))):
        paths[at] = drafts[at].seconds + max((paths[child] for child in children[at]), default=0.0)
    return tuple(
        Stage(
            draft.name,
            draft.work_class,
            draft.tasks,
            draft.seconds,
            parents[at],
            tuple(children[at]),
            paths[at],
        )
        for at, draft in enumerate(drafts)
    )
