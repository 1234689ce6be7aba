"""Delay scheduling in the engine: golden cases, and what lazy builds get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from calls import calls_of
from eclectus.engine.queues import held_queues
from eclectus.explain.pod import waiting
from eclectus.framework import (
    Action,
    Bind,
    Hold,
    HoldTraits,
    Order,
    Place,
    Reach,
    Unschedulable,
    View,
    Waited,
)
from eclectus.framework import PendingTasks as Pending
from eclectus.model.events import TaskGone
from eclectus.model.explanation import Waiting
from eclectus.model.objects import Input, Node, Task
from eclectus.policies.hold.delay import Delay, Level
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.fit import BestFit
from worlds import World

RACK = "example.com/rack"


def rack_node(name: str, cpu: float = 1) -> Node:
    return make_node(name, cpu=cpu, labels={RACK: name[:2]} if name.startswith("r") else {})


def data_on(*nodes: str, size: int = 100) -> tuple[Input, ...]:
    return (Input("data", size, nodes),)


def local(name: str, *nodes: str, **fields: Any) -> Task:
    return make_task(name, inputs=data_on(*nodes), **fields)


class Racks(World):
    """Nodes of one slot each, which pods of another scheduler fill and free."""

    def __init__(
        self, *names: str, hold: Hold, order: Order | None = None, place: Place | None = None
    ) -> None:
        engine = make_engine(place or BestFit(), hold=hold, order=order or FifoOrder())
        super().__init__(engine, *map(rack_node, names))
        self._filled = 0
        self.fill(*names)

    def fill(self, *names: str) -> None:
        for name in names:  # a uid is never used again
            self._filled += 1
            other = make_task(f"other-{self._filled}", node=name, phase="Running", profile="other")
            self.add(replace(other, workload="other"))

    def free(self, name: str) -> None:
        self.delete(next(each for each, task in self.tasks.items() if task.node == name))

    def until(self, time: float) -> None:
        """Let time pass, with every step that the engine asks for."""
        self.sleep(time - self.now)

    @property
    def placed(self) -> dict[str, str]:
        return {bind.uid.removeprefix("uid-"): bind.node for bind in self.binds}

    def node_of_last(self) -> str:
        return self.binds[-1].node


def two_levels(one: float, two: float) -> Delay:
    return Delay(node_wait=one, levels=(Level(RACK, two),))


def test_ds4_two_levels() -> None:
    world = Racks("r1n1", "r1n2", "r2n1", "r2n2", hold=two_levels(5, 10))
    world.add(*(local(f"t{at}", "r2n2") for at in range(8)))
    world.free("r1n1")
    world.until(4)
    assert not world.binds
    world.free("r2n1")
    world.until(4.9)
    assert not world.binds
    world.until(5)
    assert world.node_of_last() == "r2n1"
    world.fill("r1n1")
    world.until(6)
    world.free("r1n1")
    world.until(15.9)
    assert len(world.binds) == 1
    world.until(16)
    assert world.node_of_last() == "r1n1"
    world.until(17)
    world.free("r2n1")  # a rack launch tightens "any" to the rack
    assert (world.node_of_last(), len(world.binds)) == ("r2n1", 3)
    world.until(18)
    world.free("r1n1")
    assert len(world.binds) == 3
    world.until(19)
    world.free("r2n2")
    assert (world.node_of_last(), len(world.binds)) == ("r2n2", 4)
    world.until(20)
    world.free("r2n1")
    assert len(world.binds) == 4


@pytest.mark.parametrize(("rack_free_at", "placed_at", "node"), [(21.0, 21.5, "r2n1"), (99.0, 29.5, "r1n1")])
def test_d4_the_clock_runs_only_while_room_is_unused(
    rack_free_at: float, placed_at: float, node: str
) -> None:
    world = Racks("r1n1", "r2n1", "r2n2", hold=two_levels(4, 8))
    world.add(local("a", "r2n2"))
    for free, fill in ((2.0, 3.5), (6.0, 7.0)):
        world.until(free)
        world.free("r1n1")
        world.until(fill)
        world.fill("r1n1")
    world.until(20)
    world.free("r1n1")
    if rack_free_at < placed_at:
        world.until(rack_free_at)
        world.free("r2n1")
    world.until(placed_at - 0.01)
    assert not world.binds
    world.until(placed_at)
    assert world.placed == {"a": node}


@pytest.mark.parametrize("inputs", [(), data_on("no-node"), data_on()])
def test_ds6_without_known_data_nothing_waits(inputs: tuple[Input, ...]) -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    world.add(local("far", "n2"))
    world.add(make_task("a", inputs=inputs))
    world.free("n1")
    assert world.placed == {"a": "n1"}


class Passed(Delay):
    """Notes how many nodes were passed over."""

    seen = 0

    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        self.seen = waited.offers
        return super().reach(view, head, waited)


def test_ds10_a_node_that_is_offered_again_and_again_counts_once() -> None:
    hold = Passed(node_wait=1000)
    world = Racks("n1", "n2", "n3", hold=hold)
    world.add(local("a", "n3"))
    world.free("n1")
    for at in range(100):  # each joins the queue, so that it is asked about
        world.add(local(f"b{at}", "n3"))
    assert (hold.seen, world.binds) == (1, [])
    world.fill("n1")
    world.free("n1")
    world.add(local("c", "n3"))
    assert hold.seen == 2


@pytest.mark.parametrize(
    ("skips", "expected"),
    [
        (2, ["b1 n1", "b2 n2", "a1 n3", "a2 n4", "b3 n1", "b4 n2"]),
        (3, ["b1 n1", "b2 n2", "b3 n3", "a1 n4", "b4 n1", "b5 n2"]),
        (0, ["a1 n1"]),
    ],
)
def test_ds3_skips(skips: int, expected: list[str]) -> None:
    world = Racks(
        "n1", "n2", "n3", "n4", hold=Delay(node_wait=1000, skips=skips), order=DominantShare(by="job")
    )
    for at in (1, 2):
        world.add(local(f"a{at}", "n4", job="A", created=0.0 + at))
    for at in range(1, 7):
        world.add(local(f"b{at}", "n1", "n2", "n3", job="B", created=10.0 + at))
    for offer in ("n1", "n2", "n3", "n4", "n1", "n2")[: len(expected)]:
        world.free(offer)
        world.sleep(0.5)
    assert [f"{name} {node}" for name, node in world.placed.items()] == expected


def test_a_local_task_far_behind_in_the_queue_starts_at_once() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=1000))
    world.add(
        *(local(f"t{at}", "n2", created=float(at)) for at in range(50)), local("last", "n1", created=99.0)
    )
    world.free("n1")
    assert world.placed == {"last": "n1"}
    world.free("n2")
    assert world.placed == {"last": "n1", "t0": "n2"}
    world.delete("t1")
    world.free("n2")
    assert world.placed == {"last": "n1", "t0": "n2", "t2": "n2"}


def test_what_is_placed_out_of_order_is_gone_and_the_rest_waits_in_order() -> None:
    world = Racks("n1", "n2", "n3", hold=Delay(node_wait=10))
    for at, node in enumerate(("n1", "n2", "n1", "n2", "n1")):
        world.add(local(f"t{at}", node, created=float(at)))
    world.free("n2")
    world.free("n2")
    assert world.placed == {"t1": "n2", "t3": "n2"}
    state = world.engine._state
    assert [task.name for pending in state.class_queues for task in pending] == ["t0", "t2", "t4"]
    assert state.class_queues.count == 3


class Stubborn(Place):
    """Refuses each node of a name, and takes any other."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused

    def place(self, view: View, pending: Pending) -> Iterator[Action]:
        for task in pending:
            rows = [
                row
                for row in view.task_class(task).fits_now_rows
                if view.cluster.names[row] not in self.refused
            ]
            yield Bind(task, int(rows[0])) if rows else Unschedulable(task)


