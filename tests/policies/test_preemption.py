"""Preemption: which pods are evicted, for whom, and what happens to the room that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.cluster import budgets as budgets_module
from eclectus.engine import reports
from eclectus.engine.engine import Engine
from eclectus.framework import Place, victims
from eclectus.model.commands import Bind, Command, Evict
from eclectus.model.events import (
    BudgetGone,
    BudgetSeen,
    Event,
    EvictRefused,
    NodeSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Budget, HostPort, PodAffinityTerm, Requirement, Taint
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.clwl import CentralLeastWait
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.power_of_two import PowerOfTwo, Uniform
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella
from preemption_worlds import bound, budget, world_of
from worlds import numbered

WEB = (("app", "web"),)


# -- victims -------------------------------------------------------------------------------------


def test_as_few_pods_as_needed_are_evicted_and_the_preemptor_gets_their_room() -> None:
    world = world_of()
    world.add(*(bound(f"low{at}", "n0", started=float(at)) for at in range(4)))
    world.add(make_task("high", 2, priority=1))
    assert world.victims() == ["low2", "low3"]  # those that have run for the shortest time
    assert world.node_of("high") == "n0"
    assert not world.faults


def test_nobody_is_evicted_for_a_pod_of_the_same_priority() -> None:
    world = world_of()
    world.add(*numbered(5))
    world.sleep(60)
    assert not world.victims()


def test_pods_of_lower_priority_go_first() -> None:
    world = world_of()
    priorities = {"p3": 3, "p1": 1, "p2": 2, "p0": 0}
    world.add(*(bound(name, "n0", priority=priority) for name, priority in priorities.items()))
    world.add(make_task("high", 2, priority=9))
    assert world.victims() == ["p1", "p0"]


def test_a_pod_that_need_not_go_is_spared_though_it_is_less_important() -> None:
    world = world_of(make_node("n0", 4))
    world.add(bound("small", "n0", 1, priority=0), bound("large", "n0", 3, priority=1))
    world.add(make_task("high", 3, priority=9))
    assert world.victims() == ["large"]


def test_nobody_is_evicted_where_even_that_would_not_help() -> None:
    world = world_of(make_node("n0", 4))
    world.add(bound("high", "n0", 3, priority=9), bound("low", "n0", 1))
    world.add(make_task("preemptor", 2, priority=5))
    world.sleep(60)
    assert not world.victims()


def test_nodes_that_are_never_feasible_are_left_alone() -> None:
    world = world_of(make_node("n0", 4, taints=(Taint("t"),)), make_node("n1", 1))
    world.add(bound("low0", "n0", 4), bound("low1", "n1", 1))
    world.add(make_task("high", 2, priority=1))
    world.sleep(60)
    assert not world.victims()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([(1, 0.0)], [(2, 0.0)], id="lowest highest priority"),
        pytest.param([(5, 0.0), (1, 0.0)], [(5, 0.0), (2, 0.0)], id="smallest sum of priorities"),
        pytest.param([(5, 0.0)], [(5, 0.0), (-3, 0.0)], id="fewest victims"),
        pytest.param([(1, 9.0)], [(1, 3.0)], id="latest start"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_node_where_eviction_costs_least_is_chosen(
    one: list[tuple[int, float]], other: list[tuple[int, float]], turned: bool
) -> None:
    world = world_of(make_node("n0", 4), make_node("n1", 4))
    nodes = ["n1", "n0"] if turned else ["n0", "n1"]
    for node, pods in zip(nodes, (one, other), strict=True):
        share = 4 / len(pods)
        tasks = [
            bound(f"{node}-{at}", node, share, priority=priority, started=started)
            for at, (priority, started) in enumerate(pods)
        ]
        world.add(*tasks)
    world.add(make_task("high", 4, priority=9))
    assert {name.split("-")[0] for name in world.victims()} == {nodes[0]}


# -- budgets -------------------------------------------------------------------------------------


def test_a_node_where_no_budget_is_violated_is_preferred() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB), bound("other", "n1", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["other"]


def test_on_one_node_pods_with_a_violated_budget_are_spared_first() -> None:
    world = world_of(make_node("n0", 2))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB), bound("other", "n0", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["other"]


def test_a_budget_is_violated_where_nothing_else_helps() -> None:
    world = world_of(make_node("n0", 1))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["web"]


def test_evictions_under_way_count_against_a_budget() -> None:
    nodes = [make_node(f"n{at}", 1) for at in range(4)]
    world = world_of(*nodes)
    world.terminates_at_once = False
    world.step(budget(1))
    world.add(*(bound(f"web{at}", f"n{at}", labels=WEB) for at in range(2)))
    world.add(*(bound(f"other{at}", f"n{at + 2}", priority=1) for at in range(2)))
    world.add(make_task("high0", priority=9))
    assert world.victims() == ["web0"]
    world.add(make_task("high1", priority=9), make_task("high2", priority=9))
    assert set(world.victims()) == {"web0", "other0", "other1"}


def test_a_status_that_is_written_again_counts_the_evictions_so_far() -> None:
    """As after the eviction of a pod that was not ready: the budget allows as many as before."""
    world = world_of(make_node("n0", 1), make_node("n1", 1), make_node("n2", 1))
    world.step(budget(1))
    world.add(bound("other", "n0", priority=1))
    world.add(*(bound(f"web{at}", f"n{at}", labels=WEB) for at in (1, 2)))
    world.add(make_task("high0", priority=9))
    world.step(budget(1))
    world.add(make_task("high1", priority=9))
    assert sorted(world.victims()) == ["web1", "web2"]


def test_an_empty_selector_a_disrupted_pod_and_a_deleted_budget_protect_nobody() -> None:
    for events in (
        [BudgetSeen(Budget("default", "b", (), 0))],
        [budget(0, disrupted=("web",))],
        [budget(0), BudgetGone("default", "b")],
    ):
        world = world_of(make_node("n0", 2))
        world.step(*events)
        world.add(bound("web", "n0", labels=WEB), bound("other", "n0", priority=1))
        world.add(make_task("high", priority=9))
        assert world.victims() == ["web"]


# -- ports, anti-affinity --------------------------------------------------------------------------


def test_a_host_port_is_freed() -> None:
    world = world_of()
    ports = (HostPort(80),)
    world.add(bound("web", "n0", 0, host_ports=ports), bound("other", "n0", 0))
    world.add(make_task("high", 0, priority=1, host_ports=ports))
    assert world.victims() == ["web"]
    assert world.node_of("high") == "n0"


def test_a_pod_whose_anti_affinity_keeps_the_preemptor_away_is_evicted() -> None:
    term = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("default",))
    world = world_of(make_node("n0", labels={"zone": "z"}), make_node("n1", labels={"zone": "z"}))
    world.add(bound("alone", "n0", anti_affinity_terms=(term,)), bound("other", "n0"))
    world.add(make_task("high", priority=1, labels=WEB))
    assert world.victims() == ["alone"]
    assert world.node_of("high") == "n0"


# -- the preemptor -------------------------------------------------------------------------------


def test_a_pod_with_policy_never_evicts_nobody_and_says_why() -> None:
    world = world_of(make_node("n0", 1))
    world.add(bound("low", "n0"))
    world.add(make_task("high", priority=9, preempts=False))
    world.sleep(60)
    assert not world.victims()
    (reason, message) = world.messages("high")[0]
    assert reason == "Unschedulable"
    assert message.endswith("1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.")


def test_a_pod_for_which_nobody_can_be_evicted_says_so_in_kube_schedulers_words() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 4, taints=(Taint("t"),)))
    world.add(bound("other", "n0", priority=9))
    world.add(make_task("high", priority=9))
    world.sleep(2)
    assert world.messages("high")[0][1] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). preemption: "
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_where_evicting_all_of_lower_priority_does_not_help_it_says_what_still_refuses() -> None:
    world = world_of(make_node("n0", 4), make_node("n1", 4), make_node("n2", 4))
    ports = (HostPort(80),)
    world.add(bound("high0", "n0", 3, priority=9), bound("low0", "n0"))
    world.add(bound("high1", "n1", 2, priority=9, host_ports=ports), bound("low1", "n1", 2))
    world.add(bound("high2", "n2", 4, priority=9))
    world.add(make_task("preemptor", 2, priority=5, host_ports=ports))
    world.sleep(2)
    assert world.messages("preemptor")[0][1] == (
        "0/3 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
        "2 Insufficient cpu. preemption: 0/3 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, "
        "1 node(s) didn't have free ports for the requested pod ports."
    )


def test_a_pod_for_which_others_are_evicted_says_so_in_kube_schedulers_words() -> None:
    world = world_of(make_node("n0", 2))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n0"))
    world.add(make_task("a", priority=9), make_task("b", priority=9))
    world.sleep(2)
    assert {world.messages(name)[-1][1] for name in "ab"} == {
        "0/1 nodes are available: 1 Insufficient cpu. preemption: "
        "found a potential placement for pod on node n0, preempting 1 victims"
    }


def test_a_pod_that_another_process_has_nominated_says_nothing_of_victims() -> None:
    world = world_of(make_node("n0", 1))
    world.add(replace(bound("low", "n0"), deleting=True), make_task("high", priority=9, nominated="n0"))
    world.sleep(2)
    assert world.messages("high")[-1][1] == "0/1 nodes are available: 1 Insufficient cpu."


def test_of_many_nodes_with_pods_of_lower_priority_only_some_are_examined_for_a_message() -> None:
    world = world_of(*(make_node(f"n{at}", 4) for at in range(60)))
    world.add(*(bound(f"high{at}", f"n{at}", 3, priority=9) for at in range(60)))
    world.add(*(bound(f"low{at}", f"n{at}") for at in range(60)))
    world.add(make_task("preemptor", 2, priority=5), make_task("lowest", 2, priority=-1))
    world.sleep(2)
    outcomes = [world.messages(name)[0][1].partition(" preemption: ")[2] for name in ("preemptor", "lowest")]
    assert outcomes == [
        "0/60 nodes are available: 10 not examined for preemption victims, 50 Insufficient cpu.",
        "0/60 nodes are available: 60 No preemption victims found for incoming pod.",
    ]


def test_messages_that_examine_many_pods_are_spread_over_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "PODS_MOST", 5)
    world = world_of(make_node("n0", 8), make_node("n1", 8))
    world.add(*(bound(f"high{at}", f"n{at}", 5, priority=9) for at in range(2)))
    world.add(*(bound(f"low{at}", f"n{at % 2}") for at in range(6)))
    world.add(*(make_task(f"p{at}", 4 + at, priority=5) for at in range(3)))
    before = len(world.reports)
    while world.now < 10 and len(world.reports) < before + 3:
        reported = len(world.reports)
        world.advance_to_next_step()
        assert len(world.reports) <= reported + 1
    assert {report.name for report in world.reports} == {"p0", "p1", "p2"}
    assert all("preemption: 0/2 nodes" in report.message for report in world.reports)


def test_pods_that_the_kubelet_has_accepted_long_ago_are_spared_whenever_their_containers_started() -> None:
    world = world_of(make_node("n0", 2))
    restarted = bound("restarted", "n0", accepted=10.0, started=5000.0)
    world.add(restarted, bound("young", "n0", accepted=900.0, started=901.0))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["young"]


def test_nodes_on_which_no_eviction_could_help_are_counted_apart() -> None:
    """By what refuses a node first, as in kube-scheduler: nobody who leaves brings a label or another pod."""
    near = PodAffinityTerm("zone", (Requirement("app", "In", ("db",)),), ("default",))
    apart = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("default",))
    zones = [make_node(f"n{at}", 4, labels={"zone": zone}) for at, zone in enumerate("ab")]
    world = world_of(*zones)
    world.add(bound("other", "n0", priority=9, labels=WEB))
    world.add(make_task("near", priority=9, affinity_terms=(near,), topology_keys=("zone",)))
    world.add(make_task("apart", priority=9, own_anti_affinity=(apart,), node_selector=(("zone", "a"),)))
    world.sleep(2)
    assert world.messages("near")[0][1].endswith(
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert world.messages("apart")[0][1].endswith(
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_many_equal_preemptors_evict_each_victim_once_and_no_more_than_needed() -> None:
    world = world_of(*(make_node(f"n{at}", 4) for at in range(50)))
    world.terminates_at_once = False
    world.add(*(bound(f"low{at}", f"n{at // 4}") for at in range(200)))
    world.add(*numbered(80, "high", cpu=2, priority=1))
    world.sleep(60)
    assert len(world.victims()) == 160
    for name in world.victims():
        world.delete(name)
    world.sleep(5)
    assert all(world.node_of(f"high{at}") for at in range(80))
    assert len(world.victims()) == 160


def test_who_waits_for_victims_evicts_no_others() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1"))
    world.add(make_task("high", priority=9))
    world.sleep(300)
    (victim,) = world.victims()
    assert not world.node_of("high")
    world.delete(victim)
    assert world.node_of("high") == world.tasks["high"].nominated


def test_room_elsewhere_that_comes_first_is_taken() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["low0"]
    world.delete("low1")
    assert world.node_of("high") == "n1"
    world.delete("low0")
    world.add(make_task("next"))
    assert world.node_of("next") == "n0"  # no room is held any more


def test_pods_that_are_terminating_are_used_before_others_are_evicted() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.add(bound("low0", "n0"), bound("going", "n1", deleting=True))
    world.add(make_task("high", priority=9))
    assert not world.victims()
    assert [each.node for each in world.nominations] == ["n1"]
    world.delete("going")
    assert world.node_of("high") == "n1"


@pytest.mark.parametrize("place", [Rosella, BestFit, PowerOfTwo, CentralLeastWait])
def test_it_works_beside_policies_that_let_tasks_wait(place: type[Place]) -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1), place=place())
    world.add(*numbered(2, "low"))
    world.add(make_task("high", priority=9))
    world.sleep(5)
    assert len(world.victims()) == 1
    assert world.node_of("high")
    assert not world.faults


def test_a_pod_in_a_node_queue_takes_the_room_of_a_pod_of_lower_priority_that_starts_later() -> None:
    world = world_of(make_node("n0", 1), place=Uniform("lines"))
    world.add(bound("equal", "n0", priority=9))
    world.add(make_task("high", priority=9))
    world.add(bound("low", "n1"))
    world.put_node(make_node("n1", 1))
    world.sleep(60)
    assert world.victims() == ["low"]
    assert world.node_of("high") == "n1"
    assert not world.faults


def test_a_pod_in_a_node_queue_for_which_nobody_can_be_evicted_is_asked_about_ever_more_rarely() -> None:
    world = world_of(make_node("n0", 1), place=Uniform("lines"))
    world.add(bound("equal", "n0", priority=9))
    world.add(make_task("high", priority=9))
    steps = 0
    while world.now < 600:
        world.advance_to_next_step()
        steps += 1
    assert not world.victims()
    assert steps <= 60, "one in ten seconds, reports of the pod among them"


@pytest.mark.parametrize("op", ["In", "NotIn"])
def test_budgets_of_pods_that_differ_do_not_make_a_step_long(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comparisons of budgets with pods are counted: the search goes on in later steps, and ends."""
    monkeypatch.setattr(budgets_module, "COMPARISONS_MOST", 400)
    world = world_of(*(make_node(f"n{at}", 4) for at in range(10)))
    labels = [(("app", "web"), ("number", str(at))) for at in range(40)]
    world.add(*(bound(f"low{at}", f"n{at % 10}", labels=labels[at]) for at in range(40)))
    selector = (Requirement("number" if op == "NotIn" else "app", op, ("web",)),)  # type: ignore[arg-type]
    world.step(*(BudgetSeen(Budget("default", f"b{at}", selector, 0)) for at in range(30)))
    world.tasks |= (
        preemptors := {f"high{at}": make_task(f"high{at}", 2 + at / 1000, priority=1) for at in range(12)}
    )
    compared = []
    for events in (map(TaskSeen, preemptors.values()), *[()] * 60):
        world.step(*events, after=1.0)
        compared.append(world.engine._state.budgets.compared)
    assert max(compared) <= 400 + 4 * (60 + victims.COMPARISONS_OF_POD), (
        "one node more than there are comparisons left for"
    )
    assert world.victims(), "the search ends all the same"
    assert not world.faults


