"""A step asks about a bounded number of classes and places a bounded number of tasks; the next goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine import scheduling_cycle
from eclectus.framework import Action, Bind, Defer, Order, PendingTasks, Unschedulable, View
from eclectus.model import commands
from eclectus.model.events import TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.rosella import Rosella
from gangs import group, members
from worlds import World, numbered, small_world

CLASSES, TASKS = 4, 10


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_cycle, "CLASSES_MOST", CLASSES)
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", TASKS)


class Recording(LeastAllocated):
    """Notes which tasks it is asked about, in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        self.asked.append([])

        def noted() -> Iterator[Task]:
            for task in pending:
                self.asked[-1].append(task.name)
                yield task

        yield from super().place(view, noted())  # type: ignore[arg-type]


def shapes(count: int, **fields: object) -> list[Task]:
    """So many tasks, no two of one class."""
    return [make_task(f"s{at}", memory=1 + at, created=float(at), **fields) for at in range(count)]


def seen(world: World, *tasks: Task) -> list[commands.Bind]:
    """All tasks in one step; the binds of that step."""
    world.tasks |= {task.name: task for task in tasks}
    return [each for each in world.step(*map(TaskSeen, tasks)) if isinstance(each, commands.Bind)]


def finish(world: World) -> list[int]:
    """Step while the engine asks for it at once; how many binds each step made."""
    made = []
    while (at := world.engine.next_step_at()) is not None and at <= world.now:
        before = len(world.binds)
        world.step()
        made.append(len(world.binds) - before)
        assert len(made) < 100, "it goes on for ever"
    return made


def test_a_step_asks_about_so_many_classes_and_the_next_about_others() -> None:
    policy = Recording()
    world = small_world(make_engine(policy), nodes=2, cpu=20)
    assert len(seen(world, *shapes(11))) == CLASSES
    assert world.engine.next_step_at() == world.now
    finish(world)
    assert policy.asked == [[f"s{at}" for at in range(start, min(start + 4, 11))] for start in (0, 4, 8)]
    assert len(world.binds) == 11


def test_refused_classes_count_too() -> None:
    policy = Recording()
    world = small_world(make_engine(policy), cpu=1)
    seen(world, *shapes(9, node_selector=(("no", "where"),)))
    finish(world)
    assert list(map(len, policy.asked)) == [4, 4, 1]
    world.sleep(5)
    assert all(world.messages(f"s{at}") for at in range(9)), "each has a report"
    assert sum(map(len, policy.asked)) == 9, "and none is asked about again"


@pytest.mark.parametrize("cpu", [1, 100])
def test_gangs_of_pods_that_differ_count_with_the_class_of_each_pod(cpu: int) -> None:
    """Others' pods are not kept waiting in one long step, whether the gangs have room or not."""
    world = small_world(make_engine(LeastAllocated()), cpu=cpu)
    names = [f"g{at}-" for at in range(6)]
    pods = [
        task
        for name in names
        for at in range(3)
        for task in members(name, 1, at, cpu=2, workload=f"{name}{at}")
    ]
    classes = world.engine._state.view.classes
    world.step(*(group(name, 3) for name in names))
    seen(world, *pods, make_task("ordinary", cpu=0, created=9.0))
    assert len(classes) <= CLASSES + 3, "the last gang of the step may have three more"
    while (at := world.engine.next_step_at()) is not None and at <= world.now:
        before = len(classes)
        world.step()
        assert len(classes) <= before + CLASSES + 3
    assert {"ordinary"} <= {bind.name for bind in world.binds}
    assert len(world.binds) == (1 if cpu == 1 else 19)


def test_a_step_places_so_many_tasks_of_a_class() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=40)
    assert len(seen(world, *numbered(25))) == TASKS
    assert finish(world)[:2] == [10, 5]


def test_classes_of_the_highest_priority_are_first() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=40)
    first = make_task("first", cpu=3, priority=9, created=99.0)
    assert seen(world, *shapes(8), first)[0].name == "first"


def test_a_class_that_comes_meanwhile_is_asked_about_in_the_next_cycle() -> None:
    policy = Recording()
    world = small_world(make_engine(policy), cpu=40)
    seen(world, *shapes(9))
    seen(world, make_task("late", cpu=3, created=100.0))
    finish(world)
    assert [each[-1] for each in policy.asked] == ["s3", "s7", "s8", "late"]


def test_room_that_comes_meanwhile_is_seen_by_classes_that_were_refused_before() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=1)
    seen(world, *shapes(9, node_selector=(("zone", "b"),)))
    world.put_node(make_node("b", cpu=40, labels={"zone": "b"}))
    finish(world)
    assert len(world.binds) == 9