def test_a_refused_narrowed_task_closes_no_class() -> None:
    world = Racks("n1", "n2", "n3", hold=Delay(node_wait=5), place=Stubborn("n2"))
    world.add(local("a", "n2", created=1.0), local("b", "n3", created=2.0))
    world.free("n2")
    assert not world.binds
    world.free("n3")
    assert world.placed == {"b": "n3"}
    world.free("n1")
    world.until(6)
    assert world.placed == {"b": "n3", "a": "n1"}


def test_without_any_room_the_class_is_refused_though_a_queue_is_held() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=50))
    world.add(local("a", "n2"))
    world.free("n1")
    (pending,) = world.engine._state.class_queues
    assert pending.is_held
    world.fill("n1")
    world.sleep(0.1)
    assert pending.unschedulable_since is not None
    world.free("n2")
    assert world.placed == {"a": "n2"}


def test_a_restart_forgets_no_more_than_the_waits() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=5))
    world.add(local("a", "n2"))
    world.free("n1")
    world.until(4)
    again = World(make_engine(BestFit(), hold=Delay(node_wait=5)), rack_node("n1"), rack_node("n2"))
    again.add(*world.tasks.values())
    again.sleep(4.9)
    assert not again.binds
    again.sleep(0.1)
    assert [bind.node for bind in again.binds] == ["n1"]


class Counting(Hold):
    """Holds for ever; counts how often it is asked."""

    asked = 0
    traits = HoldTraits(waits=True)

    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        self.asked += 1
        return Reach(0, 1e6)


