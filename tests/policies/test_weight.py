"""theta by arrivals and faster nodes: what it depends on, and that it is no worse than a fixed one."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node
from eclectus.framework import View
from eclectus.maths.deferring import weight_of_waiting
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.place.demand import Demand
from eclectus.policies.rosella.place.weight import WaitingWeight
from queueing import simulate
from worlds import World, numbered

FIXED = 6.0
SPEEDS = {"fast": 4.0, "middle": 2.0, "slow": 1.0}  # of four slots each: 28 tasks a second together


def asked(tasks_a_second: float) -> tuple[World, View]:
    """A hundred tasks arrive one by one, and end at once."""
    world = World(make_engine(Rosella(), ExactSpeeds(SPEEDS)), *(make_node(name, cpu=4) for name in SPEEDS))
    for task in numbered(100):
        world.sleep(1.0 / tasks_a_second)
        world.add(task)
        world.end(task.name)
    world.add(*numbered(1, "last"))
    return world, world.engine._state.view


def theta(fixed: float | None, tasks_a_second: float, node: str) -> float:
    world, view = asked(tasks_a_second)
    demand = Demand()
    demand.refresh(view)
    task_class = view.task_class(world.tasks["last0"])
    return WaitingWeight(fixed, demand).of(view, task_class, view.cluster.rows[node])


@pytest.mark.parametrize(("tasks_a_second", "node", "load"), [(8.0, "slow", 8 / 24), (8.0, "middle", 8 / 16)])
def test_theta_follows_what_arrives_over_what_faster_nodes_do(
    tasks_a_second: float, node: str, load: float
) -> None:
    found = theta(None, tasks_a_second, node)
    assert weight_of_waiting(0.85 * load) <= found <= weight_of_waiting(1.15 * load)


def test_theta_is_greatest_where_faster_nodes_do_not_suffice_or_there_is_none() -> None:
    assert theta(None, 20.0, "middle") == theta(None, 8.0, "fast") == weight_of_waiting(1.0)


def test_a_theta_that_is_set_is_used() -> None:
    assert theta(7.0, 8.0, "slow") == 7.0


@pytest.mark.parametrize(
    ("load", "slots", "mean_most", "p99_most"),
    [
        (0.5, 1, 1.02, 1.0),
        (0.8, 1, 1.05, 1.0),
        (0.9, 1, 1.1, 1.1),
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
