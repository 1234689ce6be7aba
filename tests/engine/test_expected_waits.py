"""How long pods without room are expected to wait, and what is counted of it."""

from __future__ import annotations

from functools import partial

import pytest

from builders import make_engine, make_node, make_task
from eclectus.engine import counters as module
from eclectus.engine.reports import StepEstimates
from eclectus.explain.pod import explain_pod
from worlds import World, numbered

ARM = (("arch", "arm64"),)


def taught(world: World, seconds: float = 60.0, workload: str = "", samples: int = 5) -> World:
    """The same world, after tasks of this class of work have run for so long."""
    for at in range(samples):
        world.add(make_task(f"taught{at}", workload=workload))
        world.end(f"taught{at}", seconds)
    return world


def estimate(world: World, name: str) -> float | None:
    found = world.engine._state.expected_waits.open.get(world.tasks[name].uid)
    return None if found is None else found.seconds


def waits(world: World, constraints: str = "any node") -> tuple[float, float]:
    counters, labels = world.engine.queue_counts().counters, ("eclectus", constraints)
    return counters.expected_wait_seconds[labels], counters.observed_wait_seconds[labels]


def test_each_pod_is_expected_to_wait_for_those_ahead_and_the_rest_of_the_work_at_hand() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=2)))
    world.add(*numbered(2))
    world.add(*numbered(3, "w"))
    world.sleep(1)
    # Two slots, 60 s each without variation: the residual of 30 s and 60 s for each pod ahead, halved.
    assert [estimate(world, f"w{at}") for at in range(3)] == pytest.approx([15, 45, 75])


def test_an_explanation_has_what_is_left_of_the_expected_wait() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)))
    world.add(make_task("a"), make_task("b"))
    explained = partial(explain_pod, world.engine)
    assert explained("default", "b", world.now).expected_wait is None
    world.sleep(1)
    found = [explained("default", "b", world.now + seconds).expected_wait for seconds in (0, 10, 99)]
    assert found == pytest.approx([30, 20, 0])
    assert explained("default", "a", world.now).expected_wait is None


def test_a_pod_that_is_placed_is_counted_with_its_estimate_and_its_wait() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)))
    world.add(make_task("a"), make_task("b"))
    world.sleep(11)
    assert waits(world) == (0, 0)
    world.end("a", 60)
    assert world.node_of("b") == "n"
    assert waits(world) == pytest.approx((30, 10))


def test_waits_are_counted_by_constraints() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1, labels={"arch": "arm64"})))
    world.add(make_task("a"), make_task("b", node_selector=ARM))
    world.sleep(11)
    world.end("a", 60)
    assert waits(world, "arch=arm64") == pytest.approx((30, 10))
    assert waits(world) == (0, 0)


def test_of_very_many_sets_of_constraints_the_further_ones_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SETS_MOST", 1)
    world = taught(World(make_engine(), make_node("n", cpu=1, labels={"arch": "arm64"})))
    world.add(make_task("a"), make_task("b", node_selector=ARM))
    world.sleep(1)
    world.add(make_task("c"))
    world.sleep(1)
    for name in ("a", "b"):
        world.end(name, 60)
    assert waits(world, "arch=arm64")[0] == pytest.approx(30)
    assert waits(world, "other")[0] == pytest.approx(90)


def test_a_pod_that_is_deleted_is_not_counted_and_is_ahead_of_nobody() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)))
    world.add(make_task("a"), make_task("b"))
    world.sleep(1)
    world.delete("b")
    world.add(make_task("c"))
    world.sleep(1)
    assert estimate(world, "c") == pytest.approx(30)
    assert waits(world) == (0, 0)


def test_without_known_run_times_there_is_no_estimate() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)), samples=4)
    world.add(make_task("a"), make_task("b"))
    world.sleep(5)
    assert estimate(world, "b") is None


def test_a_pod_that_no_node_could_run_has_no_estimate() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)))
    world.add(make_task("a", cpu=9))
    world.sleep(5)
    assert estimate(world, "a") is None


def test_what_waits_for_scarce_nodes_delays_others_only_there() -> None:
    arm = make_node("arm", cpu=1, labels={"arch": "arm64"})
    world = taught(World(make_engine(), arm, *(make_node(f"n{at}", cpu=1) for at in range(3))))
    world.add(*numbered(4))
    world.add(*numbered(8, "anywhere"))
    world.sleep(1)
    world.add(*numbered(2, "pinned", node_selector=ARM))
    world.sleep(1)
    # Eight tasks on four slots keep each of them busy for 120 s, the scarce one too.
    assert [estimate(world, f"pinned{at}") for at in range(2)] == pytest.approx([120 + 30, 120 + 60 + 30])
    world.add(*numbered(7, "last"))
    world.sleep(1)
    # The scarce slot is busy for 240 s, and the last ones share the other three until these are, too.
    found = [estimate(world, f"last{at}") for at in range(7)]
    assert found == pytest.approx([120 + (30 + 60 * ahead) / 3 for ahead in range(6)] + [240 + 30 / 4])


def test_who_waits_longer_is_ahead() -> None:
    arm = make_node("arm", cpu=1, labels={"arch": "arm64"})
    world = taught(World(make_engine(), arm, make_node("n", cpu=1)))
    world.add(*numbered(2))
    world.add(*numbered(2, "pinned", node_selector=ARM))
    world.sleep(1)
    world.add(*numbered(3, "anywhere"))
    world.sleep(1)
    # The pinned ones keep one slot busy for 120 s; of 180 s more the other one gets 150 s.
    world.add(make_task("last", node_selector=ARM))
    world.sleep(1)
    assert estimate(world, "last") == pytest.approx(150 + 30)


def test_pods_of_one_class_in_one_step_cost_one_evaluation() -> None:
    world = taught(World(make_engine(), make_node("n", cpu=1)))
    state = world.engine._state
    estimates = StepEstimates(state)
    task_class = state.view.task_class(make_task("x"))
    assert [estimates.seconds(task_class) for _ in range(3)] == pytest.approx([30, 90, 150])