def test_held_groups_cost_nothing() -> None:
    hold = Counting()
    world = Racks("n1", "n2", "n3", "n4", hold=hold, order=DominantShare())
    world.free("n1")
    for at in range(100):
        node = "n2" if at < 4 else "n4"
        world.add(replace(local(f"t{at}", node), namespace=f"team-{at}"))
    (pending,) = world.engine._state.class_queues
    assert pending.held == len(pending.queues) == 100
    before = hold.asked
    for _ in range(10):
        world.free("n3")
        world.fill("n3")
    assert hold.asked == before
    world.free("n2")
    assert len(world.binds) == 1
    assert hold.asked == before + 3


@pytest.mark.parametrize("order", [FifoOrder, DominantShare])
def test_whoever_has_no_data_starts_while_others_are_held(order: type[Order]) -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100), order=order())
    world.add(local("a", "n2", created=1.0))
    world.add(replace(make_task("b", created=2.0), namespace="other"))
    world.free("n1")
    assert world.placed == {"b": "n1"}


def test_an_update_of_its_inputs_is_seen() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    world.add(local("a", "n2"))
    world.free("n1")
    assert not world.binds
    world.put(local("a", "n1"))
    assert world.placed == {"a": "n1"}


def test_most_bytes_count() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    inputs = (Input("small", 1, ("n1",)), Input("large", 100, ("n2",)))
    world.add(make_task("a", inputs=inputs))
    world.free("n1")
    assert not world.binds
    world.free("n2")
    assert world.placed == {"a": "n2"}


class Broken(Hold):
    """Raises, or answers nonsense."""

    traits = HoldTraits(waits=True)

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def reach(self, view: View, head: Task, waited: Waited) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [ValueError("x"), None, ("a", 1, 2), (1,)])
def test_a_policy_that_fails_holds_nobody(answer: object) -> None:
    world = Racks("n1", "n2", hold=Broken(answer))
    world.add(local("a", "n2"))
    world.free("n1")
    assert world.placed == {"a": "n1"}
    assert world.faults


def test_a_label_that_changes_brings_a_node_near() -> None:
    world = Racks("r1n1", "r2n2", hold=two_levels(0, 100))
    world.add(local("a", "r2n2"))
    world.free("r1n1")
    assert not world.binds
    world.put_node(make_node("r1n1", cpu=1, labels={RACK: "r2"}))
    assert world.placed == {"a": "r1n1"}


def test_with_room_at_several_nodes_place_chooses_among_those_with_data() -> None:
    nodes = [make_node(name, cpu=cpu) for name, cpu in (("n1", 2), ("n2", 9), ("n3", 4))]
    world = World(make_engine(LeastAllocated(), hold=Delay()), *nodes)
    world.add(make_task("any"))
    assert world.binds[-1].node == "n2"
    world.add(local("a", "n1", "n3"))
    assert world.binds[-1].node == "n3"


def test_ds9_what_a_rule_requires_no_wait_relaxes() -> None:
    world = World(
        make_engine(BestFit(), hold=Delay(node_wait=5)),
        make_node("n1", labels={"disk": "a"}),
        make_node("n9", labels={"disk": "b"}),
    )
    world.add(make_task("x", cpu=4, node="n9", phase="Running", profile="other"))
    world.add(local("a", "n1", node_selector=(("disk", "b"),)))
    world.sleep(200)
    assert not world.binds


def far_behind(tasks: int) -> tuple[int, int]:
    """Calls of functions in a step that starts the last task of a queue, and in one that starts none."""
    world = Racks("n1", "n2", "n3", hold=Delay(node_wait=1000))
    world.add(*(local(f"t{at}", "n2", created=float(at)) for at in range(tasks)))
    world.add(local("last", "n1", created=1e6))
    busy = next(name for name, task in world.tasks.items() if task.node == "n1")
    event = TaskGone(world.tasks.pop(busy).uid)
    starting = calls_of(lambda: world.engine.step([event], 0.5))
    idle = calls_of(lambda: world.engine.step([], 0.6))  # before the first report
    return starting, idle


def test_the_last_of_many_tasks_is_found_without_a_look_at_the_others() -> None:
    few, many = far_behind(100), far_behind(10_000)
    assert many[0] <= few[0] + 14  # two bisections
    assert many[1] <= few[1] + 5
    assert far_behind(100)[0] > 50


