"""What shares and plans of DAG jobs cost (`eclectus.maths`), without engine and policy.

Jobs of 8 stages and 150 tasks on average share a cluster of 1,000 nodes. Shares are computed for all of them
at once, and a job is planned in its own share: the more jobs, the smaller the shares and
the longer the plans.
CPU time; each computation counts with the least of its repetitions, because other processes only add to it.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from eclectus.maths.dag_plan import StageLeft, planned
from eclectus.maths.fair_shares import dominant_shares, hierarchical_shares, pool_tree
from eclectus.maths.stage_rank_rules import dagps

CAPACITY = (32_000_000.0, 128_000_000.0, 200_000.0)  # of the nodes: milli-CPU, MB, Mbit/s
STAGES, TASKS = 8, 150  # of a job, on average
POOLS, TEAMS = 10, 50
REPETITIONS = 3
WANTED_MS = 1.0  # for a plan, median


@dataclass(frozen=True)
class Course:
    """How many jobs share the cluster, and how many of them are planned."""

    jobs: tuple[int, ...]
    planned: int


FULL = Course(jobs=(100, 1_000, 5_000), planned=100)
QUICK = Course(jobs=(10, 50), planned=5)


@dataclass(frozen=True)
class PlanCost:
    """Milliseconds of CPU."""

    jobs: int
    shares_ms: float  # of all jobs
    tree_ms: float  # of all jobs, in a tree of pools
    plan_ms: float  # of one job, median
    plan_most_ms: float  # of the job that takes longest
    dagps_ms: float  # ranks of the stages of one job, median

    @property
    def met(self) -> bool:
        """Whether a plan costs as little as wanted."""
        return self.plan_ms < WANTED_MS


HEAD = f"{'shares and plans, ms CPU':<28}" + "".join(
    f"{title:>13}" for title in ("shares", "in a tree", "a plan", "the longest", "by dagps")
)


def measure(course: Course) -> Iterator[PlanCost]:
    """One row for each number of jobs."""
    for count in course.jobs:
        yield _measure(count, course.planned)


def line(cost: PlanCost) -> str:
    """The row, for people."""
    figures = (cost.shares_ms, cost.tree_ms, cost.plan_ms, cost.plan_most_ms, cost.dagps_ms)
    verdict = f"a plan < {WANTED_MS:g} {'met' if cost.met else 'MISSED'}"
    return (
        f"{f'{cost.jobs:,} jobs':<28}" + "".join(f"{figure:>13.3f}" for figure in figures) + f"   {verdict}"
    )


def _measure(count: int, sample: int) -> PlanCost:
    rng = random.Random(1)
    jobs = [_job(rng) for _ in range(count)]
    demands, most = _demands(jobs)
    weights, capacity = np.ones(count), np.array(CAPACITY)
    tree = pool_tree([(f"{at % POOLS}", f"{at % TEAMS}") for at in range(count)], {})
    shares = dominant_shares(demands, weights, capacity, most).tolist()
    some = range(0, count, -(-count // sample))
    plans = [_least_ms(lambda at=at: planned(jobs[at], shares[at])) for at in some]  # type: ignore[misc]
    return PlanCost(
        count,
        _least_ms(lambda: dominant_shares(demands, weights, capacity, most)),
        _least_ms(lambda: hierarchical_shares(demands, weights, capacity, tree, most)),
        median(plans),
        max(plans),
        median(_least_ms(lambda at=at: dagps(jobs[at], shares[at])) for at in some),  # type: ignore[misc]
    )


def _job(rng: random.Random) -> list[StageLeft]:
    """Each stage has up to two parents among those before it."""
    return [
        StageLeft(
            1 + int(rng.expovariate(STAGES / TASKS)),
            (rng.randint(1, 16) * 250, rng.randint(1, 16) * 500, rng.randint(0, 10)),
            rng.uniform(1.0, 60.0),
            tuple(sorted(rng.sample(range(at), min(at, rng.randint(0, 2))))),
        )
        for at in range(rng.randint(1, 2 * STAGES - 1))
    ]


def _demands(jobs: Sequence[list[StageLeft]]) -> tuple[np.ndarray, np.ndarray]:
    """Of all that is left: weighted by run time, and as it is; shape [jobs, resources]."""
    tasks = [
        np.array([[*stage.demand] for stage in job]) * [[stage.waiting] for stage in job] for job in jobs
    ]
    seconds = [np.array([[stage.seconds] for stage in job]) for job in jobs]
    work = [(each * long).sum(axis=0) for each, long in zip(tasks, seconds, strict=True)]
    return np.array(work), np.array([each.sum(axis=0) for each in tasks], dtype=float)


def _least_ms(compute: Callable[[], object]) -> float:
    found = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        compute()
        found.append(time.process_time() - began)
    return min(found) * 1e3
