"""Traits are true: in a small world every policy of the table does what it says of itself, and no more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_spec, make_task
from dag_world import job, stage
from eclectus.config.profiles import contradiction
from eclectus.framework import (
    NEEDS,
    Action,
    Ask,
    ClassQueue,
    Defer,
    Enqueue,
    Line,
    LineTraits,
    Need,
    Order,
    PendingTasks,
    Place,
    PlaceTraits,
    ReserveMany,
    View,
)
from eclectus.model.events import JobSeen, PoolSeen, TaskSeen
from eclectus.model.objects import Preference, Requirement, Reservation, Task, Term
from eclectus.model.pool import Pool, PoolAmounts, PoolPreemption
from eclectus.policies import table
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from policy_choices import Ways
from worlds import World, numbered, small_world

ALL = Ways().choices
SSD = Preference(1, Term((Requirement("disk", "In", ("ssd",)),)))
SPEEDS = {"n0": 10.0}  # the others: 1, so that waiting for n0 is worth it


def tasks() -> list[Task]:
    """Jobs of two tenants, short and long tasks of two classes, created one after the other."""
    every = numbered(12)
    return [
        replace(
            task,
            spec=make_spec(cpu=1 + at % 2),
            namespace=f"tenant{at // 6}",
            job=f"job{at // 3}",
            estimate=200.0 if at % 4 == 0 else 20.0 - at,
            path=50.0 + at,
            job_work=100.0 + at // 3,
        )
        for at, task in enumerate(every)
    ]


def run(observe: Callable[[View], None] = lambda view: None, **roles: Any) -> World:
    """All tasks arrive at three nodes with too little room, and end one by one, those of n2 first.

    Then comes a pod that only n0 may run, some that prefer n0 and are deleted, short ones that the other two
    nodes have room for, and a long one.
    """
    engine = make_engine(learn=ExactSpeeds(SPEEDS), seed=1, **roles)
    labels = {"n0": {"disk": "ssd"}}
    world = World(engine, *(make_node(f"n{at}", cpu=2, labels=labels.get(f"n{at}", {})) for at in range(3)))
    world.add(*tasks())
    while placed := world.placed():
        observe(engine._state.view)
        world.end(max(placed, key=lambda name: (placed[name], name)))
    world.add(make_task("needs-n0", node_selector=(("disk", "ssd"),)))
    world.step(after=60.0)
    fans = numbered(3, "fan", preferences=(SSD,))
    world.add(*fans)
    for fan in fans:
        world.delete(fan.name)
    world.add(*numbered(4, "short", estimate=1.0))
    world.add(make_task("long", estimate=1e4, created=world.now))
    world.sleep(1000.0)
    assert world.faults == []
    return world


# -- Place -----------------------------------------------------------------------------------------


class Counting(PendingTasks):
    """Pending tasks, and the classes of those that were taken."""

    def __init__(self, pending: PendingTasks) -> None:
        self._pending, self.classes = pending, set[Any]()

    def __next__(self) -> Task:
        task = next(self._pending)
        self.classes.add((task.spec, task.workload))
        return task

    def queues(self) -> Iterator[ClassQueue]:
        return self._pending.queues()

    def take(self, queue: ClassQueue) -> Task | None:
        task = self._pending.take(queue)
        if task is not None:
            self.classes.add((task.spec, task.workload))
        return task

    def skip(self, task: Task, most: int) -> int:
        return self._pending.skip(task, most)

    def left(self, task: Task) -> int:
        return self._pending.left(task)


def what_it_does(policy: Place) -> PlaceTraits:
    """The traits that its actions show: all but `defers_until_change`, `prices_data` and `preempts`."""
    seen: set[type[Action]] = set()
    taken_before_answer: list[int] = []
    place = policy.place

    def watched(view: View, pending: PendingTasks) -> Iterator[Action]:
        counting = Counting(pending)
        for number, action in enumerate(place(view, counting)):
            if number == 0:
                taken_before_answer.append(len(counting.classes))
            seen.add(type(action))
            yield action

    policy.place = watched  # type: ignore[method-assign]
    run(place=policy)
    return PlaceTraits(
        joins_node_queues=bool(seen & {Enqueue, ReserveMany}),
        defers=Defer in seen,
        asks_solver=Ask in seen,
        takes_all_pending=taken_before_answer[0] > 1,
    )


@pytest.mark.parametrize("choice", ALL["place"], ids=str)
def test_a_place_policy_does_what_it_says(choice: Any) -> None:
    assert what_it_does(choice.policy) == replace(
        choice.policy.traits,
        defers_until_change=False,
        prices_data=False,
        preempts=False,
        needs=frozenset(),
    )


@pytest.mark.parametrize(
    "choice", [choice for choice in ALL["place"] if choice.policy.traits.defers_until_change], ids=str
)
def test_a_place_policy_answers_the_same_until_something_changes(choice: Any) -> None:
    patient = choice.policy
    always_asked = copy(patient)
    traits = replace(patient.traits, defers_until_change=False)
    always_asked.__class__ = type(type(patient).__name__, (type(patient),), {"traits": traits})
    found = [run(place=policy) for policy in (patient, always_asked)]
    assert found[0].binds == found[1].binds
    assert found[0].reports == found[1].reports


def test_a_place_policy_that_says_too_little_is_found() -> None:
    class Silent(Uniform):
        traits = PlaceTraits()  # type: ignore[assignment]

    policy = Silent("lines")
    assert what_it_does(policy) != policy.traits


# -- Line ------------------------------------------------------------------------------------------


def what_it_orders(line: Line) -> LineTraits:
    """The traits that its answers show, for the queues of a policy that assigns tasks on arrival."""
    answers, stolen = [], []
    steal = line.steal

    def asked(view: View) -> None:
        for row, queue in view.node_queues.items():
            answers.append(line.next(view, row, tuple(queue)) is queue[0])

    def watched(view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        for found in steal(view, row):
            stolen.append(found)
            yield found

    object.__setattr__(line, "steal", watched)  # some are frozen
    run(asked, place=Uniform("lines"), line=line)
    return LineTraits(first_come=all(answers), steals=bool(stolen))


@pytest.mark.parametrize("choice", ALL["line"], ids=str)
def test_a_line_policy_does_what_it_says(choice: Any) -> None:
    line = choice.policy
    assert what_it_orders(line) == line.traits
    assert line.traits.steals == (type(line).steal is not Line.steal)


# -- Order -----------------------------------------------------------------------------------------


class AllAtOnce(LeastAllocated):
    """Takes all pending tasks before it places the first."""

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        yield from super().place(view, iter(list(pending)))


def binds(order: Order, place: Place) -> list[str]:
    """The pods in the order in which they are bound to a node that has room for all."""
    world = World(make_engine(place, order=order), make_node(cpu=99))
    if "pools" in order.traits.needs:
        world.step(PoolSeen(Pool("default")))
    world.add(*tasks())
    return [bind.name for bind in world.binds]


@pytest.mark.parametrize("choice", ALL["order"], ids=str)
def test_an_order_needs_one_at_a_time_if_what_is_placed_changes_it(choice: Any) -> None:
    order = choice.policy
    changes = binds(order, LeastAllocated()) != binds(order, AllAtOnce())
    assert changes == order.traits.needs_one_at_a_time


def second_of_two_dag_jobs(world: World) -> Task:
    """A task above its job's share, which other jobs may need again before the task would end."""
    path = stage("long", 1, 10, 300.0), stage("short", 1, 10, 150.0)
    holds = make_task("holds", cpu=0.98, node="n", phase="Running", started=0.0, job="uid-two", stage="long")
    world.step(JobSeen(job("one", *path)), JobSeen(job("two", *path)), TaskSeen(holds))
    return make_task("head", spec=path[1].spec, job="uid-two", stage="short", created=9.0)


