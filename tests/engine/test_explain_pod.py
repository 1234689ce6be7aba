"""Each state of a pod has an answer that says where the pod is, why, and what would have to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine.queues.backoff import FIRST_SECONDS
from eclectus.framework import (
    Action,
    Defer,
    Enqueue,
    OrderTraits,
    PendingTasks,
    PlacePolicy,
    Reason,
    Unschedulable,
    View,
    Withheld,
)
from eclectus.model.events import BindConfirmed, BudgetSeen, Paused, TaskSeen
from eclectus.model.explanation import (
    EvictionCandidate,
    FilterStep,
    Lack,
    NearMiss,
    OtherPod,
    PodExplanation,
    Refusal,
)
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import (
    Budget,
    HostPort,
    PodAffinityTerm,
    Preference,
    Requirement,
    SpreadConstraint,
    Taint,
    Task,
    Term,
)
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import RosellaLearn
from worlds import World, numbered, small_world

ZONE = Requirement("app", "In", ("web",))


def explain(world: World, name: str, after: float = 0.0) -> PodExplanation:
    """The answer so many seconds after the last step."""
    return world.engine.explain_pod("default", name, world.now + after)


class Answering(PlacePolicy):
    """Answers every task with what a function makes of it."""

    def __init__(self, answer: Callable[[Task], Action]) -> None:
        self._answer = answer

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield self._answer(task)


# -- pods for which no node has room ---------------------------------------------------------------


def test_insufficient_room_names_the_rules_and_the_nearest_node() -> None:
    world = World(make_engine(), make_node("large", cpu=4), make_node("small", cpu=1))
    world.add(make_task("x", cpu=3.7))
    world.step(after=2.0)
    world.add(make_task("a", cpu=1.6))
    found = explain(world, "a", after=5.0)
    assert (found.state, found.summary) == ("unschedulable", "no node has room for it")
    assert found.waiting is not None
    assert (found.waiting.since, found.waiting.class_pods, found.waiting.ahead) == (5.0, 1, 0)
    assert found.funnel is not None
    assert found.funnel.steps == (
        FilterStep("NodeUnschedulable", 2),
        FilterStep("TaintToleration", 2),
        FilterStep("NodeResourcesFit", 0, (Refusal("Insufficient cpu", 2),)),
    )
    assert (found.funnel.nodes, found.funnel.feasible, found.funnel.with_room) == (2, 1, 0)
    assert found.funnel.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert found.nearest == (
        NearMiss("small", (Lack("NodeResourcesFit", "cpu", 600, permanent=True),)),
        NearMiss("large", (Lack("NodeResourcesFit", "cpu", 1300),), (OtherPod("default", "x"),)),
    )


@pytest.mark.parametrize(
    ("node", "task", "lack"),
    [
        ({"taints": (Taint("gpu"),)}, {}, Lack("TaintToleration", "tolerated taints", permanent=True)),
        ({"unschedulable": True}, {}, Lack("NodeUnschedulable", "spec.unschedulable=false", permanent=True)),
        ({}, {"node_selector": (("disk", "ssd"),)}, Lack("NodeAffinity", "disk=ssd", permanent=True)),
        (
            {},
            {"affinity": (Term((Requirement("disk", "In", ("ssd", "nvme")),)),)},
            Lack("NodeAffinity", "disk in (ssd, nvme)", permanent=True),
        ),
        ({}, {"node_name": "other"}, Lack("NodeName", "the requested node name", permanent=True)),
        ({"memory": 1}, {"memory": 3}, Lack("NodeResourcesFit", "memory", 2 * 2**30, permanent=True)),
        ({}, {"gpus": 1}, Lack("NodeResourcesFit", "gpu", 1, permanent=True)),
    ],
)
def test_what_no_pod_that_leaves_would_change(
    node: dict[str, object], task: dict[str, object], lack: Lack
) -> None:
    world = World(make_engine(), make_node("n", **node))  # type: ignore[arg-type]
    world.add(make_task("a", **task))  # type: ignore[arg-type]
    found = explain(world, "a")
    assert (found.state, found.summary) == ("unschedulable", "no node, however empty, could run it")
    assert found.nearest == (NearMiss("n", (lack,)),)
    assert found.funnel is not None
    assert (found.funnel.feasible, found.funnel.steps[-1].left) == (0, 0)


def test_the_nearest_nodes_are_those_that_lack_least() -> None:
    world = World(
        make_engine(),
        make_node("n0", cpu=1, taints=(Taint("t"),), labels={"zone": "b"}),
        make_node("n1", cpu=4, taints=(Taint("t"),), labels={"zone": "a"}),
        make_node("n2", cpu=3.5, labels={"zone": "a"}),
        make_node("n3", cpu=3, labels={"zone": "a"}),
    )
    world.add(make_task("a", cpu=4, node_selector=(("zone", "a"),)))
    assert [miss.node for miss in explain(world, "a").nearest] == ["n1", "n2", "n3"]


def test_of_very_many_affinity_terms_only_nodes_that_could_run_the_pod_are_near() -> None:
    world = World(
        make_engine(), make_node("far", labels={"disk": "hdd"}), make_node("n", labels={"disk": "d7"})
    )
    terms = tuple(Term((Requirement("disk", "In", (f"d{at}",)),)) for at in range(40))
    world.add(make_task("x", cpu=4, node_name="n"), make_task("a", affinity=terms))
    assert explain(world, "a").nearest == (
        NearMiss("n", (Lack("NodeResourcesFit", "cpu", 1000),), (OtherPod("default", "x"),)),
    )


def test_a_taken_port_names_the_pod_that_holds_it() -> None:
    world = small_world(make_engine())
    world.add(make_task("x", host_ports=(HostPort(80),)), make_task("y"))
    world.add(make_task("a", host_ports=(HostPort(80),)))
    (miss,) = explain(world, "a").nearest
    assert [lack.rule for lack in miss.lacks] == ["NodePorts"]
    assert miss.fits_without == (OtherPod("default", "x"),)


SPREAD = SpreadConstraint("zone", "default", (ZONE,), counts_itself=True)
APART = PodAffinityTerm("host", (ZONE,), ("default",))


@pytest.mark.parametrize(
    ("rules", "plugin", "reason"),
    [
        (
            {"spread": (SPREAD,), "topology_keys": ("zone",)},
            "PodTopologySpread",
            "node(s) didn't match pod topology spread constraints",
        ),
        (
            {"own_anti_affinity": (APART,), "anti_affinity_terms": (APART,)},
            "InterPodAffinity",
            "node(s) didn't match pod anti-affinity rules",
        ),
    ],
)
def test_rules_about_other_pods_name_their_plugin_and_the_pod(
    rules: dict[str, object], plugin: str, reason: str
) -> None:
    labels = (("app", "web"),)
    nodes = [make_node(f"n{at}", labels={"zone": f"z{at}", "host": f"h{at}"}) for at in range(2)]
    world = World(make_engine(), nodes[0])
    world.add(make_task("x", labels=labels))
    world.put_node(replace(nodes[1], unschedulable=True))
    world.add(make_task("a", labels=labels, **rules))  # type: ignore[arg-type]
    found = explain(world, "a")
    assert found.funnel is not None
    assert FilterStep(plugin, 0, (Refusal(reason, 1),)) in found.funnel.steps
    on_n0 = next(miss for miss in found.nearest if miss.node == "n0")
    assert on_n0.lacks == (Lack(plugin, reason),)


def test_room_that_is_held_for_a_pod_of_another_scheduler_is_in_the_way() -> None:
    world = small_world(make_engine(), cpu=1)
    world.step(TaskSeen(make_task("x", profile="other", nominated="n0", priority=3)))
    world.add(make_task("a"))
    (miss,) = explain(world, "a").nearest
    assert miss.fits_without == (OtherPod("default", "x", 3, nominated=True),)


def test_room_that_is_planned_for_others_is_in_the_way() -> None:
    policy = Answering(lambda task: Defer(task, 0) if task.name == "big" else Unschedulable(task))
    world = small_world(make_engine(policy, relieve=Preemption()), cpu=2)
    world.step(TaskSeen(make_task("x", profile="other", node="n0")))
    world.add(make_task("big", cpu=2))
    world.add(make_task("a", priority=5))
    found = explain(world, "a")
    assert [(miss.planned, miss.fits_without) for miss in found.nearest] == [(True, ())]
    assert found.preemption is not None
    assert found.preemption.reason == (
        "on 1 of the 1 nodes examined room is only planned for pods that wait: nobody is evicted for that"
    )


def test_more_pods_than_are_named_are_counted() -> None:
    world = small_world(make_engine(), cpu=8)
    world.add(*numbered(8, cpu=1))
    world.add(make_task("a", cpu=7))
    (miss,) = explain(world, "a").nearest
    assert (len(miss.fits_without), miss.not_listed) == (5, 2)


def test_without_nodes_the_message_is_kube_schedulers() -> None:
    world = World(make_engine())
    world.add(make_task("a"))
    found = explain(world, "a")
    assert found.funnel is not None
    assert (found.funnel.nodes, found.funnel.message) == (0, "no nodes available to schedule pods")


def test_a_feature_that_is_not_built_is_named() -> None:
    world = small_world(make_engine())
    world.add(make_task("a", unsupported=("pod groups",)))
    found = explain(world, "a")
    assert found.summary == "pod asks for pod groups, which Eclectus does not support yet"
    assert found.nearest == ()


# -- what a policy decides -------------------------------------------------------------------------


def test_a_deferred_pod_names_the_node_that_it_waits_for() -> None:
    world = World(make_engine(learn=ExactSpeeds({"fast": 10.0})), make_node("fast", cpu=1), make_node("slow"))
    world.add(*numbered(2))
    assert world.node_of("t0") == "fast"
    found = explain(world, "t1", after=1.5)
    assert found.waiting is not None
    assert (found.state, found.waiting.nodes, found.waiting.policy) == ("deferred", ("fast",), "Rosella")
    assert found.summary == (
        "waiting for node fast: expected to end sooner there than on any of 1 nodes with room"
    )
    assert found.waiting.since == 1.5
    assert found.preemption is not None
    assert found.preemption.state == "hasRoom"


def test_a_deferral_with_an_end_says_when_it_is_examined_again() -> None:
    world = small_world(make_engine(Answering(lambda task: Defer(task, None, until=20.0))))
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
    assert (found.waiting.since, found.waiting.policy) == (4.0, "FifoLine")
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

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Withheld:
        return Withheld(Reason("others come first"), until=30.0) if view.now < 30 else ()


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
    world = small_world(make_engine(Answering(lambda task: Defer(task, None)), Dead({})))
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
    assert (found.state, found.waiting.next_check) == ("backOff", FIRST_SECONDS - 0.25)
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


# -- preemption ------------------------------------------------------------------------------------


def full(relieve: object = None, **fields: object) -> World:
    """A full node with a pod of priority 1, and `a`, of priority 5, that waits."""
    roles = {"relieve": relieve} if relieve else {}
    world = small_world(make_engine(**roles), cpu=2)  # type: ignore[arg-type]
    world.add(make_task("x", cpu=2, priority=1, labels=(("app", "web"),)))
    world.step(Paused(), BudgetSeen(Budget("default", "b", (ZONE,), allowed=0)))
    world.step(TaskSeen(make_task("a", cpu=2, priority=5, **fields)))  # type: ignore[arg-type]
    return world


def test_candidates_for_eviction_are_named_with_the_budgets_that_they_violate() -> None:
    found = explain(full(Preemption()), "a").preemption
    assert found is not None
    assert (found.state, found.examined) == ("possible", 1)
    assert found.candidates == (EvictionCandidate("n0", (OtherPod("default", "x", 1),), violated_budgets=1),)


def test_a_profile_that_evicts_nobody_says_whom_it_could_evict() -> None:
    found = explain(full(), "a").preemption
    assert found is not None
    assert found.state == "profileEvictsNobody"
    assert [each.node for each in found.candidates] == ["n0"]


def test_a_policy_never_is_named() -> None:
    found = explain(full(Preemption(), preempts=False), "a").preemption
    assert found is not None
    assert (found.state, found.candidates) == ("policyNever", ())


def test_without_a_lower_priority_nobody_is_looked_for() -> None:
    world = small_world(make_engine(relieve=Preemption()), cpu=1)
    world.add(*numbered(2))
    found = explain(world, "t1").preemption
    assert found is not None
    assert (found.state, found.reason) == ("noLowerPriority", "no pod on a node has a priority below 0")


def test_evictions_that_would_not_help_are_counted() -> None:
    world = World(make_engine(relieve=Preemption()), make_node("n", cpu=2), make_node("m", cpu=9))
    world.add(make_task("x", cpu=8, priority=9), make_task("y", cpu=2, priority=0))
    world.add(make_task("a", cpu=3, priority=5))
    found = explain(world, "a", after=0.5).preemption
    assert found is not None
    assert (found.state, found.examined, found.next_check) == ("notHelpful", 1, 0.5)
    assert found.reason == (
        "it would fit on none of the 1 nodes examined without their pods of a priority below 5; "
        "1 of 2 nodes could run it when empty"
    )


def test_a_nominated_pod_names_who_is_leaving() -> None:
    world = small_world(make_engine(relieve=Preemption()), cpu=2)
    world.terminates_at_once = False
    world.add(make_task("x", cpu=2))
    world.add(make_task("a", cpu=2, priority=5))
    world.step()
    found = explain(world, "a", after=3.0)
    assert found.nomination is not None
    assert (found.nomination.node, found.nomination.since) == ("n0", 3.0)
    assert found.nomination.leaving == (OtherPod("default", "x", 0, leaving=True),)
    assert found.preemption is not None
    assert found.preemption.state == "nominated"


# -- pods that do not wait -------------------------------------------------------------------------


def test_a_bound_pod_has_its_node_and_what_is_known_of_the_decision() -> None:
    ssd = Preference(10, Term((Requirement("disk", "In", ("ssd",)),)))
    world = small_world(make_engine(learn=RosellaLearn()), nodes=2)
    world.add(make_task("a", preferences=(ssd,), created=-4.0))
    found = explain(world, "a", after=6.0)
    assert (found.state, found.age) == ("bound", 10.0)
    placement = found.placement
    assert placement is not None
    assert (placement.node, placement.since, placement.policy) == (world.node_of("a"), 6.0, "Rosella")
    assert (placement.feasible, placement.with_room) == (2, 2)
    assert (placement.speed, placement.node_state) == (1.0, "unknown")
    assert placement.unmet_preferences == ("disk=ssd (weight 10)",)
    assert "drawn" in placement.not_kept


def test_a_bind_under_way() -> None:
    world = small_world(make_engine())
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    found = explain(world, "a")
    assert (found.state, found.summary) == ("binding", "its bind to node n0 is not answered yet")


def test_a_pod_is_bound_from_the_answer_on_also_before_the_watch_shows_it() -> None:
    world = small_world(make_engine())
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    world.step(BindConfirmed("uid-a", "n0"))
    found = explain(world, "a").placement
    assert found is not None
    assert found.node == "n0"


def test_a_pod_of_another_scheduler() -> None:
    world = small_world(make_engine())
    world.step(TaskSeen(make_task("a", profile="other")))
    found = explain(world, "a")
    assert (found.state, found.scheduler_name) == ("otherScheduler", "other")
    assert found.summary == "its schedulerName is other, and this scheduler serves eclectus"


def test_a_pod_that_another_scheduler_has_nominated() -> None:
    world = small_world(make_engine())
    world.step(TaskSeen(make_task("a", profile="other", nominated="n0")))
    found = explain(world, "a", after=2.0)
    assert found.nomination is not None
    assert (found.state, found.nomination.node, found.nomination.since) == ("otherScheduler", "n0", 2.0)


def test_a_pod_that_another_scheduler_has_bound() -> None:
    world = small_world(make_engine())
    world.step(TaskSeen(make_task("a", profile="other", node="n0")))
    found = explain(world, "a")
    assert found.placement is not None
    assert (found.state, found.placement.node, found.placement.policy) == ("bound", "n0", "")


def test_a_pod_that_is_not_known() -> None:
    world = small_world(make_engine())
    world.add(make_task("a"))
    world.delete("a")
    assert [explain(world, name).state for name in ("a", "nobody")] == ["unknown", "unknown"]
    assert world.engine.explain_pod("elsewhere", "a", 1.0).state == "unknown"
