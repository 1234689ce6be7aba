"""Placement on arrival: Examples 1 to 3, the mean-field laws, error tolerance. Rates are told, not learned.

Sources: Wu, Liu, "Rosella", 2020 (examples, tolerance); Mitzenmacher, 1996 (two choices); Ying and others
for proportional sampling: with P(Q >= i) = a^(2^i - 1) in every speed class, E[T] = n/mu * sum a^(2^i - 2).
That law is of ties that go to either node alike. Ours go to the faster one, which is better and has no
closed form: it is held against figures of an independent simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from eclectus.core.model import Task
from eclectus.core.seam import Action, Join, PlacePolicy, View
from eclectus.maths.sampling import draw_proportional
from eclectus.policies import table
from eclectus.sim.results import Run
from eclectus.sim.run import build
from eclectus.sim.scenario import Scenario
from simulated import agree, place, poisson, runs, scenario

slow = pytest.mark.slow
EXAMPLE_1 = {"groups": [{"name": "slow", "count": 9}, {"name": "fast", "speed": 6}]}
PPOT = place("rosella", learn="truth", view="sample", compare="sq")
LAWFUL = place("first-drawn", learn="truth")


@dataclass(eq=False)
class FirstDrawn(PlacePolicy):
    """Two proportional choices, the shorter queue; the first drawn wins a tie."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            task_class, speeds = view.task_class(task), view.speeds(view.task_class(task))
            rows = task_class.waitable_rows
            drawn = [draw_proportional(view.rng, rows, speeds.rate, speeds.most) for _ in range(2)]
            queues = task_class.over[drawn]  # of one slot each: the tasks there
            yield Join(task, int(drawn[int(queues.argmin())] or 0))


@pytest.fixture(autouse=True)
def _in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.PLACE, "first-drawn", FirstDrawn)


