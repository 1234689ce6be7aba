"""Placement on arrival on many machines, against mean-field limits. Rates are given, not learned.

Sources: Mitzenmacher, 1996 (two choices); Ying and others for proportional sampling: with P(Q >= i) =
a^(2^i - 1) in every speed class, E[T] = n/mu * sum a^(2^i - 2). With d choices the exponents are (d^i -
1)/(d - 1). These limits are for random ties. In Rosella ties go to the faster node, which is better and has
no closed form: test_choices.py compares it with an independent simulation.

A load of .99 is left out: its warm-up would take longer than all other runs together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from eclectus.policies import table
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario
from published_clusters import halves, means
from short_scenarios import agree, place, poisson, runs, scenario

slow = pytest.mark.slow
LAWFUL = place("first-drawn", learn="truth")


@dataclass(eq=False)
class PowerOfThree(PowerOfTwo):
    """Three uniform choices."""

    choices = 3


def law(load: float, choices: int = 2) -> float:
    """E[T] in mean service times, in the limit of many machines."""
    exponents = [(choices**i - choices) // (choices - 1) for i in range(1, 12)]
    return sum(load**exponent for exponent in exponents)


def test_the_law_is_that_of_the_tables() -> None:
    known = {0.5: 1.26569, 0.7: 1.61445, 0.8: 1.94736, 0.9: 2.61406, 0.95: 3.38305, 0.99: 5.43200}
    assert [law(load) for load in known] == pytest.approx(list(known.values()), rel=1e-5)
    assert law(0.9, choices=3) == pytest.approx(2.02786, rel=1e-5)


@pytest.mark.parametrize(
    ("load", "nodes", "seeds", "tasks", "within"),
    [
        (0.7, 200, 3, 6000, 0.05),
        pytest.param(0.5, 1000, 3, 25_000, 0.01, marks=slow),
        pytest.param(0.7, 1000, 3, 45_000, 0.01, marks=slow),
        pytest.param(0.8, 1000, 3, 50_000, 0.01, marks=slow),
        pytest.param(0.9, 1000, 3, 70_000, 0.01, marks=slow),
        pytest.param(0.95, 1000, 3, 100_000, 0.03, marks=slow),
    ],
)
def test_two_uniform_choices_follow_the_law(
    load: float, nodes: int, seeds: int, tasks: int, within: float
) -> None:
    asked = scenario(
        cluster={"groups": [{"count": nodes}]},
        workload=poisson(load),
        profiles=place("pot", queue="lines"),
        measure={"tasks": tasks, "warmUp": 0.5 if load > 0.9 else 0.3},
    )
    done = runs(asked, range(1, seeds + 1))
    what = f"JSQ(2), n = {nodes}, load {load}: mean response"
    assert agree(what, means(done), law(load), within, tasks)


@slow
def test_three_uniform_choices_follow_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.PLACE, "pot", PowerOfThree)
    asked = scenario(
        cluster={"groups": [{"count": 500}]},
        workload=poisson(0.9),
        profiles=place("pot", queue="lines"),
        measure={"tasks": 35_000},
    )
    done = runs(asked, range(1, 4))
    assert agree("JSQ(3), n = 500, load 0.9: mean response", means(done), law(0.9, 3), 0.01, 35_000)


@pytest.mark.parametrize(
    ("load", "nodes", "seeds", "tasks", "within"),
    [
        (0.7, 200, 3, 6000, 0.05),
        pytest.param(0.9, 1000, 3, 90_000, 0.01, marks=slow),
    ],
)
def test_two_proportional_choices_follow_the_law(
    load: float, nodes: int, seeds: int, tasks: int, within: float
) -> None:
    asked = scenario(cluster=halves(nodes), workload=poisson(load), profiles=LAWFUL, measure={"tasks": tasks})
    done = runs(asked, range(1, seeds + 1))
    expected = nodes / (nodes / 2 * 5) * law(load)
    assert agree(f"PPoT, n = {nodes}, load {load}: mean response", means(done), expected, within, tasks)


@pytest.mark.parametrize(
    ("load", "nodes", "tasks", "within"),
    [(0.7, 400, 16_000, 0.03), pytest.param(0.9, 1000, 120_000, 0.02, marks=slow)],
)
def test_queues_of_slow_and_fast_machines_have_the_same_tail(
    load: float, nodes: int, tasks: int, within: float
) -> None:
    asked = scenario(cluster=halves(nodes), workload=poisson(load), profiles=LAWFUL, measure={"tasks": tasks})
    for group, shares in _tails(asked, from_task=tasks // 2).items():
        for at_least, expected in ((1, load), (2, load**3), (3, load**7)):
            assert shares[at_least] == pytest.approx(expected, abs=within), f"{group}: P(Q >= {at_least})"


def _tails(asked: Scenario, from_task: int) -> dict[str, dict[int, float]]:
    """Share of a group's machines with at least so many tasks, mean over samples at every 500th step."""
    world = build_world(asked, asked.profiles[0], seed=1)
    state, samples = world.engine._state, 0
    found = {group: dict.fromkeys(range(1, 5), 0.0) for group in ("slow", "fast")}

    def look(now: float, events: object, commands: object) -> None:
        nonlocal samples
        if world.steps % 500 or world.record.arrived < from_task or world.record.window_end is not None:
            return
        samples += 1
        for name, machine in world.machines.items():
            at = len(machine.running) + len(state.node_queues.by_row.get(state.cluster.rows[name], ()))
            for least in range(1, min(at, 4) + 1):
                found[machine.group][least] += 2.0 / len(world.machines)

    world.on_step = look
    world.run()
    return {group: {least: total / samples for least, total in of.items()} for group, of in found.items()}


@pytest.mark.slow
def test_with_speeds_learned_from_a_cold_start_two_choices_come_near_the_law() -> None:
    """A class's first completions are its smallest tasks; a learner that trusts them overloads nodes."""
    learning: list[dict[str, Any]] = place("rosella", learn="rosella", view="sample", compare="sq")
    asked = scenario(
        cluster=halves(200), workload=poisson(0.7, {"mean": 0.1}), profiles=learning, measure={"tasks": 8000}
    )
    exact = 0.1 * 0.602  # the mean with exact rates on half as many machines
    assert agree("PPoT, learning from nothing, load .7", means(runs(asked, [1, 2, 3])), exact, within=0.12)
