"""How much of each part is measured."""

from dataclasses import dataclass

from eclectus_bench import (
    decisions,
    engine,
    many_pools,
    plans,
    preemption,
    questions,
    simulator,
    starved,
)
from eclectus_bench.contest import plan as contest
from eclectus_bench.dags import plan as dags
from eclectus_bench.match import Sizes
from eclectus_bench.rules import measure as rules
from eclectus_bench.workloads import prebind
from eclectus_bench.workloads import site as workloads


@dataclass(frozen=True)
class Course:
    """How much of each part is measured."""

    decisions: decisions.Course
    engine: engine.Course
    rules: rules.Course
    plans: plans.Course
    tasks: int  # of the simulator
    counted: int  # tasks of which the simulator's bytecodes are counted
    requests: int  # of each client, in each round
    match: Sizes
    workloads: workloads.Sizes
    preemption: preemption.Sizes
    prebind: prebind.Sizes
    starts: int  # of each scheduler
    starved: starved.Sizes
    questions: questions.Sizes
    pools: many_pools.Sizes
    tenants: contest.Sizes
    dags: dags.Sizes


FULL = Course(
    decisions=decisions.FULL,
    engine=engine.FULL,
    rules=rules.FULL,
    plans=plans.FULL,
    tasks=1_000_000,
    counted=simulator.COUNTED_TASKS,
    requests=10_000,
    match=Sizes(nodes=5_000, pods=5_000, pairs=3, stream_seconds=15.0),
    workloads=workloads.Sizes(nodes=5_000, pairs=3, pods=None, standing=4_000, waiting=10_000),
    preemption=preemption.Sizes(nodes=5_000, preemptors=2_000),
    prebind=prebind.Sizes(
        nodes=5_000, pods=8_000, pairs=5, waiting=100, provision_seconds=30.0, rest_seconds=8.0
    ),
    starts=5,
    starved=starved.Sizes(loops=(0, 2, 5), pairs=5, seconds=40.0),
    questions=questions.Sizes(nodes=1_000, pairs=5, pods_per_second=50.0, seconds=40.0),
    pools=many_pools.Sizes(nodes=1_000, pods=5_000, departments=10, pairs=3),
    tenants=contest.FULL,
    dags=dags.FULL,
)
QUICK = Course(
    decisions=decisions.QUICK,
    engine=engine.QUICK,
    rules=rules.QUICK,
    plans=plans.QUICK,
    tasks=10_000,
    counted=150,
    requests=64,
    match=Sizes(nodes=100, pods=300, pairs=1, stream_seconds=3.0),
    workloads=workloads.Sizes(nodes=100, pairs=1, pods=50, standing=4_000, waiting=100),
    preemption=preemption.Sizes(nodes=50, preemptors=20),
    prebind=prebind.Sizes(nodes=50, pods=300, pairs=1, waiting=10, provision_seconds=2.0, rest_seconds=0.5),
    starts=1,
    starved=starved.Sizes(loops=(1,), pairs=1, seconds=5.0),
    questions=questions.Sizes(nodes=50, pairs=1, pods_per_second=20.0, seconds=4.0),
    pools=many_pools.Sizes(nodes=50, pods=300, departments=1, pairs=1),
    tenants=contest.QUICK,
    dags=dags.QUICK,
)
