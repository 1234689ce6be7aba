"""No pod waits for longer than its profile allows while a feasible node has room, whatever is believed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.cluster.changelog import Rows
from eclectus.engine.agenda import CLASSES_MOST, GRACE_SECONDS, ProfileWaits
from eclectus.engine.wait_limit import BestNode
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.framework import Action, PendingTasks, Place, Reason, Unschedulable, View
from eclectus.model.events import TaskSeen, WaitLimitSeen
from eclectus.model.objects import Amounts, ClassKey, PodAffinityTerm, Requirement
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import Rosella, RosellaLearn
from worlds import World, numbered, small_world

LIMIT = 300.0


class Refusing(Place):
    """Believes that no node is good enough."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Unschedulable(task, Reason("no node is good enough"))


def keeping_away(app: str) -> PodAffinityTerm:
    """A term by which a pod keeps others off its node."""
    return PodAffinityTerm(HOSTNAME, (Requirement("app", "In", (app,)),), ("default",))


def waits(world: World, name: str, most: float = 10 * LIMIT) -> float:
    """Seconds until the pod is placed."""
    began = world.now
    while not world.node_of(name):
        assert world.now - began < most, f"{name} waits beside room"
        world.advance_to_next_step()
    return world.now - began


def test_a_pod_that_a_policy_refuses_beside_room_is_placed_within_the_limit() -> None:
    world = small_world(make_engine(Refusing()), nodes=2)
    world.add(make_task("a"))
    assert LIMIT / 2 <= waits(world, "a") <= LIMIT


def test_the_limit_is_the_profile_s_and_none_is_no_limit() -> None:
    short = small_world(make_engine(Refusing(), wait_limit=40.0))
    short.add(make_task("a"))
    assert waits(short, "a") <= 40.0
    without = small_world(make_engine(Refusing(), wait_limit=None))
    without.add(make_task("a"))
    without.sleep(100 * LIMIT)
    assert without.binds == []


def test_it_takes_the_fastest_node_with_room_and_of_equal_ones_the_emptiest() -> None:
    learn = ExactSpeeds({"slow": 0.1, "full": 9.0, "dead": 0.0, "busy": 1.0, "idle": 1.0})
    nodes = [make_node(name, cpu=2) for name in ("dead", "slow", "full", "busy", "idle")]
    world = World(make_engine(Refusing(), learn), *nodes)
    world.add(
        make_task("f", cpu=2, node="full", profile="other"), make_task("b", node="busy", profile="other")
    )
    world.add(*numbered(3))
    waits(world, "t2")
    assert [bind.node for bind in world.binds] == ["idle", "busy", "idle"]


def test_room_that_comes_and_goes_is_no_reason_to_take_a_bad_node() -> None:
    """Otherwise, once a backlog is older than the limit, any node with room would be taken at once."""
    world = World(
        make_engine(Rosella(theta=4), ExactSpeeds({"bad": 1e-4, "good": 1.0})),
        make_node("bad", cpu=1),
        make_node("good", cpu=1),
    )
    world.add(make_task("hog0", node="bad", profile="other"), *numbered(4))
    world.sleep(2 * LIMIT)
    for at in range(8):
        world.end(f"hog{at}")
        world.sleep(LIMIT / 8)
        world.add(make_task(f"hog{at + 1}", node="bad", profile="other"))
        world.sleep(LIMIT / 8)
    assert [bind.node for bind in world.binds] == ["good"]
    world.end("hog8")
    assert waits(world, "t1") <= LIMIT / 2


def test_a_pod_in_a_node_queue_is_placed_where_room_is() -> None:
    learn = ExactSpeeds({"fast": 1.0, "slow": 1e-3})
    policy = Rosella(replan=False, compare="sed")
    world = World(make_engine(policy, learn), make_node("fast", cpu=1), make_node("slow", cpu=1))
    world.add(*numbered(3))
    assert world.engine.queue_counts().node_queues == 2, "ten seconds on the fast node are less than 1000"
    assert waits(world, "t1") <= LIMIT
    assert world.placed() == {"t0": "fast", "t1": "slow"}


