"""The roles that nothing in the table plays yet: Hold keeps back, Relieve answers again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from builders import make_engine, make_node, make_task
from eclectus.framework import Action, Defer, Enqueue, Hold, Place, Relieve, Unschedulable, View
from eclectus.model.objects import Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from worlds import World, numbered, small_world


class Until(Hold):
    """Keeps every task back until a fixed time, or until a second node is there."""

    def __init__(self, at: float) -> None:
        self.at = at

    def until(self, view: View, task: Task) -> float:
        return view.now if len(view.cluster) > 1 else self.at


def test_a_task_held_back_is_placed_at_the_time_it_is_let_go() -> None:
    world = small_world(make_engine(LeastAllocated(), hold=Until(5.0)))
    world.add(make_task())
    while not world.placed():
        world.wake()
    assert world.now == 5.0


def test_what_holds_a_task_back_is_asked_again_when_something_happens() -> None:
    world = small_world(make_engine(LeastAllocated(), hold=Until(5.0)))
    world.add(make_task())
    world.put_node(make_node("m"))
    assert len(world.placed()) == 1


def test_a_held_task_lets_others_of_its_lane_pass() -> None:
    class Named(Hold):
        def until(self, view: View, task: Task) -> float:
            return 100.0 if task.name == "t0" else 0.0

    world = small_world(make_engine(LeastAllocated(), hold=Named()))
    world.add(*numbered(3))
    assert list(world.placed()) == ["t1", "t2"]
    assert world.engine.queue_counts().active == 1


def test_a_held_task_is_told_that_it_is_held() -> None:
    world = small_world(make_engine(LeastAllocated(), hold=Until(5.0)))
    world.add(make_task())
    world.sleep(2)
    assert world.words("a") == [
        (
            "WaitingForNode",
            "waiting although 1 nodes have room: policy Until holds it back for a better place",
        )
    ]


def test_held_for_ever_is_not_waking_for_ever() -> None:
    world = small_world(make_engine(LeastAllocated(), hold=Until(float("inf"))))
    world.add(make_task())
    wakes = sum(1 for _ in range(20) if world.wake() < 0.5)
    assert wakes == 0


class Elsewhere(Relieve):
    """Answers every refused task with what `answer` says."""

    def __init__(self, answer: object) -> None:
        self.answer, self.asked = answer, []  # type: ignore[var-annotated]

    def relieve(self, view: View, refused: Sequence[Task]) -> Iterator[Action]:
        self.asked.append([task.name for task in refused])
        yield from self.answer(view, refused)  # type: ignore[operator]


class Picky(LeastAllocated):
    """Refuses everything."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            yield Unschedulable(task)


def test_a_refused_task_may_be_placed_by_relief() -> None:
    relief = Elsewhere(lambda view, refused: (Place(task, 0) for task in refused))
    world = small_world(make_engine(Picky(), relieve=(relief,)))
    world.add(make_task())
    assert world.placed() == {"a": "n0"}
    assert relief.asked[0] == ["a"]


def test_relief_is_handed_the_head_of_each_refused_lane() -> None:
    relief = Elsewhere(lambda view, refused: ())
    world = small_world(make_engine(Picky(), relieve=(relief,)))
    world.add(*numbered(3), make_task("other", cpu=2, created=9))
    assert relief.asked[0] == ["t0", "other"]


def test_the_rest_of_a_relieved_lane_is_taken_in_the_rounds_that_follow() -> None:
    relief = Elsewhere(lambda view, refused: (Place(task, 0) for task in refused))
    world = small_world(make_engine(Picky(), relieve=(relief,)), cpu=3)
    world.add(*numbered(3))
    world.sleep(40)
    assert len(world.placed()) == 3


def test_two_reliefs_never_answer_one_task_twice() -> None:
    first = Elsewhere(lambda view, refused: [Place(refused[0], 0)])
    second = Elsewhere(lambda view, refused: (Place(task, 1) for task in refused))
    world = small_world(make_engine(Picky(), relieve=(first, second)), nodes=2)
    world.add(make_task())
    assert (world.placed(), second.asked[0], world.faults) == ({"a": "n0"}, [], [])


def test_a_plan_made_by_relief_is_lifted_like_any_other() -> None:
    first = Elsewhere(lambda view, refused: [Defer(refused[0], 0)])
    second = Elsewhere(lambda view, refused: (Defer(task, 1) for task in refused))
    world = small_world(make_engine(Picky(), relieve=(first, second)), nodes=2)
    world.add(make_task())
    world.step()
    world.delete("a")
    assert world.engine._state.cluster.tentative.sum() == 0


def test_relief_may_send_a_task_into_a_line() -> None:
    relief = Elsewhere(lambda view, refused: (Enqueue(task, 0) for task in refused))
    world = World(make_engine(Picky(), relieve=(relief,)), make_node("n0", cpu=1))
    world.add(make_task("a"))
    world.add(make_task("b"))
    assert (world.placed(), world.engine.queue_counts().node_queues) == ({"a": "n0"}, 1)
    world.end("a")
    assert world.placed() == {"b": "n0"}


def test_lines_and_turns_share_one_cluster_without_over_filling_it() -> None:
    world = small_world(make_engine(Uniform("lines")), nodes=2, cpu=2)
    world.add(*numbered(9))
    for _ in range(9):
        assert all(list(world.placed().values()).count(node) <= 2 for node in ("n0", "n1"))
        done = next(iter(world.placed()), None)
        if done is not None:
            world.end(done)
    assert world.engine.queue_counts().node_queues == 0
