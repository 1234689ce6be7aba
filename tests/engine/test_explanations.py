"""Every pod that waits gets a report of why: in time, with a correct message, and no message twice."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine.agenda import Backoff, ReportSchedule
from eclectus.engine.reports import NO_RELIEF
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import Rosella
from worlds import World, numbered, small_world

FULL = "0/1 nodes are available: 1 Insufficient cpu."
NEVER = f"{FULL} No node, however empty, satisfies: cpu 5."


def test_a_pod_that_no_empty_node_could_run_is_reported_at_once() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=5))
    assert world.messages("a") == [("Unschedulable", NEVER)]
    assert world.now == 0


def test_a_pod_that_no_node_could_run_is_bound_in_the_step_in_which_a_node_that_could_appears() -> None:
    world = World(make_engine(), make_node("n0", labels={"disk": "hdd"}))
    world.add(make_task("a", node_selector=(("disk", "ssd"),)))
    assert world.messages("a")[0][1].endswith(" No node, however empty, satisfies: disk=ssd.")
    world.put_node(make_node("n1", labels={"disk": "ssd"}, unschedulable=True))
    assert world.node_of("a") == ""
    world.put_node(make_node("n1", labels={"disk": "ssd"}))
    assert world.node_of("a") == "n1"


def test_all_pods_of_a_class_that_is_never_feasible_are_reported_at_once() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=5), make_task("b", cpu=5))
    world.add(make_task("c", cpu=5))
    assert [world.messages(name) for name in "abc"] == [[("Unschedulable", NEVER)]] * 3


def test_a_pod_that_waits_for_room_is_reported_after_the_grace_period() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    assert world.reports == []
    assert world.advance_to_next_step() == 1.0
    assert world.messages("t1") == [("Unschedulable", FULL)]


def test_a_pod_placed_within_the_grace_period_is_not_reported() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    world.sleep(0.9)
    world.end("t0")
    world.sleep(600)
    assert world.reports == []


def test_an_unchanged_message_is_not_reported_again() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    world.sleep(1700)
    assert len(world.messages("t1")) == 1


def test_a_message_already_on_the_pod_is_not_reported_again_after_a_restart() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=5, reported=NEVER))
    world.sleep(60)
    assert world.reports == []


def test_a_changed_message_is_reported_ten_seconds_after_the_last_one() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=5))
    world.sleep(2)
    world.put_node(make_node("m", unschedulable=True))
    world.sleep(7.9)
    assert len(world.messages("a")) == 1
    world.sleep(0.2)
    assert world.messages("a")[1][1] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. No node, however "
        "empty, satisfies all of: spec.unschedulable=false, cpu 5; without cpu 5 1 node would; "
        "nearest: n0 (all but cpu 5)."
    )


def test_without_nodes_the_message_is_that_of_kube_scheduler() -> None:
    world = World(make_engine())
    world.add(make_task())
    assert world.messages("a") == [("Unschedulable", "no nodes available to schedule pods")]


@pytest.mark.parametrize(("priority", "hint"), [(0, ""), (-1, ""), (1, NO_RELIEF)])
def test_a_pod_that_would_fit_by_preemption_gets_a_hint_that_there_is_none(priority: int, hint: str) -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(make_task("low", cpu=1), make_task("high", cpu=1, priority=9))
    world.add(make_task("a", cpu=1, priority=priority))
    world.sleep(2)
    assert world.messages("a") == [("Unschedulable", FULL + hint)]


def test_a_pod_that_preemption_could_not_help_gets_no_hint() -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(make_task("low", cpu=1), make_task("high", cpu=1, priority=9))
    world.add(make_task("a", cpu=2, priority=1))
    world.sleep(2)
    assert world.messages("a") == [("Unschedulable", FULL)]


def test_the_report_names_an_unsupported_feature() -> None:
    world = small_world(make_engine())
    world.add(make_task(unsupported=("inter-pod affinity",)))
    reason, message = world.messages("a")[0]
    assert reason == "SchedulerError", "an autoscaler adds nodes for `Unschedulable`"
    assert "asks for inter-pod affinity" in message


def test_a_gated_pod_is_not_reported() -> None:
    world = small_world(make_engine())
    world.add(make_task(cpu=99, gates=("x",)))
    world.sleep(60)
    assert world.reports == []


def test_a_pod_in_a_node_queue_is_reported_with_the_number_of_pods_ahead() -> None:
    world = small_world(make_engine(Uniform("lines")), cpu=1)
    world.add(*numbered(3))
    world.sleep(1)
    assert world.messages("t2") == [
        (
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu. Queued: in the queue of node n0, 1 pods ahead.",
        )
    ]


def test_a_pod_in_a_node_queue_is_reported_again_after_it_has_moved_up() -> None:
    world = small_world(make_engine(Uniform("lines")), cpu=1)
    world.add(*numbered(3))
    world.sleep(1)
    world.put(world.tasks["t2"])  # the watch shows the condition
    world.end("t0")
    world.sleep(20)
    assert world.messages("t2")[-1][1].endswith("in the queue of node n0, 0 pods ahead.")


def test_a_pod_in_a_node_queue_beside_room_elsewhere_makes_no_autoscaler_add_nodes() -> None:
    learn = ExactSpeeds({"fast": 1.0, "slow": 1e-3})
    policy = Rosella(replan=False, compare="sed")
    world = World(make_engine(policy, learn), make_node("fast", cpu=1), make_node("slow", cpu=1))
    world.add(*numbered(2))
    world.sleep(1)
    assert world.messages("t1") == [("WaitingForNode", "in the queue of node fast, 0 pods ahead")]


def test_a_pod_deferred_for_a_fast_node_while_slow_ones_are_free_is_reported_so() -> None:
    learn = ExactSpeeds({"fast": 0.01, "slow": 0.0001}, otherwise=0.01)
    world = World(make_engine(learn=learn), make_node("fast", cpu=1), make_node("slow", cpu=1))
    world.add(*numbered(2))
    world.sleep(1)
    assert world.messages("t1") == [
        (
            "WaitingForNode",
            "waiting for node fast: expected to end sooner there than on any of 1 nodes with room",
        )
    ]


def test_a_pod_that_has_been_reported_three_thousand_times_is_still_reported() -> None:
    reports, now = ReportSchedule(), 0.0
    for _ in range(3000):
        reports.add("a", now)
        due = reports.next_due()
        assert due is not None
        assert due - now <= 300
        now = due
        assert reports.take_due(now, 9, 9) == ["a"]
        reports.record("a", "message", "", now)


def test_pods_of_a_class_that_are_due_are_reported_together() -> None:
    reports = ReportSchedule()
    for at in range(12):
        reports.add(f"t{at}", at / 100, at % 3)
    assert reports.take_due(2.0, 5, 9) == ["t0", "t1", "t3", "t6", "t9"]
    assert reports.take_due(1.08, 99, 9) == ["t2", "t4", "t5", "t7", "t8"]
    assert reports.take_due(2.0, 99, 9) == ["t10", "t11"]


def test_repeated_reports_are_few_at_a_time_and_delay_no_first_one() -> None:
    reports = ReportSchedule()
    for at in range(100):
        reports.add(f"t{at}", 0.0, at)
    for uid in reports.take_due(1.0, 999, 4):
        reports.record(uid, "message", "", 1.0)
        reports.add(uid, 1.0)
    reports.add("moved", 10.0)
    reports.make_first_due("moved", 10.5)
    reports.add("new", 10.2)
    assert reports.next_due() == 10.5
    assert len(reports.take_due(11.0, 999, 4)) == 5
    assert reports.next_due() == pytest.approx(11.1)
    assert reports.take_due(11.05, 999, 4) == []
    assert len(reports.take_due(11.1, 3, 4)) == 3
    assert reports.next_due() == pytest.approx(11.2)
    assert "new" in reports.take_due(11.2, 999, 4)


def test_a_pod_that_waits_for_hours_is_reported_again_before_its_event_expires() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=5))
    assert len(world.messages("a")) == 1
    for _ in range(4 * 60):
        world.sleep(60.0)
    assert len(world.messages("a")) in (7, 8)  # at first and every 30 to 35 minutes
    assert len(set(world.messages("a"))) == 1


def test_a_new_leader_writes_what_the_pod_says_already_only_then() -> None:
    reports = ReportSchedule()
    assert not reports.record("a", "message", "message", 0.0)
    assert not reports.record("a", "message", "message", 1_799.0)
    assert reports.record("a", "message", "message", 1_800.0)
    assert not reports.record("a", "message", "message", 2_000.0)


def test_back_off_stays_at_ten_seconds_after_thousands_of_failures() -> None:
    backoff, now = Backoff(), 0.0
    for _ in range(3000):
        backoff.add("t", now)
        now = backoff.next_due() or 0.0
        assert len(backoff.take_due(now)) == 1
    backoff.add("t", now)
    assert backoff.next_due() == pytest.approx(now + 10)