def halves(count: int, fast: float = 4.0) -> dict[str, Any]:
    return {
        "groups": [
            {"name": "slow", "count": count // 2},
            {"name": "fast", "count": count // 2, "speed": fast},
        ]
    }


def grown(profiles: list[dict[str, Any]], horizon: float, seeds: int) -> list[float]:
    asked = scenario(
        cluster=EXAMPLE_1,
        workload=poisson(rate=14),
        profiles=profiles,
        measure={"horizon": horizon},
        allowUnstable=True,
    )
    return [run.growth for run in runs(asked, range(1, seeds + 1))]


# -- stability -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "slope"), [("uniform", 9 * (1.4 - 1)), ("pot", 14 * 0.81 - 9)], ids=["uniform", "two choices"]
)
def test_what_is_unstable_grows_with_the_slope_of_its_examples(policy: str, slope: float) -> None:
    """Examples 1 and 2: speed-blind choice overloads the nine slow machines."""
    profiles = place(policy, learn="none", queue="lines")
    assert agree(f"Example 1, {policy}: growth, tasks/s", grown(profiles, 1000, 4), slope, within=0.1)


def test_two_proportional_choices_are_stable_there() -> None:
    assert max(grown(PPOT, 300, 3)) < 0.2


@slow
def test_one_proportional_choice_is_ten_independent_queues() -> None:
    asked = scenario(
        cluster=EXAMPLE_1,
        workload=poisson(rate=14),
        profiles=place("pss", learn="truth"),
        measure={"tasks": 30_000},
    )
    done = runs(asked, range(1, 21))
    assert agree("Example 1, PSS: mean response n / (mu - lambda)", [run.response.mean for run in done], 10.0)


def test_joining_the_shortest_expected_delay_floods_the_one_fast_machine() -> None:
    """Example 3: SED keeps choosing the fast machine until about m tasks stand there."""
    m = 100
    cluster = {"groups": [{"name": "one", "speed": m}, {"name": "rest", "count": m}]}
    profiles = place("rosella", learn="truth", view="full", replan=False, compare="sed")
    asked = scenario(cluster=cluster, workload=poisson(0.75), profiles=profiles, measure={"tasks": 6000})
    longest = _longest_line(asked, "one-0")
    assert m - 10 <= longest <= 1.6 * m


def _longest_line(asked: Scenario, node: str) -> int:
    """The most tasks that ever stood at a node, waiting and running."""
    world, _ = build(asked, asked.contestants[0], seed=1)
    longest = 0
    lines = world.engine._state.lines.by_row

    def look(now: float, events: object, commands: object) -> None:
        nonlocal longest
        row = world.engine._state.cluster.rows[node]
        longest = max(longest, len(lines.get(row, ())) + len(world.machines[node].running))

    world.told = look
    world.run()
    return longest


# -- mean-field laws -----------------------------------------------------------------------------


def two_choices(load: float) -> float:
    """E[T] in mean service times, n to infinity."""
    return sum(load ** (2.0**i - 2) for i in range(1, 12))


def responses(done: list[Run]) -> list[float]:
    return [run.response.mean for run in done]


@pytest.mark.parametrize(
    ("load", "nodes", "seeds", "tasks", "within"),
    [
        (0.7, 200, 3, 8000, 0.05),
        pytest.param(0.7, 1000, 3, 60_000, 0.01, marks=slow),
        pytest.param(0.9, 1000, 3, 80_000, 0.01, marks=slow),
    ],
)
def test_two_uniform_choices_follow_the_law(
    load: float, nodes: int, seeds: int, tasks: int, within: float
) -> None:
    asked = scenario(
        cluster={"groups": [{"count": nodes}]},
        workload=poisson(load),
        profiles=place("pot", queue="lines"),
        measure={"tasks": tasks},
    )
    done = runs(asked, range(1, seeds + 1))
    assert agree(
        f"JSQ(2), n = {nodes}, load {load}: mean response", responses(done), two_choices(load), within
    )


@pytest.mark.parametrize(
    ("load", "nodes", "seeds", "tasks", "within"),
    [
        (0.7, 200, 3, 8000, 0.05),
        pytest.param(0.9, 1000, 3, 100_000, 0.01, marks=slow),
    ],
)
def test_two_proportional_choices_follow_the_law(
    load: float, nodes: int, seeds: int, tasks: int, within: float
) -> None:
    asked = scenario(cluster=halves(nodes), workload=poisson(load), profiles=LAWFUL, measure={"tasks": tasks})
    law = nodes / (nodes / 2 * 5) * two_choices(load)
    done = runs(asked, range(1, seeds + 1))
    assert agree(f"PPoT, n = {nodes}, load {load}: mean response", responses(done), law, within)


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
    """Share of a group's machines with at least so many tasks, mean over looks at every 500th step."""
    world, _ = build(asked, asked.contestants[0], seed=1)
    state, looks = world.engine._state, 0
    found = {group: dict.fromkeys(range(1, 5), 0.0) for group in ("slow", "fast")}

    def look(now: float, events: object, commands: object) -> None:
        nonlocal looks
        if world.steps % 500 or world.ledger.arrived < from_task or world.ledger.closed is not None:
            return
        looks += 1
        for name, machine in world.machines.items():
            at = len(machine.running) + len(state.lines.by_row.get(state.cluster.rows[name], ()))
            for least in range(1, min(at, 4) + 1):
                found[machine.group][least] += 2.0 / len(world.machines)

    world.told = look
    world.run()
    return {group: {least: total / looks for least, total in of.items()} for group, of in found.items()}


@pytest.mark.parametrize(
    ("compare", "mean", "p99"), [("sq", 0.602, 3.99), ("sed", 0.588, 2.49), ("wait", 0.557, 2.95)]
)
def test_two_proportional_choices_with_ties_to_the_faster(compare: str, mean: float, p99: float) -> None:
    profiles = place("rosella", learn="truth", view="sample", compare=compare)
    asked = scenario(cluster=halves(100), workload=poisson(0.7), profiles=profiles, measure={"tasks": 9000})
    done = runs(asked, [1, 2, 3])
    assert agree(f"two choices, {compare}, n = 100, load .7: mean", responses(done), mean, within=0.04)
    assert agree(
        f"two choices, {compare}, n = 100, load .7: p99", [r.response.p99 for r in done], p99, within=0.08
    )


# -- errors and learning -------------------------------------------------------------------------


def test_two_choices_bear_an_error_of_thirty_per_cent_and_one_does_not() -> None:
    def growth(policy: dict[str, Any]) -> float:
        profile = {"schedulerName": "it", "place": policy, "learn": {"policy": "truth", "error": 0.3}}
        asked = scenario(
            cluster=halves(100), workload=poisson(0.95), profiles=[profile], measure={"tasks": 25_000}
        )
        (run,) = runs(asked, [1])
        return run.growth / asked.plan.tasks_a_second

    two = growth({"policy": "rosella", "view": "sample", "compare": "sq"})
    one = growth({"policy": "pss"})
    # The slow half believes itself 1.3/(1.3 + 4 * 0.7) of the whole and gets that much of the work: of
    # every arriving task 0.3171 * 0.95 is more than its 0.2 of the capacity can serve.
    assert agree("PSS, 30 % error, load .95: growth a task", [one, one], 1.3 / 4.1 - 0.2 / 0.95, within=0.15)
    assert abs(two) < 0.02


def test_with_speeds_learned_from_a_cold_start_two_choices_come_near_the_law() -> None:
    """A workload's first completions are its smallest tasks; a learner that believes them floods nodes."""
    learning = place("rosella", learn="rosella", view="sample", compare="sq")
    asked = scenario(
        cluster=halves(200), workload=poisson(0.7, {"mean": 0.1}), profiles=learning, measure={"tasks": 8000}
    )
    told = 0.1 * 0.602  # what exact rates give on half as many machines
    assert agree("PPoT, learning from nothing, load .7", responses(runs(asked, [1, 2, 3])), told, within=0.12)
