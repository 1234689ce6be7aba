"""Each state in which a pod waits has an answer that says why, and when it is examined next."""

from __future__ import annotations

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine.agenda import FIRST_BACKOFF_SECONDS
from eclectus.framework import Defer, Enqueue, OrderTraits, Reason, Unschedulable, View, Wait
from eclectus.model.events import Paused, TaskSeen
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from explain_questions import Answering, explain
from worlds import World, numbered, small_world


def test_a_deferred_pod_names_the_node_that_it_waits_for() -> None:
    world = World(make_engine(learn=ExactSpeeds({"fast": 10.0})), make_node("fast", cpu=1), make_node("slow"))
    world.add(*numbered(2))
    assert world.node_of("t0") == "fast"
    found = explain(world, "t1", after=1.5)
    assert found.waiting is not None
    assert (found.state, found.waiting.nodes, found.waiting.policy) == (
        "deferred",
        ("fast",),
        "place/rosella",
    )
    assert found.summary == (
        "waiting for node fast: expected to end sooner there than on any of 1 nodes with room"
    )
    assert found.waiting.since == 1.5
    assert found.preemption is not None
    assert found.preemption.state == "hasRoom"


def test_a_deferral_with_an_end_says_when_it_is_examined_again() -> None:
    world = small_world(make_engine(Answering(lambda task: Defer(task, Wait(until=20.0)))))
    world.add(make_task("a"))
    found = explain(world, "a", after=5.0)
    assert found.waiting is not None
    assert (found.state, found.waiting.next_check, found.waiting.nodes) == ("deferred", 15.0, ())


def test_a_pod_in_a_node_queue_says_how_many_are_ahead() -> None:
    world = small_world(make_engine(Answering(lambda task: Enqueue(task, 0))), cpu=1)
    world.add(*numbered(3))
    found = explain(world, "t2", after=4.0)
    assert found.waiting is not None
    assert (found.state, found.waiting.ahead, found.waiting.nodes) == ("nodeQueue", 1, ("n0",))
    assert (found.waiting.since, found.waiting.policy) == (4.0, "line/fifo")
    assert found.summary == "in the queue of node n0, 1 pods ahead"


def test_a_refusal_by_a_policy_is_in_the_policys_words() -> None:
    refuse = Answering(lambda task: Unschedulable(task, Reason("its budget is spent")))
    world = small_world(make_engine(refuse))
    world.add(make_task("a"))
    found = explain(world, "a")
    assert found.waiting is not None
    assert (found.summary, found.waiting.policy) == ("its budget is spent", "Answering")
    assert found.funnel is not None
    assert (found.funnel.with_room, found.funnel.message) == (1, "")


class Withholding(FifoOrder):
    """Offers nothing before a time."""

    @property
    def traits(self) -> OrderTraits:
        return OrderTraits(withholds=True)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        return Wait(Reason("others come first"), until=30.0) if view.now < 30 else ()


def test_a_withheld_pod_says_by_whom_and_until_when() -> None:
    world = small_world(make_engine(order=Withholding()))
    world.add(make_task("a"))
    found = explain(world, "a", after=10.0)
    assert found.waiting is not None
    assert (found.state, found.summary) == ("withheld", "others come first")
    assert (found.waiting.policy, found.waiting.next_check) == ("Withholding", 20.0)


class Dead(ExactSpeeds):
    """Believes every node dead."""

    def learned_node(self, node: str) -> LearnedNode:
        return LearnedNode(node, 1, 0.0, "dead", 0.0, 1.0, ())


def test_a_node_with_room_that_is_believed_dead_is_named() -> None:
    world = small_world(make_engine(Answering(lambda task: Defer(task, Wait())), Dead({})))
    world.add(make_task("a"))
    assert explain(world, "a").dead_with_room == ("n0",)


# -- other queues ----------------------------------------------------------------------------------


def test_gates_are_named() -> None:
    world = small_world(make_engine())
    world.add(make_task("a", gates=("one", "two")))
    found = explain(world, "a")
    assert (found.state, found.summary) == ("gated", "it has scheduling gates: one, two")
    assert found.waiting is not None
    assert found.waiting.gates == ("one", "two")
    assert found.funnel is not None
    assert found.funnel.with_room == 1


def test_a_refused_bind_backs_off() -> None:
    world = small_world(make_engine())
    world.refuse = lambda bind: "the API server is full"
    world.add(make_task("a"))
    world.step()
    found = explain(world, "a", after=0.25)
    assert found.waiting is not None
    assert (found.state, found.waiting.next_check) == ("backOff", FIRST_BACKOFF_SECONDS - 0.25)
    assert found.attempts is not None
    assert (found.attempts.failures, found.attempts.reports) == (1, 1)
    assert found.attempts.message == "binding to node n0 was refused: the API server is full"
    assert found.attempts.reported == 0.25


def test_a_pod_that_is_being_deleted() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(make_task("a", cpu=2, deleting=True))
    assert explain(world, "a").state == "deleting"


def test_an_engine_that_does_not_lead_says_so() -> None:
    world = small_world(make_engine())
    world.step(Paused())
    world.step(TaskSeen(make_task("a")))
    found = explain(world, "a")
    assert (found.state, found.deciding) == ("active", False)


def test_the_last_report_of_an_earlier_process_is_shown() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(make_task("a", cpu=2, reported="seen before"))
    world.step(Paused())
    world.add(make_task("b", gates=("g",), reported="seen before"))
    found = explain(world, "b").attempts
    assert found is not None
    assert (found.message, found.reports, found.reported) == ("seen before", 0, None)
