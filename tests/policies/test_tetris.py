"""Tetris: alignment, short jobs, fairness, and comparison with a plain loop over all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from builders import make_engine, make_node, make_task
from eclectus.framework import Order, Place
from eclectus.model.objects import Node, Preference, Requirement, Task, Term
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.fit import WorstFit
from eclectus.policies.place.tetris import Tetris, alignment
from worlds import World

PACKING = {"shortness": 0.0, "fairness": 0.0}


class ByJob(FifoOrder):
    """First in, first out, with separate class queues for each job."""

    def group(self, task: Task) -> str:
        return task.job


def placed(policy: Place, tasks: Sequence[Task], *nodes: Node, order: Order | None = None) -> World:
    world = World(make_engine(policy, order=order or ByJob()), *(nodes or (make_node(cpu=10, memory=10),)))
    world.add(*tasks)
    assert world.faults == []
    return world


def names(world: World) -> list[str]:
    return [bind.name for bind in world.binds]


def test_alignment_by_hand() -> None:
    """<4, 2> on a machine of <10, 5> of which <6, 5> is free: 0.4 * 0.6 + 0.4 * 1."""
    world = placed(Tetris(), [make_task("there", cpu=4)], make_node(cpu=10, memory=5))
    view = world.engine._state.view
    task_class = view.task_class(make_task("a", cpu=4, memory=2))
    assert alignment(task_class, np.array([0])).tolist() == pytest.approx([0.4 * 0.6 + 0.4 * 1.0])


def test_the_best_aligned_task_goes_first_and_then_what_fits_beside_it() -> None:
    tasks = [
        make_task("b", cpu=4, memory=4),
        make_task("c", cpu=1, memory=6),
        make_task("a", cpu=8, memory=1),
    ]
    assert names(placed(Tetris(**PACKING), tasks)) == ["a", "c"]  # 0.9, 0.8, 0.7; then 0.1 * 0.2 + 0.6 * 0.9


def test_a_task_goes_to_the_node_with_the_best_alignment() -> None:
    nodes = make_node("small", cpu=10, memory=10), make_node("large", cpu=40, memory=40)
    assert placed(Tetris(), [make_task("a", cpu=4, memory=4)], *nodes).placed() == {"a": "small"}


def test_short_jobs_weigh_as_much_as_alignment() -> None:
    long = make_task("long", cpu=8, memory=8, job="l", estimate=90.0, job_work=90.0)
    short = make_task("short", cpu=6, memory=6, job="s", estimate=10.0, job_work=10.0)
    assert names(placed(Tetris(**PACKING), [short, long])) == ["long"]  # 1.6 against 1.2
    assert names(placed(Tetris(), [long, short])) == ["short"]  # e = 1.4 / 50: -0.92 against 0.92


def test_a_job_without_remaining_work_counts_as_the_longest_known() -> None:
    tasks = [
        make_task("unknown", cpu=6, memory=6, job="m"),
        make_task("long", cpu=6, memory=6, job="l", job_work=90.0),
        make_task("short", cpu=5, memory=5, job="s", job_work=10.0),
    ]
    assert names(placed(Tetris(), tasks)) == ["short"]
    assert names(placed(Tetris(), tasks[:2])) == ["unknown"]


def test_with_fairness_jobs_with_the_largest_shares_wait() -> None:
    def first(fairness: float) -> str:
        world = placed(
            Tetris(shortness=0, fairness=fairness), [make_task(f"a{n}", job="a") for n in range(2)]
        )
        rivals = [make_task("a2", cpu=8, job="a"), *(make_task(f"{job}0", cpu=2, job=job) for job in "bcd")]
        world.add(*rivals)
        return names(world)[2]

    assert first(fairness=0.0) == "a2"
    assert first(fairness=0.25) == "b0"


def test_fairness_leaves_no_room_unused() -> None:
    world = placed(
        Tetris(fairness=0.9), [make_task(f"{job}{n}", job=job) for job in "abcd" for n in range(3)]
    )
    assert len(world.placed()) == 10
    assert set(Counter(name[0] for name in world.placed()).values()) == {2, 3}


def test_a_node_that_meets_no_preference_counts_less() -> None:
    ssd = (Preference(1, Term((Requirement("disk", "In", ("ssd",)),))),)
    nodes = make_node("a", cpu=10, memory=10), make_node("b", cpu=10, memory=10, labels={"disk": "ssd"})
    task = make_task("t", memory=1, preferences=ssd)
    assert placed(Tetris(), [task], *nodes).placed() == {"t": "b"}
    assert placed(Tetris(remote_penalty=0), [task], *nodes).placed() == {"t": "a"}


def test_priority_goes_before_the_score() -> None:
    tasks = [make_task("good", cpu=9, memory=9), make_task("high", cpu=2, priority=1)]
    assert names(placed(Tetris(), tasks)) == ["high"]


def test_equal_scores_alternate_and_equal_tasks_follow_the_order() -> None:
    tasks = [make_task(f"{job}{n}", job=job, created=-n) for job in "ab" for n in range(3)]
    assert names(placed(Tetris(), tasks)) == ["a2", "b2", "a1", "b1", "a0", "b0"]


def test_with_an_order_without_jobs_the_oldest_task_of_each_class_is_compared() -> None:
    long = [make_task(f"l{at}", job="l", estimate=9.0, created=at) for at in range(3)]
    short = [make_task("s", job="s", estimate=1.0, created=9), make_task("w", cpu=2, job="w", estimate=1.0)]
    world = placed(Tetris(), [*long, *short], make_node(cpu=4, memory=4), order=FifoOrder())
    assert names(world) == ["w", "l0", "l1"]


def test_tasks_that_do_not_fit_are_unschedulable_and_counted_once() -> None:
    world = placed(Tetris(), [make_task(f"t{at}", cpu=99, job=f"j{at}") for at in range(5)])
    assert world.engine.queue_counts().unschedulable == 5
    assert world.engine.queue_counts().counters.attempts["unschedulable", "eclectus"] == 5


def seconds_to_run(policy: Place, tasks: Sequence[Task], *nodes: Node) -> float:
    """Makespan in seconds, with ten seconds for every task."""
    world, left = placed(policy, tasks, *nodes), len(tasks)
    rounds = 0
    while left:
        rounds += 1
        running = list(world.placed())
        left -= len(running)
        for name in running:
            world.end(name)
    return 10.0 * rounds


THREE_AND_ONE = [*(make_task(f"s{at}", cpu=3, memory=3) for at in range(3)), make_task("l", cpu=9, memory=9)]
TWO_NODES = (make_node("n0", cpu=10, memory=10), make_node("n1", cpu=10, memory=10))


@pytest.mark.parametrize("other", [WorstFit(), LeastAllocated()])
def test_small_tasks_leave_a_node_free_for_a_large_one(other: Place) -> None:
    assert seconds_to_run(Tetris(), THREE_AND_ONE, *TWO_NODES) == 10.0
    assert seconds_to_run(other, THREE_AND_ONE, *TWO_NODES) == 20.0


def test_two_resources_are_packed_in_less_time_than_by_spreading() -> None:
    shapes = ((1, 1), (2, 1), (1, 3), (9, 2), (2, 8), (7, 7))
    nodes = [make_node(f"n{at}", cpu=10, memory=10) for at in range(4)]

    def makespans(policy: Place) -> list[float]:
        found = []
        for seed in range(6):
            asked = Random(f"tetris {seed}").choices(shapes, k=60)
            tasks = [make_task(f"t{at}", cpu=cpu, memory=memory) for at, (cpu, memory) in enumerate(asked)]
            found.append(seconds_to_run(policy, tasks, *nodes))
        return found

    packed = makespans(Tetris())
    for other in (WorstFit(), LeastAllocated()):
        spread = makespans(other)
        assert all(ours <= theirs for ours, theirs in zip(packed, spread, strict=True))
        assert fmean(packed) < 0.95 * fmean(spread)


def brute(
    tasks: Sequence[Task], capacity: dict[str, dict[str, float]], shortness: float
) -> list[tuple[str, str]]:
    """All pairs of node and first task of a class, for each placement; the placed class goes last."""
    free = {node: dict(amounts) for node, amounts in capacity.items()}
    work, answers = {task.job: task.job_work or 0.0 for task in tasks}, []
    classes: dict[Any, list[Task]] = {}
    for task in tasks:
        classes.setdefault((task.job, task.spec), []).append(task)
    while True:
        offers = []
        for waiting in classes.values():
            fits = [
                (_aligned(waiting[0], capacity[node], left), node)
                for node, left in free.items()
                if all(left[name] >= amount for name, amount in waiting[0].spec.requests)
            ]
            if fits:
                offers.append((*max(fits, key=lambda fit: fit[0]), waiting[0]))
        if not offers:
            return answers
        mean = fmean(work[task.job] for _, _, task in offers)
        each = shortness * fmean(fit for fit, _, _ in offers) / mean if mean else 0.0
        _, node, task = max(offers, key=lambda offer: round(offer[0] - each * work[offer[2].job], 9))
        answers.append((task.name, node))
        work[task.job] = max(work[task.job] - (task.estimate or 0.0), 0.0)
        for name, amount in task.spec.requests:
            free[node][name] -= amount
        rest = classes.pop((task.job, task.spec))[1:]
        if rest:
            classes[task.job, task.spec] = rest


def _aligned(task: Task, whole: dict[str, float], left: dict[str, float]) -> float:
    return sum(amount / whole[name] * left[name] / whole[name] for name, amount in task.spec.requests)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("shortness", [0.0, 1.0])
def test_a_loop_over_all_pairs_gives_the_same_placements(seed: int, shortness: float) -> None:
    rng = Random(f"brute {seed}")
    sizes = {f"n{at}": (rng.choice((11, 17, 23)), rng.choice((13, 19, 29))) for at in range(3)}
    totals = {job: float(rng.randrange(30, 90)) for job in "abc"}
    tasks = [
        make_task(
            f"t{at}",
            cpu=rng.choice((1, 3, 7)),
            memory=rng.choice((1, 2, 5)),
            job=job,
            estimate=rng.choice((2.0, 5.0)),
            job_work=totals[job],
            created=at,
        )
        for at, job in enumerate(rng.choices("abc", k=25))
    ]
    nodes = [make_node(name, cpu=cpu, memory=memory) for name, (cpu, memory) in sizes.items()]
    world = placed(Tetris(shortness=shortness, fairness=0), tasks, *nodes)
    capacity = {node.name: {name: float(amount) for name, amount in node.allocatable} for node in nodes}
    assert [(bind.name, bind.node) for bind in world.binds] == brute(tasks, capacity, shortness)
