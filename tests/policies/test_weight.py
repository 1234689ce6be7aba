"""theta by arrivals and faster nodes: what it depends on, and that it is no worse than a fixed one."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import ExactSpeeds, make_engine, make_node
from eclectus.framework import View
from eclectus.maths.replanning import step_of, weight_of_waiting
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.costs import Demand, WaitingWeight, _faster
from eclectus.policies.rosella.place import DEAD_RATE
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
    return WaitingWeight(fixed, demand).of(view, task_class, view.cluster.rows[node], view.speeds(task_class))


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


@settings(deadline=None, max_examples=50)
@given(
    rates=st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0, 1.1, 2.0, 40.0]), min_size=1, max_size=8),
    data=st.data(),
)
def test_the_pace_of_faster_nodes_is_their_sum(rates: list[float], data: st.DataObject) -> None:
    """Node by node: those whose rate is a step higher at least, and that have no price for the class."""
    names = [f"n{at}" for at in range(len(rates))]
    cores = data.draw(st.lists(st.sampled_from([0, 1, 4]), min_size=len(rates), max_size=len(rates)))
    priced = data.draw(st.lists(st.booleans(), min_size=len(rates), max_size=len(rates)))
    nodes = [make_node(name, cpu=cpu) for name, cpu in zip(names, cores, strict=True)]
    world = World(make_engine(Rosella(), ExactSpeeds(dict(zip(names, rates, strict=True)))), *nodes)
    view = world.engine._state.view
    task_class = view.task_class(numbered(1)[0])
    factor = np.ones(view.cluster.capacity)
    factor[: len(rates)] = np.where(priced, 4.0, 1.0)
    faster = _faster(view, task_class, factor)
    found = faster.total_over(faster.behind)
    counted = [max(rate, DEAD_RATE) / of for rate, of in zip(rates, factor, strict=False)]
    pace = [0.0 if has else cpu * rate for has, cpu, rate in zip(priced, cores, counted, strict=True)]
    for row, own in enumerate(counted):
        faster = sum(each for each, rate in zip(pace, counted, strict=True) if step_of(rate) > step_of(own))
        assert found[row] == (pytest.approx(sum(pace) / faster) if faster else inf)