def test_a_held_pod_says_for_what_it_waits_and_how_long_it_has() -> None:
    world = Racks("r1n1", "r2n1", "r2n2", hold=two_levels(4, 8))
    world.add(local("a", "r2n2", "no-node"))
    world.free("r1n1")
    world.until(3)
    waiting = explained(world, "a")
    assert waiting.reason == ("waits 3.0 of 4 s for r2n2, while other nodes have room")
    assert (waiting.policy, waiting.next_check) == ("hold/delay", 1.0)
    assert world.messages("a") == [
        ("WaitingForNode", "waiting for a node with its data (r2n2), up to 4 s while other nodes have room")
    ]
    world.until(5)
    assert explained(world, "a").reason == (
        "waits 5.0 of 12 s for a node with the example.com/rack of r2n2, while other nodes have room"
    )


def explained(world: World, name: str) -> Waiting:
    state = world.engine._state
    task = state.pending[f"uid-{name}"]
    return world.engine.read(waiting, task, state.view.task_class(task), world.now)


def test_starts_bytes_and_waits_are_counted_by_level() -> None:
    world = Racks("r1n1", "r2n1", "r2n2", hold=two_levels(1, 2))
    world.add(
        *(local(f"t{at}", "r2n2", created=float(at)) for at in range(3)), make_task("no-data", created=9.0)
    )
    world.free("r2n2")
    world.free("r1n1")
    world.until(9)
    world.free("r2n1")
    world.until(10.5)
    assert world.placed == {"t0": "r2n2", "no-data": "r1n1", "t1": "r2n1"}
    data = world.engine.queue_counts().counters.data
    assert (data.starts, data.bytes) == ({"node": 1, RACK: 1}, {"node": 100, RACK: 100})
    assert data.wait_seconds == {"node": 0.0, RACK: 1.0}


def test_so_many_classes_of_a_namespace_wait_and_pods_of_others_take_any_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_queues, "CLASSES_MOST", 2)
    world = Racks("r1n1", "r1n2", hold=Delay())
    world.add(*(local(f"t{at}", "r1n1", cpu=0.1 * (1 + at)) for at in range(4)))
    world.add(replace(local("of-another", "r1n1", cpu=0.1), namespace="shop"))
    world.free("r1n2")
    assert world.placed.keys() == {"t2", "t3"}
    world.until(7)
    assert world.placed.keys() == {"t0", "t1", "t2", "t3"}


def test_a_class_that_waits_for_nothing_costs_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Racks("r1n1", "r1n2", hold=Delay())
    world.add(*(local(f"t{at}", "r1n1", cpu=0.1 * (1 + at)) for at in range(3)))
    assert not world.engine._state.held.followed, "no node has room"
    world.free("r1n2")
    assert len(world.engine._state.held.followed) == 3
    world.until(6)
    assert len(world.binds) == 3
    assert not world.engine._state.held.followed


def learned(world: World, far_seconds: float, samples: int = 40) -> None:
    """Pods have run on n1 with data there and with data elsewhere, which they had not waited for."""
    for at in range(samples):
        name, is_far = f"run-{at}", at % 2
        world.add(local(name, "n2" if is_far else "n1", node="n1", phase="Running"))
        world.end(name, far_seconds if is_far else 10.0)


@pytest.mark.parametrize(("far_seconds", "placed"), [(20.0, {}), (10.0, {"a": "n1"}), (10.4, {"a": "n1"})])
def test_nobody_waits_for_data_that_are_read_as_fast_from_elsewhere(
    far_seconds: float, placed: dict[str, str]
) -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    world.free("n1")
    learned(world, far_seconds)
    world.add(local("a", "n2"))
    assert world.placed == placed


def test_nothing_is_learned_where_the_profile_says_so_or_from_others() -> None:
    for hold, namespace in ((Delay(node_wait=100, least_gain=None), "default"), (Delay(node_wait=100), "b")):
        world = Racks("n1", "n2", hold=hold)
        world.free("n1")
        learned(world, 10.0)
        world.add(replace(local("a", "n2"), namespace=namespace))
        assert not world.binds


def test_a_waiting_pod_says_what_a_start_elsewhere_costs() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    world.free("n1")
    learned(world, 20.0)
    world.add(local("a", "n2"))
    assert explained(world, "a").reason == (
        "waits 0.0 of 100 s for n2, while other nodes have room; "
        "elsewhere such pods take at least 1.88 times as long"
    )


def test_one_of_ten_starts_is_a_trial_and_the_next_waits_as_before() -> None:
    world = Racks("n1", "n2", hold=Delay(node_wait=100))
    world.free("n2")
    for at in range(10):
        world.add(local(f"t{at}", "n2"))
        world.end(f"t{at}")
    assert set(world.placed.values()) == {"n2"}
    world.fill("n2")
    world.free("n1")
    world.add(local("trial", "n2", created=1.0), local("next", "n2", created=2.0))
    assert world.placed["trial"] == "n1"
    world.fill("n2")
    world.end("trial")
    assert "next" not in world.placed
