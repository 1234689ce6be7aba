"""The load where nodes are fast for some classes and slow for others, and that nothing is stable above 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.sim.scenario import Scenario
from short_scenarios import runs, scenario
from stability import balance


def test_of_one_kind_of_work_it_is_arrivals_over_the_sum_of_rates() -> None:
    found = balance(np.array([[1.0], [2.0], [5.0]]), np.array([4.0]))
    assert found.load == pytest.approx(4 / 8)
    assert found.shares == pytest.approx(np.full((3, 1), 0.5))


def test_specialists_do_what_they_are_good_at() -> None:
    """Each is twice as fast for its own class: the capacity is 2 + 2 per second, not 3."""
    found = balance(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.8, 1.8]))
    assert found.load == pytest.approx(0.9)
    assert found.shares == pytest.approx(np.diag([0.9, 0.9]))


def test_who_has_time_left_helps_out_at_his_own_pace() -> None:
    """The first does its own 1 in half its time; of the other's 3, 2 r by itself and the rest at 1 a second:
    2 r + (r - 1/2) = 3."""
    found = balance(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0]))
    assert found.load == pytest.approx(3.5 / 3)


def test_work_that_few_nodes_may_do_loads_those() -> None:
    found = balance(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 4.0]]), np.array([0.1, 3.0]))
    assert found.load == pytest.approx(0.75)


RATES = st.integers(1, 4).flatmap(
    lambda kinds: st.lists(
        st.lists(st.floats(0.05, 50), min_size=kinds, max_size=kinds), min_size=1, max_size=6
    )
)


@given(RATES, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_every_answer_proves_itself(rates: list[list[float]], rng: Any) -> None:
    """Twice the work is twice the load, and twice the nodes half of it."""
    rate = np.array(rates)
    arrivals = np.array([rng.uniform(0.1, 10) for _ in rate[0]])
    load = balance(rate, arrivals).load
    assert balance(rate, 2 * arrivals).load == pytest.approx(2 * load, rel=1e-6)
    assert balance(np.vstack([rate, rate]), arrivals).load == pytest.approx(load / 2, rel=1e-6)
    assert load >= max(arrivals[c] / rate[:, c].sum() for c in range(len(arrivals))) * (1 - 1e-9)


def specialists(rate: float, policy: dict[str, Any]) -> Scenario:
    """Two groups of machines, each four times as fast for its own class; `rate` in tasks per second."""
    groups = [
        {"name": "left", "count": 10, "slots": 2, "speed": 1, "speeds": {"web": 4}},
        {"name": "right", "count": 10, "slots": 2, "speed": 1, "speeds": {"sort": 4}},
    ]
    classes = [
        {"name": "web", "share": 1, "size": {"mean": "2s"}},
        {"name": "sort", "share": 2, "size": {"mean": "2s"}},
    ]
    return scenario(
        cluster={"groups": groups},
        workload={"poisson": {"rate": rate, "classes": classes}},
        profiles=[{"schedulerName": "it", "place": policy, "learn": {"policy": "rosella"}}],
        measure={"tasks": 6000},
        allowUnstable=True,
    )


def matrix_load(asked: Scenario) -> float:
    """rho of a scenario whose tasks take a slot each."""
    machines = asked.cluster.machines().values()
    sizes = asked.plan.mean_sizes
    rate = np.array(
        [[2 * m.nominal_speed(kind.name) / mean for kind, mean in sizes.items()] for m in machines]
    )
    arrivals = np.array([{"web": 1 / 3, "sort": 2 / 3}[kind.name] for kind in sizes])
    return balance(rate, arrivals * asked.plan.tasks_a_second).load


def test_the_simulator_knows_a_lower_bound_of_it() -> None:
    asked = specialists(40.0, {"policy": "rosella"})
    assert asked.load is not None
    assert asked.load <= matrix_load(asked) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("view", "stable"), [("full", 0.9), ("sample", 0.75)])
def test_nothing_is_stable_above_it_and_learned_speeds_are_below(view: str, stable: float) -> None:
    """Re-planning with prices comes near to it; two draws for a task, which know no prices, less near.

    With 60 tasks/s rho is .9, by hand: left does its 20 web in half its time and helps right, at a quarter of
    its pace, with the 40 sort: 40 r + 10 (r - 1/2) = 40.
    """
    one = matrix_load(specialists(1.0, {"policy": "rosella"}))
    growth = {}
    for load in (stable, 1.15):
        asked = specialists(load / one, {"policy": "rosella", "view": view})
        growth[load] = np.mean([run.growth for run in runs(asked, [1, 2])]) / asked.plan.tasks_a_second
    assert abs(growth[stable]) < 0.01
    assert growth[1.15] > 0.04
