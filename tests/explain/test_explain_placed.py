"""A pod that does not wait here: bound, being bound, of another scheduler, unknown."""

from __future__ import annotations

from builders import make_engine, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.events import BindConfirmed, TaskSeen
from eclectus.model.objects import Preference, Requirement, Term
from eclectus.policies.rosella import RosellaLearn
from explain_questions import explain
from worlds import small_world


def test_a_bound_pod_has_its_node_and_what_is_known_of_the_decision() -> None:
    ssd = Preference(10, Term((Requirement("disk", "In", ("ssd",)),)))
    world = small_world(make_engine(learn=RosellaLearn()), nodes=2)
    world.add(make_task("a", preferences=(ssd,), created=-4.0))
    found = explain(world, "a", after=6.0)
    assert (found.state, found.age) == ("bound", 10.0)
    placement = found.placement
    assert placement is not None
    assert (placement.node, placement.since, placement.policy) == (world.node_of("a"), 6.0, "place/rosella")
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
    assert explain_pod(world.engine, "elsewhere", "a", 1.0).state == "unknown"