def deferring(theta: float = 6.0) -> World:
    """A full fast node that nine tasks of nine classes wait for, beside slow nodes with room."""
    speeds = ExactSpeeds({"fast": 0.1}, otherwise=0.001)
    nodes = [make_node("fast", cpu=20), *(make_node(f"slow{at}", cpu=2) for at in range(3))]
    world = World(make_engine(Rosella(theta=theta), speeds, wait_limit=None), *nodes)
    world.add(make_task("hog", cpu=20, created=-1.0, node="fast", profile="other"))
    seen(world, *shapes(9))
    return world


def test_deferred_classes_are_left_alone_once_all_were_asked_about() -> None:
    world = deferring()
    finish(world)
    world.settle()
    assert len(world.engine._state.deferrals.waits) == 9
    assert not world.engine._placement.is_due
    tentative = world.engine._state.cluster.tentative.sum()
    world.step()
    assert world.engine._state.cluster.tentative.sum() == tentative > 0


def test_when_a_deferral_began_is_kept_over_the_steps_of_a_cycle() -> None:
    world = deferring()
    finish(world)
    since = dict(world.engine._state.deferrals.since)
    assert len(since) == 9
    world.step(after=50.0)
    world.put_node(make_node("new", cpu=1, labels={"any": "change"}))
    finish(world)
    assert dict(world.engine._state.deferrals.since) == since


class Counting(Rosella):
    """Counts how often it is asked about each task."""

    def __init__(self) -> None:
        super().__init__(theta=6.0)
        self.asked = Counter[str]()

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for action in super().place(view, pending):
            assert isinstance(action, Bind | Defer)
            self.asked[action.task.name] += 1
            yield action


def test_a_deferred_task_is_asked_about_once_in_a_cycle_of_many_steps() -> None:
    """The first tasks of all classes come before the second ones, so every class is cut."""
    policy = Counting()
    nodes = [make_node("fast", cpu=20), make_node("slow", cpu=2)]
    world = World(
        make_engine(policy, ExactSpeeds({"fast": 0.1}, otherwise=0.001), wait_limit=None, order=FifoOrder()),
        *nodes,
    )
    world.add(make_task("hog", cpu=20, created=-1.0, node="fast", profile="other"))
    later = [
        replace(task, uid=f"l{at}", name=f"l{at}", created=50.0 + at) for at, task in enumerate(shapes(9))
    ]
    seen(world, *shapes(9), *later)
    assert len(finish(world)) <= 4
    assert len(policy.asked) == 18
    assert set(policy.asked.values()) == {1}


@pytest.mark.parametrize("order", [DominantShare(), HierarchicalShare()], ids=str)
def test_many_classes_give_a_tenant_no_more_than_its_share(order: Order) -> None:
    """Twelve different pods of one tenant beside equal ones of another, on eight slots."""
    world = small_world(make_engine(LeastAllocated(), order=order), cpu=8)
    many = [replace(task, namespace="many") for task in shapes(12)]
    alike = [replace(task, namespace="alike") for task in numbered(12)]
    seen(world, *many, *alike)
    finish(world)
    bound = Counter(bind.namespace for bind in world.binds)
    assert abs(bound["many"] - bound["alike"]) <= 1
    assert bound.total() == 8


class Silent(LeastAllocated):
    """Takes tasks and answers nothing."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for _ in pending:
            yield from ()


def test_a_policy_that_never_answers_does_not_keep_the_engine_busy() -> None:
    world = small_world(make_engine(Silent()), cpu=40)
    seen(world, *shapes(9))
    assert len(finish(world)) < 5


class Whole(LeastAllocated):
    """Takes every task before it answers, as packing policies do."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        tasks = []
        for queue in pending.queues():
            while (task := pending.take(queue)) is not None:
                tasks.append(task)
        for task in tasks:
            rows = view.task_class(task).fits_now_rows
            yield Bind(task, int(rows[0])) if len(rows) else Unschedulable(task)


def test_a_policy_that_takes_all_tasks_gets_all_of_the_classes_of_a_step() -> None:
    world = small_world(make_engine(Whole()), cpu=40)
    assert len(seen(world, *numbered(25))) == 25


def test_a_cycle_that_was_cut_ends_though_its_tasks_are_gone_so_that_other_pods_are_reported() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=1)
    waiting = shapes(2 * CLASSES, cpu=99)
    seen(world, *waiting, *members())
    world.step(*(TaskGone(task.uid) for task in waiting))
    commands_of_step = world.step(after=5.0)
    assert [each.reason for each in commands_of_step if isinstance(each, commands.Report)] == [
        "WaitingForGang"
    ]
    at = world.engine.next_step_at()
    assert at is None or at > world.now


@pytest.mark.parametrize(("nodes", "evaluated", "classes"), [(2, 5, 2), (2, 100, CLASSES), (3, 2, 1)])
def test_on_more_nodes_a_step_asks_about_fewer_classes(
    nodes: int, evaluated: int, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling_cycle, "EVALUATED_MOST", evaluated)
    world = small_world(make_engine(Recording()), nodes=nodes, cpu=20)
    assert len(seen(world, *shapes(11))) == classes
    assert sum(finish(world)) == 11 - classes
