"""What a step of the engine costs while much waits: it should cost what has changed, not what waits.

Every case is an engine of its own, in a process of its own and without an API server: nodes, pods that wait,
and then the same kind of step several times. CPU time; the figure of a case is the median over its steps. The
last case is a minute of a busy cluster, and its figure the longest step: everything else waits meanwhile.
"""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Literal

from msgspec.structs import replace as with_fields

from eclectus.framework import Order
from eclectus.model.events import NodeSeen, PoolSeen, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Preference, Requirement, Term
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.order.pools import FairPools
from eclectus_bench.steps import busy_minute, demo_stream, flow_rounds, pool_trees, prices
from eclectus_bench.steps.dag_jobs import GATE, WIDE, DagJobs
from eclectus_bench.steps.driver import (
    HOSTNAME,
    ZONE,
    Driver,
    ended,
    make_node,
    make_spec,
    make_task,
    node_name,
    recalled,
    running,
)

HELD_CLASSES = 20
ROUNDS = 5  # of Quincy: each is some tenths of a second
FAST, SLOW = 1.0, 0.01  # tasks a second, as learned: for every task, waiting for a fast node is better
DRF_NODES_MOST = 1_000


@dataclass(frozen=True)
class Course:
    """The sizes of the cases, and how many steps are measured for each."""

    nodes: int
    held_back: int
    jobs: tuple[int, ...]
    pools: tuple[int, ...]
    in_pools: int  # pods that wait in them
    jobs_in_pools: int  # DAG jobs, each in a pool of its own
    unplaceable: int
    terms: int
    pending: int  # pods that are matched with anti-affinity terms
    minute: busy_minute.Size
    priced: tuple[int, ...]  # nodes
    sets: int  # of constraints, that make their prices
    streamed: int  # pods of the demo's stream
    rounds: tuple[tuple[int, int, int], ...]  # of Quincy: nodes, jobs and pods
    steps: int


FULL = Course(
    nodes=5_000,
    held_back=10_000,
    jobs=(100, 1_000, 5_000, 10_000),
    pools=(100, 1_000, 10_000),
    in_pools=20_000,
    jobs_in_pools=400,
    unplaceable=1_500,
    terms=49,
    pending=10_000,
    minute=busy_minute.Size(nodes=5_000, workloads=64, pods_per_second=200.0, seconds=60),
    priced=(500, 15_000),
    sets=1_000,
    streamed=3_000,
    rounds=((250, 40, 2_000), (2_500, 100, 2_000), (10_000, 1_000, 2_000)),
    steps=25,
)
QUICK = Course(
    nodes=200,
    held_back=500,
    jobs=(50, 200),
    pools=(30, 90),
    in_pools=180,
    jobs_in_pools=20,
    unplaceable=50,
    terms=4,
    pending=100,
    minute=busy_minute.Size(nodes=200, workloads=4, pods_per_second=20.0, seconds=10),
    priced=(100,),
    sets=100,
    streamed=50,
    rounds=((50, 10, 100),),
    steps=5,
)


@dataclass(frozen=True)
class EngineCost:
    """One case: CPU time of a step, in milliseconds."""

    case: str
    median_ms: float
    least_ms: float
    most_ms: float
    wanted_ms: float | None  # less than this, with the sizes of the full course; None: nothing is wanted
    counts: Literal["median", "most"] = "median"  # the figure that is to be less

    @property
    def met(self) -> bool | None:
        """Whether the figure that counts is as wanted; None where nothing is."""
        figure = self.median_ms if self.counts == "median" else self.most_ms
        return None if self.wanted_ms is None else figure < self.wanted_ms


def measure(course: Course = FULL) -> Iterator[list[EngineCost]]:
    """The costs of every case, each in a new process."""
    context = multiprocessing.get_context("forkserver")  # its processes have nothing but these imports
    context.set_forkserver_preload([__name__])
    for case, course_of_case in _cases(course):
        with ProcessPoolExecutor(1, context) as pool:
            yield pool.submit(case, course_of_case).result()


HEAD = f"{'step of the engine, ms CPU':<76}{'median':>10}{'least':>10}{'most':>10}   wanted"


