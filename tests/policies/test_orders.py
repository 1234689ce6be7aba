"""Orders with groups and jobs: examples, properties, and comparison with a plain sorted list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.config.configuration import parse
from eclectus.framework import Order
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.sjf import ShortestJob
from eclectus.policies.order.srtf import LeastWorkLeft
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World


def filled(order: Order, tasks: Sequence[Task], **node: Any) -> World:
    """Tasks that arrive together at one node."""
    world = World(make_engine(LeastAllocated(), order=order), make_node(**node))
    world.add(*tasks)
    assert world.faults == []
    return world


def taken(order: Order, tasks: Sequence[Task], **node: Any) -> list[str]:
    """Their names in the order of their binds."""
    return [bind.name for bind in filled(order, tasks, **node).binds]


def demands(group: str, count: int, cpu: float, memory: float = 0, **fields: Any) -> list[Task]:
    """`count` equal pods of one namespace, created one after the other."""
    tasks = [make_task(f"{group}{at}", cpu, memory=memory, created=at, **fields) for at in range(count)]
    return [replace(task, namespace=group) for task in tasks]


def share(world: World, group: str) -> float:
    (usage,) = world.engine._state.view.shares_by_policy.values()
    return usage.dominant_share(group)


def counts(names: Sequence[str]) -> dict[str, int]:
    return dict(Counter(name[0] for name in names))


# -- dominant resource fairness ------------------------------------------------------------------------

USERS = [*demands("A", 20, cpu=1, memory=4), *demands("B", 20, cpu=3, memory=1)]


def test_the_paper_s_example() -> None:
    world = filled(DominantShare(), USERS, cpu=9, memory=18)
    assert counts([bind.name for bind in world.binds]) == {"A": 3, "B": 2}
    assert share(world, "A") == share(world, "B") == 2 / 3
    cluster = world.engine._state.cluster
    used = dict(zip(cluster.columns, cluster.used[0].tolist(), strict=True))
    assert (used["cpu"], used["memory"]) == (9000, 14 * 2**30)


def test_a_group_gains_nothing_by_overstating_its_requests() -> None:
    others = demands("B", 100, cpu=3, memory=1)

    def useful(claimed: float) -> int:
        tasks = [*demands("A", 100, cpu=1, memory=claimed), *others]
        return counts(taken(DominantShare(), tasks, cpu=100, memory=100))["A"]

    assert useful(claimed=2) in (33, 34)  # 100/3 where tasks can be divided
    assert useful(claimed=3) == 25


def test_a_group_of_twice_the_weight_gets_twice_as_much() -> None:
    tasks = [*demands("A", 30, cpu=1), *demands("B", 30, cpu=1)]
    assert counts(taken(DominantShare(weights={"A": 2.0}), tasks, cpu=12)) == {"A": 8, "B": 4}


def test_equal_weighted_shares_compare_as_equal_and_age_decides() -> None:
    tasks = [*demands("A", 9, cpu=1), *demands("B", 3, cpu=1)]
    names = taken(DominantShare(weights={"A": 3.0}), [replace(task, created=0) for task in tasks], cpu=12)
    assert names == ["A0", "B0", "A1", "A2", "A3", "B1", "A4", "A5", "A6", "B2", "A7", "A8"]


def test_what_a_group_holds_already_counts() -> None:
    world = filled(DominantShare(), demands("A", 3, cpu=1), cpu=6)
    world.add(
        *demands("B", 9, cpu=1),
        *(replace(task, name=f"Z{task.name}", uid=f"Z{task.name}") for task in demands("A", 9, cpu=1)),
    )
    assert counts([bind.name for bind in world.binds[3:]]) == {"B": 3}


def test_priority_goes_before_shares() -> None:
    tasks = [*demands("A", 4, cpu=1, priority=1), *demands("B", 4, cpu=1)]
    assert counts(taken(DominantShare(), tasks, cpu=5)) == {"A": 4, "B": 1}


@pytest.mark.parametrize(
    ("order", "groups"),
    [
        (DominantShare(by="namespace"), ["default", "default"]),
        (DominantShare(by="job"), ["j", "uid-b"]),
        (DominantShare(by="label", label="team"), ["x", ""]),
    ],
)
def test_groups_are_formed_as_set(order: DominantShare, groups: list[str]) -> None:
    tasks = [make_task("a", job="j", labels=(("team", "x"),)), make_task("b")]
    assert [order.group(task) for task in tasks] == groups


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("by: label", "order.label: belongs to by: label"),
        ("label: team", "order.label: belongs to by: label"),
        ("by: pool", "order.by: 'pool' is unknown; known are: job, label, namespace"),
        ("weights: {a: 0}", "order.weights.a: 0 is too small"),
    ],
)
def test_settings_that_make_no_sense_are_named(said: str, words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(
            "apiVersion: eclectus.dev/v1alpha1\nkind: SchedulerConfiguration\n"
            f"profiles: [{{schedulerName: a, order: {{policy: drf, {said}}}}}]"
        )
    assert words in str(refused.value)


DEMAND = st.tuples(st.integers(1, 9), st.integers(1, 9))
GROUPS = st.lists(st.tuples(DEMAND, st.sampled_from((1.0, 2.0, 3.0))), min_size=2, max_size=4)


@given(GROUPS)
@settings(max_examples=40, deadline=None)
def test_sharing_incentive_up_to_a_task_of_each(groups: list[tuple[tuple[int, int], float]]) -> None:
    """A group with waiting tasks holds its share of the cluster, less one task of each group.

    When a task of i does not fit, resource r is full but for its demand: 1 < sum of (w_j L + d_j), L = i's
    share over its weight, because each j was given its last task when its own was no larger than L.
    """
    size = 60
    names = "ABCD"[: len(groups)]
    weights = dict(zip(names, (weight for _, weight in groups), strict=True))
    tasks = [
        task
        for name, ((cpu, memory), _) in zip(names, groups, strict=True)
        for task in demands(name, size, cpu=cpu, memory=memory)
    ]
    world = filled(DominantShare(weights=weights), tasks, cpu=size, memory=size, pods=10_000)
    dominant = {name: Fraction(max(demand), size) for name, (demand, _) in zip(names, groups, strict=True)}
    left = 1 - sum(dominant.values())
    for name in names:
        part = Fraction(weights[name]) / sum(map(Fraction, weights.values()))
        assert share(world, name) >= float(part * left) - 1e-12


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from((1.0, 2.0, 0.5))), min_size=2, max_size=5),
    st.integers(1, 40),
)
@settings(max_examples=40, deadline=None)
def test_of_one_resource_the_shares_are_max_min_fair(asked: list[tuple[int, float]], room: int) -> None:
    names = "ABCDE"[: len(asked)]
    weights = dict(zip(names, (weight for _, weight in asked), strict=True))
    tasks = [t for name, (count, _) in zip(names, asked, strict=True) for t in demands(name, count, cpu=1)]
    got = Counter(name[0] for name in taken(DominantShare(weights=weights), tasks, cpu=room, pods=10_000))
    assert got.total() == min(room, len(tasks))
    for poor, (count, _) in zip(names, asked, strict=True):
        for rich in names if got[poor] < count else "":
            assert (got[rich] - 1) / weights[rich] <= got[poor] / weights[poor]


# -- shortest first ----------------------------------------------------------------------------------


def of_job(job: str, *paths: float, **fields: Any) -> list[Task]:
    return [make_task(f"{job}{at}", job=job, path=path, **fields) for at, path in enumerate(paths)]


def test_the_job_with_the_shortest_critical_path_goes_first_and_in_it_the_task_on_that_path() -> None:
    tasks = [*of_job("a", 5, 90), *of_job("b", 40, 50), *of_job("c", 60)]
    assert taken(ShortestJob(), tasks, cpu=9) == ["b1", "b0", "c0", "a1", "a0"]


def test_without_a_path_the_estimate_counts_and_a_task_without_both_goes_last() -> None:
    tasks = [make_task("a"), make_task("b", estimate=9.0), make_task("c", path=5.0, estimate=1.0)]
    assert taken(ShortestJob(), tasks, cpu=9) == ["c", "b", "a"]


def test_a_pending_pod_that_gets_a_path_later_is_reordered() -> None:
    world = World(make_engine(LeastAllocated(), order=ShortestJob()), make_node(cpu=1))
    world.add(make_task("placed", path=1.0), make_task("a", path=9.0), make_task("b", created=2))
    world.put(make_task("b", path=3.0, created=2))
    world.end("placed")
    assert world.placed() == {"b": "n"}


def test_the_job_with_the_least_work_left_goes_first_until_another_has_less() -> None:
    a = [make_task(f"a{at}", job="a", estimate=1.0, job_work=4.0) for at in range(4)]
    b = [make_task(f"b{at}", job="b", estimate=2.0, job_work=5.0) for at in range(2)]
    assert taken(LeastWorkLeft(), [*b, *a], cpu=9) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    few = [make_task("c0", job="c", estimate=3.0, job_work=4.5), *b]
    assert taken(LeastWorkLeft(), few, cpu=9) == ["c0", "b0", "b1"]
    late = make_task("d0", job="d", estimate=3.5, job_work=3.5)
    world = filled(LeastWorkLeft(), [*b], cpu=1)
    world.add(late)
    world.end("b0")
    assert [bind.name for bind in world.binds] == ["b0", "b1"]  # 3 left after b0, not the 5 it came with


@pytest.mark.parametrize("order", [ShortestJob(), LeastWorkLeft()])
def test_priority_goes_before_length(order: Order) -> None:
    tasks = [make_task("a", estimate=1.0), make_task("b", estimate=9.0, priority=5)]
    assert taken(order, tasks, cpu=9) == ["b", "a"]


# -- heaps against a sorted list -------------------------------------------------------------------

Ranking = Callable[[Task, "PlainOrder"], tuple[float, ...]]


class PlainOrder:
    """Sorts all tasks for each placement; a task that does not fit removes its class queue."""

    def __init__(self, order: Order, rank: Ranking, tasks: Sequence[Task], cpu: int, memory: int) -> None:
        self.order, self.rank = order, rank
        self.offered = {"cpu": cpu * 1000, "memory": memory * 2**30, "pods": 110}
        self.free = dict(self.offered)
        self.held: dict[str, Counter[str]] = {}
        self.begun: Counter[str] = Counter()
        self.waiting = list(enumerate(tasks))
        self.names: list[str] = []

    def run(self) -> list[str]:
        while self.waiting:
            at, task = min(self.waiting, key=lambda each: (*self._group_key(each[1]), *self._key(each)))
            needs = (*task.spec.requests, ("pods", 1))
            if all(self.free[name] >= amount for name, amount in needs):
                self.waiting.remove((at, task))
                self._take(task, dict(needs))
            else:
                self.waiting = [each for each in self.waiting if self._queue(each[1]) != self._queue(task)]
        return self.names

    def _take(self, task: Task, needs: dict[str, int]) -> None:
        self.names.append(task.name)
        self.begun[task.job] += task.estimate or 0  # type: ignore[assignment]
        self.held.setdefault(self.order.group(task), Counter()).update(needs)
        for name, amount in needs.items():
            self.free[name] -= amount

    def _key(self, each: tuple[int, Task]) -> tuple[float, ...]:
        return self.order.key(each[1], each[0])

    def _group_key(self, task: Task) -> tuple[float, ...]:
        group = self.order.group(task)
        first = min((each for each in self.waiting if self.order.group(each[1]) == group), key=self._key)
        return (*self.rank(first[1], self), *self._key(first))

    def _queue(self, task: Task) -> tuple[object, ...]:
        return self.order.group(task), task.spec


def _by_path(first: Task, plain: PlainOrder) -> tuple[float, ...]:
    path = first.estimate if first.path is None else first.path
    return (-first.priority, inf if path is None else path, first.created)


def _by_work(first: Task, plain: PlainOrder) -> tuple[float, ...]:
    return (-first.priority, (first.job_work or 0) - plain.begun[first.job])


def _by_share(first: Task, plain: PlainOrder) -> tuple[float, ...]:
    order = plain.order
    assert isinstance(order, DominantShare)
    held, weight = plain.held.get(order.group(first), Counter()), order.weights.get(order.group(first), 1)
    shares = (Fraction(held[name], total) / Fraction(weight) for name, total in plain.offered.items())
    return (-first.priority, max(shares))  # type: ignore[return-value]


PLAIN: list[tuple[Order, Ranking]] = [
    (ShortestJob(), _by_path),
    (LeastWorkLeft(), _by_work),
    (DominantShare(by="job", weights={"b": 3.0, "c": 0.5}), _by_share),
]


@pytest.mark.parametrize(("order", "rank"), PLAIN, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("seed", range(25))
def test_sorting_all_tasks_each_time_gives_the_same_sequence(order: Order, rank: Ranking, seed: int) -> None:
    rng = Random(f"twin {seed}")
    work = {job: float(rng.randrange(20, 60)) for job in "abcd"}
    tasks = [
        make_task(
            f"t{at}",
            cpu=rng.choice((1, 2, 5)),
            memory=rng.choice((1, 3)),
            job=job,
            priority=rng.choice((0, 0, 0, 7)),
            created=rng.randrange(3),
            estimate=rng.choice((1.0, 2.0, 4.0)),
            path=rng.choice((None, 3.0, 8.0, 8.0, 20.0)),
            job_work=work[job],
        )
        for at, job in enumerate(rng.choices("abcd", k=24))
    ]
    cpu, memory = rng.choice((12, 25, 90)), 30
    assert taken(order, tasks, cpu=cpu, memory=memory) == PlainOrder(order, rank, tasks, cpu, memory).run()
