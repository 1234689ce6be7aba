"""DAG jobs of the shape of TPC-H queries: scans, joins of them, sums at the end. Pure.

As with those queries (Grandl and others, 2016, tables 1 and 2), the median job has eight or nine stages and a
critical path of five. Scans are wide and need little memory, joins are narrower and need more; a bushy tree
of joins leaves stages that are not on the critical path, which a scheduler may let wait.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StageKind:
    """Stages that do the same: their tasks are of one class of work."""

    name: str
    cpu_millicores: int
    memory_mib: int
    tasks: tuple[int, int]  # fewest and most
    work_seconds: tuple[float, float]  # shortest and longest task, at speed 1


SCAN = StageKind("scan", 500, 1024, (4, 16), (6.0, 14.0))
JOIN = StageKind("join", 1000, 2048, (2, 8), (6.0, 16.0))
SUM = StageKind("sum", 1000, 1024, (1, 2), (3.0, 8.0))
KINDS = (SCAN, JOIN, SUM)
LEFT_DEEP = 0.7  # probability that a join takes the result of the join before it
SCANS = (2, 3, 4, 4, 4, 5, 5, 6)  # of a query, drawn from these


@dataclass(frozen=True)
class Stage:
    """One stage; every task of it has the same work."""

    name: str
    kind: StageKind
    tasks: int
    work_seconds: float  # of each task, at speed 1
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """One job, which comes `at_seconds` after the stream's begin. Stages are in topological order."""

    name: str
    at_seconds: float
    stages: tuple[Stage, ...]

    @property
    def pods(self) -> int:
        """Tasks of all stages."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def core_seconds(self) -> float:
        """Work of all tasks at speed 1, times the cores that they hold."""
        return sum(one.tasks * one.work_seconds * one.kind.cpu_millicores / 1000 for one in self.stages)


def queries(seed: int, count: int, gap_seconds: float) -> list[Query]:
    """Jobs whose arrivals are a Poisson process with this mean gap; the first comes at once."""
    shapes = random.Random(f"{seed} query")
    times = enumerate(arrival_times(seed, count, gap_seconds))
    return [Query(f"query-{number:02d}", at, tuple(_stages(shapes))) for number, at in times]


def arrival_times(seed: int, count: int, gap_seconds: float) -> Iterator[float]:
    """Seconds of a Poisson process with this mean gap, from 0 on."""
    gaps, at = random.Random(f"{seed} gap"), 0.0
    for _ in range(count):
        yield at
        at += gaps.expovariate(1 / gap_seconds)


def path_stages(stages: Sequence[Stage]) -> int:
    """Stages of the longest chain."""
    depth: dict[str, int] = {}
    for stage in stages:
        depth[stage.name] = 1 + max((depth[name] for name in stage.parents), default=0)
    return max(depth.values())


def _stages(rng: random.Random) -> Iterator[Stage]:
    """Scans; joins, each of two that are not joined yet; then one or two sums."""
    names = [f"scan-{number}" for number in range(rng.choice(SCANS))]
    for name in names:
        yield _stage(rng, name, SCAN, ())
    for number in range(len(names) - 1):
        # Mostly the result of the last join with one more scan, as optimisers like it; else two of any.
        first = len(names) - 1 if rng.random() < LEFT_DEEP else rng.randrange(len(names))
        pair = (names.pop(first), names.pop(rng.randrange(len(names))))
        names.append(f"join-{number}")
        yield _stage(rng, names[-1], JOIN, pair)
    (last,) = names
    for number in range(rng.choice((1, 1, 2))):
        name = f"sum-{number}"
        yield _stage(rng, name, SUM, (last,))
        last = name


def _stage(rng: random.Random, name: str, kind: StageKind, parents: tuple[str, ...]) -> Stage:
    return Stage(name, kind, rng.randint(*kind.tasks), round(rng.uniform(*kind.work_seconds), 2), parents)