def lines(costs: Sequence[EngineCost]) -> Iterator[str]:
    """The table, for people."""
    for cost in costs:
        figures = f"{cost.median_ms:>10.3f}{cost.least_ms:>10.3f}{cost.most_ms:>10.3f}"
        verdict = (
            ""
            if cost.met is None
            else f"{cost.counts} < {cost.wanted_ms:g} {'met' if cost.met else 'MISSED'}"
        )
        yield f"{cost.case:<76}{figures}   {verdict}".rstrip()


def _cost(
    driver: Driver, case: str, once: Callable[[int], None], steps: int, wanted_ms: float | None = None
) -> EngineCost:
    """`once(number)` takes the steps of a case; those of number 0 are not counted."""
    found = []
    for number in range(steps + 1):
        if number == 1:
            gc.collect()
        driver.milliseconds = 0.0
        once(number)
        found.append(driver.milliseconds)
    return EngineCost(case, median(found[1:]), min(found[1:]), max(found[1:]), wanted_ms)


# -- cases -------------------------------------------------------------------------------------

Case = Callable[[Course], list[EngineCost]]


def _cases(course: Course) -> Iterator[tuple[Case, Course]]:
    yield held_back, course
    for jobs in course.jobs:
        yield drf_jobs, replace(course, jobs=(jobs,))
    for jobs in course.jobs:
        yield h_drf_jobs, replace(course, jobs=(jobs,))
    for pools in course.pools:
        yield drf_namespaces, replace(course, pools=(pools,))
        yield fair_pools, replace(course, pools=(pools,))
    for jobs in course.jobs:
        yield dag_jobs, replace(course, jobs=(jobs,))
    yield dag_jobs_in_pools, course
    yield own_preferences, course
    yield unplaceable, course
    yield anti_affinity, course
    for nodes in course.priced:
        yield node_prices, replace(course, priced=(nodes,))
    yield streamed, course
    for each in course.rounds:
        yield flow_round, replace(course, rounds=(each,))
    yield longest_step, course


def held_back(course: Course) -> list[EngineCost]:
    """Fast nodes are full and slow ones have room: every task that waits is better off waiting."""
    nodes = [make_node(at, cpu=1_000) for at in range(course.nodes)]
    driver, fast = Driver(FifoOrder(), nodes), nodes[::2]
    driver.step(*(recalled(node, SLOW if at % 2 else FAST) for at, node in enumerate(nodes)))
    tasks = [running(f"running-{node.name}", node) for node in fast]
    driver.step(*map(TaskSeen, tasks))
    specs = [make_spec(cpu=900 + at) for at in range(HELD_CLASSES)]
    driver.wait(*(make_task(f"held-{at}", specs[at % HELD_CLASSES]) for at in range(course.held_back)))
    if driver.engine.queue_counts().unschedulable:
        raise RuntimeError("tasks should be held back although nodes have room")

    def nothing_happens(number: int) -> None:
        driver.wait(make_task(f"foreign-{number}", profile="other"))

    def one_ends(number: int) -> None:
        driver.bind_one(TaskSeen(ended(tasks[number], driver.now)))

    case = f"{course.held_back:,} tasks ({HELD_CLASSES} classes) held back, {course.nodes:,} nodes"
    return [
        _cost(driver, f"{case}: nothing happens", nothing_happens, course.steps, 0.1),
        _cost(driver, f"{case}: a task ends, one is bound", one_ends, course.steps),
    ]


def drf_jobs(course: Course) -> list[EngineCost]:
    """Jobs of one class wait in the order of their shares; all nodes are full."""
    return _waiting_jobs(course, DominantShare(by="job"), 1, "drf", 0.5)


def h_drf_jobs(course: Course) -> list[EngineCost]:
    """The same in two namespaces, four pods a job, in the order of the shares of namespaces and of jobs."""
    return _waiting_jobs(course, HierarchicalShare(), 4, "h-drf, 4 pods each", 1.0)


