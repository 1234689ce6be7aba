"""Whether a task waits for a node with its data, by what runs there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.queues import near_slots
from eclectus.engine.queues.near_slots import NearSlots
from eclectus.explain.pod import waiting
from eclectus.maths.data_gain import LEAST_SAMPLES
from eclectus.model.objects import Input, Task
from eclectus.policies.hold.delay import Delay, Level
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.fit import BestFit
from worlds import World

ZONE = "topology.kubernetes.io/zone"


def local(name: str, *nodes: str, **fields: Any) -> Task:
    return make_task(name, inputs=(Input("data", 100, nodes),), **fields)


class Known(World):
    """Node `free` has room, the others are full of pods; those with data take twice as long elsewhere.

    Run times vary as those of an exponential distribution do, nearly.
    """

    def __init__(self, hold: Delay | None = None, *, cpu: float = 1, nodes: int = 1, **fields: Any) -> None:
        names = [f"n{at}" for at in range(nodes)]
        order = fields.pop("order", FifoOrder())
        engine = make_engine(BestFit(), hold=hold or Delay(node_wait=5), order=order)
        super().__init__(engine, make_node("free", cpu=99), *(make_node(name, cpu=cpu) for name in names))
        self.runs = 0
        self.learn()
        for name in names:
            for at in range(int(cpu)):
                self.run(f"{name}-{at}", name, **fields)

    def learn(self, *, near: float = 20.0, far: float = 40.0) -> None:
        for _ in range(2 * LEAST_SAMPLES):
            for is_far, seconds in ((False, near), (True, far)):
                self.runs += 1
                name = f"run-{self.runs}"
                self.add(local(name, "n0" if is_far else "free", node="free", phase="Running"))
                self.end(name, seconds)

    def teach(self, workload: str, *times: float) -> None:
        """So long have pods of a workload without data taken."""
        for seconds in times:
            self.runs += 1
            name = f"run-{self.runs}"
            self.add(make_task(name, node="free", phase="Running", workload=workload, profile="other"))
            self.end(name, seconds)

    def run(self, name: str, node: str, **fields: Any) -> None:
        self.add(make_task(name, node=node, phase="Running", started=self.now, profile="other", **fields))

    @property
    def starts(self) -> list[str]:
        return [bind.name for bind in self.binds]

    def explained(self, name: str) -> str:
        state = self.engine._state
        task = state.pending[f"uid-{name}"]
        return str(self.engine.read(waiting, task, state.view.task_class(task), self.now).reason)


EXPONENTIAL = (1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 12.0, 17.0, 44.0)  # mean 11.1, C^2 1.25


def taught(times: float, **fields: Any) -> Known:
    """What runs on the nodes with the data takes so many times those."""
    world = Known(workload="short", **fields)
    world.teach("short", *(times * each for each in EXPONENTIAL))
    return world


@pytest.mark.parametrize(("times", "starts"), [(0.2, []), (1.0, []), (20.0, ["a"])])
def test_a_task_starts_elsewhere_at_once_where_long_tasks_are_in_its_way(
    times: float, starts: list[str]
) -> None:
    world = taught(times)
    world.add(local("a", "n0"))
    assert world.starts == starts
    world.sleep(5)
    assert world.starts == ["a"]


def test_more_slots_make_it_wait_where_one_does_not() -> None:
    world = taught(4.0)
    world.add(local("a", "n0"))
    assert world.starts == ["a"]
    world = taught(4.0, nodes=4)
    world.add(local("a", "n0", "n1", "n2", "n3"))
    assert not world.starts


def test_what_runs_may_be_of_a_kind_of_which_too_little_is_known() -> None:
    world = Known(workload="short")
    world.teach("short", 1000.0, 1000.0, 1000.0, 1000.0)
    world.add(local("a", "n0"))
    world.sleep(4.9)
    assert not world.starts
    world.sleep(0.1)
    assert world.starts == ["a"]


def test_until_it_is_known_how_long_tasks_take_elsewhere_they_wait_as_set() -> None:
    world = taught(20.0)
    world.add(replace(local("a", "n0"), namespace="another"))
    world.sleep(4.9)
    assert not world.starts


def test_for_services_nobody_waits_unless_the_profile_says_in_any_case() -> None:
    for gain, starts in ((1.05, ["a"]), (None, [])):
        world = Known(Delay(node_wait=5, least_gain=gain), long_running=True)
        world.add(replace(local("a", "n0"), namespace="another"))
        assert world.starts == starts


def test_for_a_node_that_may_not_run_it_nobody_waits() -> None:
    world = Known(workload="unknown")
    world.put_node(make_node("n0", cpu=1, unschedulable=True))
    world.add(local("a", "n0"))
    assert world.starts == ["a"]


def test_a_task_that_needs_the_room_of_two_waits_for_both() -> None:
    world = taught(1.0, cpu=2)
    world.add(local("one", "n0"))
    assert not world.starts
    world.add(local("two", "n0", cpu=2))
    assert world.starts == ["two"]


def test_where_waiting_for_the_node_does_not_pay_the_wait_for_its_zone_begins() -> None:
    world = taught(20.0, hold=Delay(node_wait=5, levels=(Level(ZONE, 10),)))
    world.put_node(make_node("n0", cpu=1, labels={ZONE: "a"}))
    world.add(local("a", "n0"))
    world.sleep(14.9)
    assert not world.starts
    assert "waits 14.9 of 15 s for a node with the topology.kubernetes.io/zone of n0" in world.explained("a")
    world.sleep(0.1)
    assert world.starts == ["a"]


def test_explain_says_for_how_long_it_waits_for_which_nodes_and_when_a_slot_is_expected() -> None:
    world = taught(1.0, nodes=2)
    world.add(local("a", "n0", "n1", "gone"))
    world.sleep(3.2)
    said, slot, ratio = world.explained("a").split("; ")
    assert said == "waits 3.2 of 5 s for n0 or n1, while other nodes have room"
    assert slot.startswith("a slot is expected in ")
    assert 5.0 < float(slot.split()[-2]) < 7.0  # two that take 11 s each, on and on
    assert ratio.startswith("elsewhere such pods take at least 1.9")


def test_what_explain_asks_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_slots, "HELD_MOST", 1)
    world = taught(1.0, nodes=1)
    world.add(local("a", "n0"))
    for _ in range(5):
        world.explained("a")
    assert world.engine._state.held.near_slots.next(local("b", "n0"), world.now) is None
    assert world.engine._state.held.near_slots.next(replace(local("b", "n0"), namespace="x"), world.now)


def test_of_a_namespace_so_many_queues_a_step_are_held_by_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_slots, "HELD_MOST", 2)
    world = taught(20.0, order=DominantShare(by="job"))
    world.teach("near", 1.0, 1.0, 1.0, 1.0, 1.0)
    world.put_node(make_node("n9", cpu=1))
    world.run("n9-0", "n9", workload="near")
    paying = [local(f"p{at}", "n9", job=f"p{at}", created=float(at)) for at in range(2)]
    world.add(*paying, local("beyond", "n0", job="z", created=9.0))
    assert not world.starts
    world = taught(20.0, order=DominantShare(by="job"))
    world.add(local("alone", "n0", job="z", created=9.0))
    assert world.starts == ["alone"]


def test_where_more_pods_run_than_are_looked_at_tasks_wait_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_slots, "PODS_MOST", 1)
    world = taught(20.0, cpu=2)
    world.add(local("a", "n0"))
    assert not world.starts


def test_nothing_is_reckoned_where_no_pod_has_data(monkeypatch: pytest.MonkeyPatch) -> None:
    world = taught(20.0)
    monkeypatch.setattr(NearSlots, "of", None)
    world.add(make_task("a"), make_task("b", cpu=500))
    assert world.starts == ["a"]
    assert not world.faults