@pytest.mark.parametrize("choice", ALL["order"], ids=str)
def test_the_ranks_of_an_order_follow_the_time_only_if_it_says_so(choice: Any) -> None:
    order = dataclasses.replace(choice.policy)  # without what it remembers of another engine
    world = World(make_engine(LeastAllocated(), order=order), make_node(cpu=1))
    head = tasks()[-1] if "jobs" not in order.traits.needs else second_of_two_dag_jobs(world)
    world.add(*tasks())
    view = world.engine._state.view
    ranks = list[Any]()
    for now in (100.0, 200.0):
        later = replace(view, now=now)
        order.changes(later)  # as the engine asks before it uses ranks
        ranks.append(order.rank(later, order.group(head), head))
    assert (ranks[0] != ranks[1]) == order.traits.ranks_by_time


@pytest.mark.parametrize("choice", ALL["order"], ids=str)
def test_an_order_reserves_nodes_only_if_it_says_so(choice: Any) -> None:
    """A task of a DAG job waits for long behind pods of others, on nodes that it could have."""
    order = dataclasses.replace(choice.policy)
    world = World(make_engine(LeastAllocated(), order=order), make_node(cpu=2))
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0))))
    world.add(*numbered(2, "other"))
    world.add(make_task("large", cpu=2, created=1.0, job="uid-large", stage="s"))
    world.sleep(100.0)
    assert bool(world.nominations) == order.traits.reserves_nodes