def _waiting_jobs(course: Course, order: Order, pods: int, name: str, wanted: float) -> list[EngineCost]:
    nodes = [make_node(at, cpu=1_000) for at in range(min(course.nodes, DRF_NODES_MOST))]
    driver, (jobs,) = Driver(order, nodes), course.jobs
    tasks = [running(f"running-{node.name}", node, job=f"old-{node.name}") for node in nodes]
    driver.step(*map(TaskSeen, tasks))
    tasks_of_jobs = (
        with_fields(make_task(f"waiting-{at}-{pod}", job=f"job-{at}"), namespace="ab"[at % 2])
        for at in range(jobs)
        for pod in range(pods)
    )
    driver.wait(*tasks_of_jobs)

    def one_ends(number: int) -> None:
        driver.bind_one(TaskSeen(ended(tasks[number], driver.now)))

    return [
        _cost(
            driver,
            f"{jobs:,} jobs of one class ({name}): a task ends, one is bound",
            one_ends,
            course.steps,
            wanted,
        )
    ]


def drf_namespaces(course: Course) -> list[EngineCost]:
    """Pods of many namespaces wait in the order of the shares of namespaces: what pools are compared with."""
    return _in_pools(course, DominantShare(), "namespaces (drf)", None)


def fair_pools(course: Course) -> list[EngineCost]:
    """The same in pools of three levels, in the order of what each pool holds; jobs have one pod each."""
    return _in_pools(course, FairPools(), "pools of three levels (pools)", 1.0)


def _in_pools(course: Course, order: Order, name: str, wanted: float | None) -> list[EngineCost]:
    nodes = [make_node(at, cpu=1_000) for at in range(min(course.nodes, DRF_NODES_MOST))]
    driver, (count,) = Driver(order, nodes), course.pools
    if isinstance(order, FairPools):
        driver.step(*map(PoolSeen, pool_trees.pools_of(count)))
    tasks = [
        pool_trees.of_pool(running(f"running-{each.name}", each), at % count) for at, each in enumerate(nodes)
    ]
    driver.step(*map(TaskSeen, tasks))
    driver.wait(
        *(pool_trees.of_pool(make_task(f"waiting-{at}"), at % count) for at in range(course.in_pools))
    )

    def one_ends(number: int) -> None:
        driver.bind_one(TaskSeen(ended(tasks[number], driver.now)))

    case = f"{count:,} {name}, {course.in_pools:,} pods: a task ends, one is bound"
    return [_cost(driver, case, one_ends, course.steps, wanted)]


def dag_jobs(course: Course) -> list[EngineCost]:
    """DAG jobs are planned, and wait in the order of what is due; all nodes are full."""
    (jobs,) = course.jobs
    return _dag_jobs(course, DagJobs(jobs, min(course.nodes, DRF_NODES_MOST)), f"{jobs:,} DAG jobs (carbyne)")


def dag_jobs_in_pools(course: Course) -> list[EngineCost]:
    """The same, each job in a Pool of its own."""
    jobs = course.jobs_in_pools
    world = DagJobs(jobs, min(course.nodes, DRF_NODES_MOST), pools=jobs)
    return _dag_jobs(course, world, f"{jobs:,} DAG jobs in as many Pools (carbyne)")


def _dag_jobs(course: Course, world: DagJobs, case: str) -> list[EngineCost]:
    ends = {WIDE: "a task ends, one is bound (two steps)", GATE: "a stage ends, so that shares change"}
    return [
        _cost(world.driver, f"{case}: {what}", partial(world.end_one, stage), course.steps)
        for stage, what in ends.items()
    ]


def own_preferences(course: Course) -> list[EngineCost]:
    """Every pod has preferences that no other pod has, and so a class of its own."""
    driver = Driver(FifoOrder(), [make_node(at) for at in range(course.nodes)])

    def arrives(number: int) -> None:
        zone = Term((Requirement(ZONE, "In", (f"zone-{number % 3}",)),))
        own = Term((Requirement(HOSTNAME, "In", (node_name(number), node_name(number + 7))),))
        spec = make_spec(preferences=(Preference(1 + number % 100, zone), Preference(50, own)))
        driver.bind_one(TaskSeen(make_task(f"pod-{number}", spec)))

    case = f"a pod with preferences of its own, {course.nodes:,} nodes"
    return [_cost(driver, case, arrives, course.steps, 1.0)]


