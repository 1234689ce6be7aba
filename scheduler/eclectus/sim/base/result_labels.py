"""The groups into which results are divided: labels that jobs and tasks get on arrival, for reports only.

No scheduler sees these labels. A job's length is judged by its true task sizes, not by the estimates shown to
the scheduler, so that policies with different cut-offs, or none, are compared on the same jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from eclectus.model.objects import Spec, Term
from eclectus.sim.base.work import Arrival, WorkClass

DIMENSIONS = ("class", "length", "constrained", "set")
CROSS = "+"  # `length+constrained`: every pair of labels is a group

Labels = tuple[str | None, ...]
"""One label for each dimension, in order; None where the tasks of a job differ."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The requested groupings, each of one dimension or several crossed, and the cut-off for length."""

    requested: tuple[str, ...] = ()
    cut_off: float = 0.0  # seconds at speed 1: a job is short if the mean size of its tasks is below
    dimensions: tuple[str, ...] = field(init=False)  # those that any requested grouping needs

    def __post_init__(self) -> None:
        needed = {dimension for name in self.requested for dimension in dimensions_of(name)}
        object.__setattr__(self, "dimensions", tuple(each for each in DIMENSIONS if each in needed))

    def length(self, job: Arrival) -> str:
        """`short` or `long`, the same for all tasks of the job; empty if no grouping needs it."""
        if "length" not in self.dimensions:
            return ""
        return "short" if sum(job.sizes) < self.cut_off * len(job.sizes) else "long"

    def labels(self, work_class: WorkClass, length: str) -> Labels:
        """The labels of a task."""
        return tuple([_label(dimension, work_class, length) for dimension in self.dimensions])

    def job_labels(self, job: Arrival, length: str) -> Labels:
        """The labels of a whole job."""
        if job.dag is None:
            return self.labels(job.work_class, length)
        by_stage = {self.labels(stage.work_class, length) for stage in job.dag.stages}
        return tuple(
            found.pop() if len(found) == 1 else None for found in map(set, zip(*by_stage, strict=True))
        )

    def group_of(self, name: str, labels: Labels) -> str | None:
        """The group of the grouping `name` that has these labels, such as `short, free`; None if in none."""
        by_dimension = dict(zip(self.dimensions, labels, strict=True))
        chosen = [by_dimension[dimension] for dimension in dimensions_of(name)]
        return None if None in chosen else ", ".join(label for label in chosen if label is not None)


def dimensions_of(name: str) -> list[str]:
    """The dimensions that a grouping crosses."""
    return name.split(CROSS)


def sorted_groups(groups: Iterable[str]) -> list[str]:
    """Short before long, free before preferring before constrained, classes and sets by name."""
    return sorted(groups, key=lambda group: [_RANK.get(label, label) for label in group.split(", ")])


_FREE, _PREFERRING = "free", "preferring"
_RANK = {"short": "0", "long": "1", _FREE: "0", _PREFERRING: "1", "constrained": "2"}


def _label(dimension: str, work_class: WorkClass, length: str) -> str:
    if dimension == "class":
        return work_class.name
    if dimension == "length":
        return length
    constraints = "+".join(_hard_constraints(work_class.spec))
    if not constraints:
        return _PREFERRING if work_class.spec.preferences else _FREE
    return constraints if dimension == "set" else "constrained"


def _hard_constraints(spec: Spec) -> Iterator[str]:
    """What keeps the pod off some nodes, or lets it onto tainted ones, one text for each constraint."""
    yield from (f"{key}={value}" for key, value in spec.node_selector)
    if spec.affinity is not None:
        yield " or ".join(map(_term, spec.affinity)) or "nowhere"
    yield from (f"tolerates {each.key or 'everything'}" for each in spec.tolerations)


def _term(term: Term) -> str:
    return " and ".join(
        f"{each.key} {each.op} {'|'.join(each.values)}".strip() for each in (*term.expressions, *term.fields)
    )