# -- Relieve ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ALL["relieve"], ids=str)
def test_a_relieve_policy_evicts_if_it_says_so(choice: Any) -> None:
    world = small_world(make_engine(LeastAllocated(), relieve=choice.policy), cpu=1)
    if choice.policy.traits.reclaims:
        least, at_once = PoolAmounts((("cpu", 1000),)), PoolPreemption(min_share_seconds=0.0)
        own = {"namespaces": ("default",), "min_share": least, "preemption": at_once}
        world.step(PoolSeen(Pool("starved", **own)))
    world.add(make_task("low"))
    world.add(make_task("high", priority=1, asked_pool="starved"))
    world.sleep(5.0)
    assert bool(world.evictions) == choice.policy.traits.evicts


def test_every_policy_of_the_table_is_asked() -> None:
    for role in ("order", "place", "line", "relieve", "speculate", "hold"):
        assert {choice.name for choice in ALL[role]} == set(table.ROLES[role])


# -- needs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for known in table.ROLES.values() for kind in known.values()])
def test_a_policy_has_the_methods_that_it_asks_to_be_called(kind: Any) -> None:
    policy = kind()
    assert contradiction(policy, type(policy.traits)) == ""


@pytest.mark.parametrize("role", ["order", "place"])
def test_a_policy_reads_no_account_that_it_does_not_ask_for(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[Need, tuple[str, ...]] = {
        "shares": ("shares",), "work": ("work_left",), "prices": ("node_prices", "is_long"), "jobs": ("jobs",)
    }  # fmt: skip
    asked = set[str]()
    for name in (name for each in names.values() for name in each):
        found = getattr(View, name)
        get = found.fget if isinstance(found, property) else found

        def spy(view: View, *arguments: Any, name: str = name, get: Any = get) -> Any:
            asked.add(name)
            return get(view, *arguments)

        monkeypatch.setattr(View, name, property(spy) if isinstance(found, property) else spy)
    for choice in ALL[role]:
        asked.clear()
        run(**{"place": LeastAllocated(), role: choice.policy})
        needs = choice.policy.traits.needs
        unasked = {name for need, each in names.items() if need not in needs for name in each}
        assert not asked & unasked, str(choice)


def test_the_table_of_needs_is_whole() -> None:
    assert NEEDS.keys() == set(get_args(Need))