def unplaceable(course: Course) -> list[EngineCost]:
    """Pods that no node may run, each by a selector of its own, beside ordinary pods and changing nodes."""
    driver = Driver(FifoOrder(), [make_node(at) for at in range(course.nodes)])
    specs = [make_spec(100 + at, node_selector=(("team", f"t{at}"),)) for at in range(course.unplaceable)]
    driver.wait(*(make_task(f"unplaceable-{at}", spec) for at, spec in enumerate(specs)))

    def ordinary(number: int) -> None:
        driver.bind_one(TaskSeen(make_task(f"ordinary-{number}")))

    def changes(number: int) -> None:
        driver.step(NodeSeen(make_node(number, cpu=31_000)))

    case = f"{course.unplaceable:,} different unplaceable pods, {course.nodes:,} nodes"
    return [
        _cost(driver, f"{case}: an ordinary pod", ordinary, course.steps, 5.0),
        _cost(driver, f"{case}: a node changes", changes, course.steps, 50.0),
    ]


def anti_affinity(course: Course) -> list[EngineCost]:
    """A bound pod brings an anti-affinity term of a new kind, which pods that wait must be matched with."""
    driver = Driver(FifoOrder(), [make_node(at) for at in range(100)])
    labels, too_large = (("app", "waits"), ("tier", "back")), make_spec(cpu=64_000)
    driver.wait(*(make_task(f"waits-{at}", too_large, labels=labels) for at in range(course.pending)))

    def appears(number: int) -> None:
        term = PodAffinityTerm(HOSTNAME, (Requirement("app", "In", (f"app-{number}",)),), ("bench",))
        holder = running(f"holder-{number}", make_node(number % 100), anti_affinity_terms=(term,))
        driver.step(TaskSeen(holder))

    for number in range(course.terms):
        appears(-1 - number)
    case = f"{course.pending:,} pending in one namespace: anti-affinity kind {course.terms + 1} appears"
    return [_cost(driver, case, appears, course.steps, 5.0)]


def node_prices(course: Course) -> list[EngineCost]:
    """All sets of constraints demand another amount; and a pod is placed by the prices of all of them."""
    (nodes,) = course.priced
    updates = list(prices.every_demand_moves(nodes, course.sets, course.steps))
    whole, longest = [sum(steps) for steps in updates], [max(steps) for steps in updates]
    driver = prices.priced(nodes, course.sets)

    def arrives(number: int) -> None:
        driver.bind_one(TaskSeen(make_task(f"any-{number}")))

    case = f"prices of {nodes:,} nodes by {course.sets:,} sets"
    return [
        EngineCost(f"{case}: all are updated, in several steps", median(whole), min(whole), max(whole), 50.0),
        EngineCost(f"{case}: the longest of these steps", median(longest), min(longest), max(longest), None),
        _cost(driver, f"{case}: a pod is bound (two steps)", arrives, course.steps),
    ]


def streamed(course: Course) -> list[EngineCost]:
    """The demo's stream at load .9, with waits that are planned anew in every cycle and prices."""
    found = demo_stream.step_milliseconds(course.streamed)
    case = f"the demo's stream at load .9, 30 nodes, {course.streamed:,} pods: all {len(found):,} steps"
    return [EngineCost(case, median(found), min(found), max(found), 0.7)]


def flow_round(course: Course) -> list[EngineCost]:
    """The network of a full round of Quincy is made, and its answer committed; solved in between."""
    ((nodes, jobs, pods),) = course.rounds
    found = list(flow_rounds.rounds(nodes, jobs, pods, ROUNDS))
    case = f"a round of Quincy, {pods:,} pods of {jobs:,} jobs, {nodes:,} nodes, {found[-1].arcs:,} arcs"
    parts = {"network made": [each.made for each in found], "committed": [each.committed for each in found]}
    if all(each.solved for each in found):
        parts["solved by OR-Tools, and read"] = [each.solved for each in found]
    return [
        EngineCost(f"{case}: {part}", median(times), min(times), max(times), None)
        for part, times in parts.items()
    ]


def longest_step(course: Course) -> list[EngineCost]:
    """All steps of a minute in which everything happens that costs the engine time."""
    found, size = busy_minute.step_milliseconds(course.minute), course.minute
    case = f"a busy minute, {size.nodes:,} nodes, {size.workloads} workloads: all {len(found):,} steps"
    return [EngineCost(case, median(found), min(found), max(found), 50.0, "most")]
