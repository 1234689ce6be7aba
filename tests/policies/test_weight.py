"""theta by load and slots: what it depends on, and that it is no worse than a fixed one."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node
from eclectus.maths.deferring import weight_of_waiting
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.place.weight import MEAN_TIMES, WaitingWeight
from queueing import simulate
from worlds import World, numbered

FIXED = 4.0


def busy(running: int, fast: float = 4.0) -> World:
    """A fast and a slow node of four slots each, with `running` tasks."""
    engine = make_engine(Rosella(theta=1000), ExactSpeeds({"fast": fast, "slow": 1.0}))
    world = World(engine, make_node("fast", cpu=4), make_node("slow", cpu=4))
    world.add(*numbered(running))
    return world


def theta(weight: WaitingWeight, world: World) -> float:
    view = world.engine._state.view
    return weight.of(view, view.task_class(next(iter(world.tasks.values()))))


@pytest.mark.parametrize(("running", "load"), [(1, 0.2), (4, 0.8), (6, 0.9), (8, 1.0)])
def test_theta_follows_the_share_of_capacity_in_use(running: int, load: float) -> None:
    assert theta(WaitingWeight(None), busy(running)) == weight_of_waiting(load, 4)


def test_a_theta_that_is_set_is_used() -> None:
    assert theta(WaitingWeight(7.0), busy(8)) == 7.0


def test_a_short_change_of_load_changes_theta_little() -> None:
    """The load falls from .8 to .2: after half a mean task time by a tenth of that, in the end fully."""
    weight, world = WaitingWeight(None), busy(4)
    assert theta(weight, world) == weight_of_waiting(0.8, 4)
    for name in ("t1", "t2", "t3"):
        world.end(name)
    mean_seconds = 8 / 20  # eight slots do twenty tasks a second
    world.step(after=mean_seconds / 2)
    assert weight_of_waiting(0.7, 4) <= theta(weight, world) < weight_of_waiting(0.8, 4)
    world.step(after=mean_seconds * 20 * MEAN_TIMES)
    world.add(*numbered(1, "last"))  # a change, so that the load is measured again
    assert theta(weight, world) == weight_of_waiting(0.4, 4)


@pytest.mark.parametrize(
    ("load", "slots", "mean_most", "p99_most"),
    [
        (0.5, 1, 1.02, 1.0),
        (0.8, 1, 1.05, 0.95),
        (0.9, 1, 1.1, 1.05),
        pytest.param(0.9, 4, 1.05, 1.1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.long
def test_it_is_no_worse_than_a_fixed_theta(
    load: float, slots: int, mean_most: float, p99_most: float
) -> None:
    """At low and at high load: the tail is shorter, the mean about the same."""
    tasks = 1500 if slots == 1 else 6000
    ours = simulate(Rosella(), load=load, slots=slots, tasks=tasks, seed=1)
    fixed = simulate(Rosella(theta=FIXED), load=load, slots=slots, tasks=tasks, seed=1)
    assert ours.mean <= mean_most * fixed.mean
    assert ours.p99 <= p99_most * fixed.p99
