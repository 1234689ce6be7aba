"""Which preferences the node of a pod does not meet, right after the decision."""

from __future__ import annotations

from builders import make_engine, make_node, make_task
from eclectus.explain.pod import MAX_EXAMINED, unmet_by
from eclectus.model.commands import Bind
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Preference, Requirement, Task, Term
from worlds import World

SSD = Preference(50, Term((Requirement("disk", "In", ("ssd",)),)))
NEAR = Preference(1, Term((Requirement("zone", "In", ("a", "b")), Requirement("spot", "DoesNotExist"))))


def unmet(world: World, task: Task) -> tuple[str, ...]:
    """Of a pod that is bound in one step."""
    world.tasks[task.name] = task
    (bind,) = world.step(TaskSeen(task))
    assert isinstance(bind, Bind)
    return world.engine.read(unmet_by, task.uid)


def test_preferences_that_the_node_does_not_meet_are_named_the_heaviest_first() -> None:
    world = World(make_engine(), make_node("n", labels={"zone": "c"}))
    assert unmet(world, make_task("a", preferences=(NEAR, SSD))) == (
        "disk=ssd (weight 50)",
        "zone in (a, b), !spot (weight 1)",
    )


def test_preferences_that_the_node_meets_are_not_named() -> None:
    world = World(make_engine(), make_node("n", labels={"zone": "a", "disk": "hdd"}))
    assert unmet(world, make_task("a", preferences=(NEAR, SSD))) == ("disk=ssd (weight 50)",)
    assert unmet(world, make_task("b", preferences=(NEAR,))) == ()


def test_a_pod_without_preferences_and_one_that_is_not_bound_have_none() -> None:
    world = World(make_engine(), make_node("n"))
    assert unmet(world, make_task("a")) == ()
    world.add(make_task("b", cpu=99, preferences=(SSD,)))
    assert world.engine.read(unmet_by, "uid-b") == ()
    assert world.engine.read(unmet_by, "nobody") == ()


def test_of_thousands_of_preferences_the_heaviest_are_examined() -> None:
    many = tuple(Preference(1 + at % 100, Term((Requirement(f"k{at}", "Exists"),))) for at in range(3000))
    found = unmet(World(make_engine(), make_node("n")), make_task("a", preferences=many))
    assert len(found) == MAX_EXAMINED
    assert found[0].endswith("(weight 100)")
