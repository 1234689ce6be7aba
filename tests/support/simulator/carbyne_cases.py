"""Generated sets of DAG jobs, without Pools and in trees of them, on nodes of eight cores in all."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node
from dag_world import DagWorld, job, stage
from eclectus.maths.dag_plan import StageLeft, planned
from eclectus.maths.stage_rank_rules import STAGE_ORDERS
from eclectus.model.job import Job
from eclectus.model.pool import NO_AMOUNTS, Pool, PoolAmounts
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.planner import Planner
from eclectus.policies.place.fit import BestFit

CAPACITY = 8000  # thousandths of a core
CASES = 200
LEAVES = "a", "b1", "b2"
LEAST_SHARE = 0.4 * 0.4 * CAPACITY / 2  # of a job: weights are 1 or 1.5 on both levels, minima leave as much


class Case(NamedTuple):
    """One of the generated cases: jobs of some shape, which `in_pools` are in those of a tree."""

    seed: int
    in_pools: bool = False

    def world(self, nodes: int = 1, seed: int = 0, **settings: object) -> DagWorld:
        """Nodes with 8 cores together. `seed`: of the engine."""
        order = Carbyne(**settings)  # type: ignore[arg-type]
        each = [make_node(f"n{at}", cpu=8 / nodes, pods=500) for at in range(nodes)]
        engine = make_engine(BestFit(), order=order, seed=seed)
        return DagWorld(engine, each, pools=tree(self.seed) if self.in_pools else [])

    def jobs(self, count: int = 4) -> list[Job]:
        """Jobs of a few stages; all tasks are small beside a share."""
        return self.spread(random_jobs(self.seed, count))

    def large_jobs(self, count: int) -> list[Job]:
        """Jobs of more stages and tasks: their order decides more, and a new list schedule may be longer."""
        return self.spread(large_jobs(self.seed, count))

    def spread(self, jobs: list[Job]) -> list[Job]:
        """The jobs in pools of the tree, as many in each, or one more in some."""
        if not self.in_pools:
            return jobs
        leaves = list(LEAVES) * (len(jobs) // len(LEAVES) + 1)
        chosen = Random(self.seed).sample(leaves, len(jobs))
        return [replace(each, pool=leaf) for each, leaf in zip(jobs, chosen, strict=True)]


def generated(quick: int = 12) -> pytest.MarkDecorator:
    """A test for each seed, without Pools and in a tree of some; the later ones are slow."""
    cases = [
        pytest.param(
            Case(seed, in_pools),
            id=f"{seed}-pools" if in_pools else f"{seed}",
            marks=() if seed < fast else pytest.mark.slow,
        )
        for in_pools, fast in ((False, quick), (True, quick // 2))
        for seed in range(CASES)
    ]
    return pytest.mark.parametrize("case", cases)


def tree(seed: int) -> list[Pool]:
    """Pools of random weights, minima and altruism, of which each holds a task of each of two jobs."""
    random = Random(seed)

    def pool(name: str, least: tuple[int, ...], **fields: Any) -> Pool:
        amount = random.choice(least)
        return Pool(
            name,
            namespaces=() if name == "b" else ("default",),
            weight=random.choice([1.0, 1.5]),
            min_share=PoolAmounts((("cpu", amount),)) if amount else NO_AMOUNTS,
            altruism=random.choice([1.0, 1.0, 0.5, 0.0]),
            **fields,
        )

    below = [pool(name, (0, 500, 1500), parent="b") for name in ("b1", "b2")]
    return [pool("a", (0, 1000, 4000)), pool("b", (0, 1000, 4000)), *below]


def planner_of(run: DagWorld) -> Planner:
    """The plans of the engine of a world."""
    planner = run.engine._state.profiles["eclectus"].order._planner  # type: ignore[attr-defined]
    assert isinstance(planner, Planner)
    return planner


def random_jobs(seed: int, count: int = 4) -> list[Job]:
    """Jobs of a few stages; all tasks are small beside a share."""
    random = Random(seed)
    jobs = []
    for at in range(count):
        stages = [
            stage(
                f"s{of}",
                random.randrange(1, 6),
                random.choice([200, 400, 500]),
                random.choice([1.0, 2.0, 5.0]),
                *([random.randrange(of)] if of and random.random() < 0.7 else []),
            )
            for of in range(random.randrange(1, 5))
        ]
        jobs.append(job(f"j{at}", *stages))
    return jobs


def large_jobs(seed: int, count: int) -> list[Job]:
    """Jobs of more stages and tasks.

    Every other seed has run times of which none is a multiple of another.
    """
    random = Random(seed)
    jobs = []
    for at in range(count):
        stages = [
            stage(
                f"s{of}",
                random.randrange(1, 20),
                random.choice([200, 400, 500]),
                round(random.uniform(0.5, 6.0), 2) if seed % 2 else random.choice([1.0, 2.0, 5.0]),
                *([random.randrange(of)] if of and random.random() < 0.7 else []),
            )
            for of in range(random.randrange(3, 7))
        ]
        jobs.append(job(f"j{at}", *stages))
    return jobs


def alone_in(share: float, each: Job, intra: str = "cp") -> float:
    """How long a job takes in a share of its own, seconds."""
    left = [
        StageLeft(one.tasks, (one.spec.requests[0][1],), one.seconds or 0.0, one.parents)
        for one in each.stages
    ]
    order = STAGE_ORDERS[intra]
    plan = planned(left, (share,), order.ranks(left, (share,)), by_alignment=order.by_alignment)
    return plan.finish_seconds