def test_a_pod_does_not_wait_for_ever_behind_a_larger_one_in_a_node_queue() -> None:
    world = small_world(make_engine(Uniform("lines")), cpu=2)
    world.add(make_task("running"), make_task("large", cpu=2, created=1), make_task("small", created=2))
    world.sleep(LIMIT)
    assert list(world.placed()) == ["running", "small"]


def test_room_that_is_held_for_a_pod_of_lower_priority_is_room() -> None:
    world = small_world(make_engine(Uniform("lines")), cpu=1)
    world.add(make_task("foreign", profile="other", nominated="n0"))
    world.add(make_task("low"), make_task("high", priority=1))
    world.sleep(LIMIT)
    assert list(world.placed()) == ["high"]


def test_a_pod_that_changes_again_and_again_is_placed_within_the_limit() -> None:
    world = small_world(make_engine(Refusing()), nodes=2)
    world.add(make_task("a"))
    began = world.now
    for priority in range(1, 100):
        world.sleep(LIMIT / 20)
        if world.node_of("a"):
            break
        world.put(replace(world.tasks["a"], priority=priority))
    assert LIMIT / 2 <= world.now - began <= LIMIT


def test_terms_of_others_that_come_and_go_do_not_make_it_wait_longer() -> None:
    """Each time the pod is of another class: some domain is, or is not, excluded for it."""
    world = small_world(make_engine(Refusing()), nodes=2)
    world.add(make_task("a", labels=(("app", "a"),)))
    began = world.now
    for at in range(100):
        holder = make_task(f"k{at}", profile="other", node="n0", anti_affinity_terms=(keeping_away("a"),))
        world.add(holder)
        world.sleep(LIMIT / 40)
        world.delete(holder.name)
        world.put(replace(world.tasks["a"], created=world.tasks["a"].created))
        world.sleep(LIMIT / 40)
        if world.node_of("a"):
            break
    assert LIMIT / 2 <= world.now - began <= 1.5 * LIMIT


def test_nor_do_they_keep_it_from_being_reported() -> None:
    """An autoscaler must learn of a pod that finds no room."""
    world = small_world(make_engine(), cpu=1)
    world.add(make_task("full", node="n0", profile="other"), make_task("a", labels=(("app", "a"),)))
    came = world.now
    for at in range(50):
        holder = make_task(f"k{at}", profile="other", node="n0", anti_affinity_terms=(keeping_away("a"),))
        world.add(holder)
        world.sleep(0.2)
        world.delete(holder.name)
        world.put(replace(world.tasks["a"], created=world.tasks["a"].created))
        world.sleep(0.2)
        if world.reports:
            break
    assert [report.reason for report in world.reports] == ["Unschedulable"]
    assert world.now - came <= GRACE_SECONDS + 0.4


def test_a_waiting_pod_that_is_deleted_or_gated_is_not_placed() -> None:
    world = small_world(make_engine(Refusing()))
    world.add(*numbered(3))
    world.sleep(LIMIT / 2 + LIMIT / 8)
    world.delete("t0")
    world.put(replace(world.tasks["t1"], gates=("gate",)))
    world.sleep(LIMIT)
    assert list(world.placed()) == ["t2"]


def test_beside_room_the_reason_makes_no_autoscaler_add_nodes() -> None:
    world = small_world(make_engine(Refusing()), cpu=1)
    world.add(make_task("a"))
    world.sleep(10)
    assert {reason for reason, _ in world.messages("a")} == {"WaitingForNode"}


def test_waiting_pods_cost_no_steps_once_no_node_has_room() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=1)
    world.add(*numbered(200))
    world.sleep(2 * LIMIT)
    steps = 0
    end = world.now + LIMIT
    while world.now < end:
        world.advance_to_next_step()
        steps += 1
    assert steps < 60