def test_pods_on_nodes_do_not_make_a_step_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are looked at are counted: the search goes on in later steps, and ends."""
    monkeypatch.setattr(budgets_module, "COMPARISONS_MOST", 100)
    world = world_of(*(make_node(f"n{at}", 4) for at in range(10)))
    world.add(*(bound(f"low{at}", f"n{at % 10}") for at in range(40)))
    preemptors = {f"high{at}": make_task(f"high{at}", 2 + at / 1000, priority=1) for at in range(12)}
    world.tasks |= preemptors
    compared = []
    for events in (map(TaskSeen, preemptors.values()), *[()] * 60):
        world.step(*events, after=1.0)
        compared.append(world.engine._state.budgets.compared)
    assert 50 < max(compared) <= 100 + 4 * victims.COMPARISONS_OF_POD, "one node more than is left for"
    assert len(world.victims()) >= 20, "the search ends all the same"
    assert not world.faults


def drive(
    engine: Engine, events: Iterable[Event], answer: Callable[[Command], Iterable[Event]]
) -> list[Evict]:
    """Half an hour of a cluster that answers each command; all evictions that were asked for."""
    evictions, pending, now = list[Evict](), list(events), 1.0
    while now < 1800.0:
        commands = engine.step(pending, now)
        pending = [event for command in commands for event in answer(command)]
        evictions += [command for command in commands if isinstance(command, Evict)]
        due = engine.next_step_at()
        now = max(now + 0.01, now if pending else min(now + 30.0, now + 30.0 if due is None else due))
    return evictions


def test_a_victim_that_may_not_be_evicted_is_left_alone_and_another_node_serves() -> None:
    protected, others = (
        bound("protected", "n0", 3),
        [bound(f"low{at}", "n1", 2, priority=5) for at in range(2)],
    )
    binds = []

    def answer(command: Command) -> Iterator[Event]:
        if isinstance(command, Evict):
            refused = command.name == "protected"
            yield EvictRefused(command.uid, "the webhook said no") if refused else TaskGone(command.uid)
        elif isinstance(command, Bind):
            binds.append(command.node)

    engine = make_engine(LeastAllocated(), relieve=Preemption())
    nodes = [NodeSeen(make_node(name, 4)) for name in ("n0", "n1")]
    pods = map(TaskSeen, [protected, *others, make_task("high", 3, priority=9)])
    evictions = drive(engine, [*nodes, Resumed(), *pods], answer)
    assert binds == ["n1"]
    asked = [evict.name for evict in evictions].count("protected")
    assert asked == 2, "the first refusal may be a conflict"


def test_a_victim_that_may_not_be_evicted_is_tried_ever_more_rarely() -> None:
    engine = make_engine(LeastAllocated(), relieve=Preemption())
    pods = map(TaskSeen, [bound("protected", "n0", 3), make_task("high", 3, priority=9)])
    evictions = drive(
        engine,
        [NodeSeen(make_node("n0", 4)), Resumed(), *pods],
        lambda command: [EvictRefused(command.uid, "no")] if isinstance(command, Evict) else [],
    )
    assert 3 <= len(evictions) <= 12


def test_evictions_whose_room_others_take_become_ever_rarer() -> None:
    """As beside a second scheduler that at once places what was evicted (kubernetes #130429)."""
    count = 0

    def answer(command: Command) -> Iterator[Event]:
        nonlocal count
        if isinstance(command, Evict):
            count += 1
            yield TaskGone(command.uid)
            yield TaskSeen(bound(f"again{count}", "n0", 2))

    engine = make_engine(LeastAllocated(), relieve=Preemption())
    pods = map(TaskSeen, [*(bound(f"low{at}", "n0", 2) for at in range(2)), make_task("high", 4, priority=9)])
    evictions = drive(engine, [NodeSeen(make_node("n0", 4)), Resumed(), *pods], answer)
    assert 6 <= len(evictions) <= 40
