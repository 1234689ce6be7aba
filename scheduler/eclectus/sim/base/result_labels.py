"""By what results are told apart: labels that jobs and tasks get when they arrive, for reports alone.

Nothing here is shown to a scheduler. Length goes by true sizes, not by what the scheduler was told, so that
policies which tell short from long by cut-offs of their own, or not at all, are compared on equal jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from eclectus.model.objects import Spec
from eclectus.sim.base.work import Arrival, Kind

WAYS = ("class", "length", "constrained")
CROSS = "+"  # `length+constrained`: every pair of labels is a group

Cell = tuple[str | None, ...]
"""One label for each way, in the order asked for; None where a job's own tasks differ in it."""


@dataclass(frozen=True, slots=True)
class Groups:
    """What was asked for: ways, some of them perhaps crossed, and where long begins."""

    asked: tuple[str, ...] = ()
    cut_off: float = 0.0  # seconds at speed 1: jobs whose tasks take less in the mean are short
    ways: tuple[str, ...] = field(init=False)  # those that some group needs, each once

    def __post_init__(self) -> None:
        needed = {way for name in self.asked for way in parts(name)}
        object.__setattr__(self, "ways", tuple(way for way in WAYS if way in needed))

    def length(self, job: Arrival) -> str:
        """Of all tasks of the job; nothing where nobody asks."""
        if "length" not in self.ways:
            return ""
        return "short" if sum(job.sizes) < self.cut_off * len(job.sizes) else "long"

    def cell(self, kind: Kind, length: str) -> Cell:
        """Where a task belongs."""
        return tuple([_label(way, kind, length) for way in self.ways])

    def job_cell(self, job: Arrival, length: str) -> Cell:
        """Where a job belongs as a whole."""
        if job.dag is None:
            return self.cell(job.kind, length)
        cells = {self.cell(stage.kind, length) for stage in job.dag.stages}
        return tuple(
            labels.pop() if len(labels) == 1 else None for labels in map(set, zip(*cells, strict=True))
        )

    def group(self, name: str, cell: Cell) -> str | None:
        """The group of this name's groups that holds the cell, such as `short, free`."""
        labels = dict(zip(self.ways, cell, strict=True))
        chosen = [labels[way] for way in parts(name)]
        return None if None in chosen else ", ".join(label for label in chosen if label is not None)


def parts(name: str) -> list[str]:
    """The ways that a name crosses."""
    return name.split(CROSS)


def in_order(groups: Iterable[str]) -> list[str]:
    """Short before long, free before constrained, classes by name."""
    return sorted(groups, key=lambda group: [_RANK.get(label, label) for label in group.split(", ")])


_RANK = {"short": "0", "long": "1", "free": "0", "constrained": "1"}


def _label(way: str, kind: Kind, length: str) -> str:
    if way == "class":
        return kind.name
    if way == "length":
        return length
    return "constrained" if _says_where(kind.spec) else "free"


def _says_where(spec: Spec) -> bool:
    wishes = spec.node_selector or spec.preferences or spec.tolerations
    return bool(wishes) or spec.affinity is not None