def training_cluster(world: World) -> None:
    """Six CPU nodes and two of four GPUs; one image runs for 5 s on the former, for hours on the latter."""
    for at in range(6):
        world.put_node(make_node(f"cpu{at}", cpu=8))
    for at in range(2):
        world.put_node(make_node(f"gpu{at}", cpu=8, gpus=4))
    world.add(*(make_task(f"train{at}", gpus=1, workload="train") for at in range(4)))
    for name in world.placed():
        world.step(TaskSeen(replace(world.tasks[name], phase="Running", started=world.now)))
    for at in range(240):
        world.add(make_task(f"eval{at}", workload="train"))
        world.step(TaskSeen(replace(world.tasks[f"eval{at}"], phase="Running", started=world.now)))
        world.step(after=5.0)
        world.end(f"eval{at}", 5.0)
        world.step(after=15.0)


def test_nodes_busy_with_long_pods_of_an_otherwise_short_class_are_not_suspected() -> None:
    """The class ends in 5 s elsewhere, but with other requests: two GPU nodes keep their speed."""
    world = World(make_engine(Rosella(), RosellaLearn()))
    training_cluster(world)
    world.sleep(60)
    rates = world.engine._state.learn.speeds("train").rate
    rows = world.engine._state.cluster.rows
    assert rates[rows["gpu0"]] == rates[rows["gpu1"]] == pytest.approx(rates[rows["cpu0"]])
    world.add(make_task("next", gpus=1, workload="train"), make_task("other", gpus=1, workload="vision"))
    assert {world.node_of("next"), world.node_of("other")} <= {"gpu0", "gpu1"}


def test_a_class_that_asks_for_more_than_any_node_has_left_is_compared_with_no_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared, rows_with_amounts = list[Amounts](), BestNode._rows_with_amounts

    def counted(self: BestNode, requests: Amounts) -> Rows:
        compared.append(requests)
        return rows_with_amounts(self, requests)

    monkeypatch.setattr(BestNode, "_rows_with_amounts", counted)
    world = World(make_engine(Refusing()), make_node("a", cpu=4, memory=1), make_node("b", cpu=1, memory=8))
    world.add(*(make_task(f"large{at}", cpu=2, memory=9 + at) for at in range(50)))
    world.sleep(2 * LIMIT)
    assert not compared
    world.add(make_task("of-both", cpu=2, memory=2))
    world.sleep(2 * LIMIT)
    assert compared, "of each resource some node has enough, and no node of both"
    assert not world.node_of("of-both")
    world.put_node(make_node("b", cpu=2, memory=8))
    world.sleep(2 * LIMIT)
    assert world.node_of("of-both") == "b"


def test_a_check_of_many_classes_is_spread_over_steps() -> None:
    profile, asked = ProfileWaits(80.0), list[ClassKey]()
    keys = [(make_task(cpu=1 + at).spec, "") for at in range(2 * CLASSES_MOST + 1)]
    for at, key in enumerate(keys):
        profile.add(str(at), key, 0.0)

    def has_room(key: ClassKey) -> bool:
        asked.append(key)
        return True

    for passed in (40.0, 50.0):
        assert [profile.check(passed, has_room) for _ in range(3)] == [[]] * 3
        assert profile.next_due() == passed + 10.0
    assert len(profile.check(60.0, has_room)) == CLASSES_MOST
    assert profile.next_due() == 60.0
    assert len(profile.check(60.0, has_room)) == CLASSES_MOST
    assert len(profile.check(60.0, has_room)) == 1
    assert asked == keys * 3


@pytest.mark.parametrize("limit", [40.0, 4000.0])
def test_a_limit_that_changes_holds_for_pods_that_wait_already(limit: float) -> None:
    world = small_world(make_engine(Refusing(), wait_limit=LIMIT))
    world.add(make_task("a"))
    world.sleep(10.0)
    world.step(WaitLimitSeen("eclectus", limit), WaitLimitSeen("unknown", 1.0))
    assert limit / 2 - 10.0 <= waits(world, "a") <= limit


def test_a_shorter_limit_holds_for_pods_that_were_checked_already() -> None:
    world = small_world(make_engine(Refusing(), wait_limit=4000.0))
    world.add(make_task("a"))
    world.sleep(2001.0)  # half of the limit
    world.step(WaitLimitSeen("eclectus", 40.0))
    assert waits(world, "a") <= 40.0
