"""How wrong rates may be: slow machines appear faster by a share e, fast ones slower.

A group of true share x of the capacity is believed to be p = (1 + e) x / (1 - e + 2 e x) of it. One choice in
proportion sends it p of all work, so a p < x is needed; two choices must send it work only when both
fall there, so a p^2 < x, which for the worst x = (1 - e) / (2 e) is a < 8 e (1 - e) / (1 + e)^2, and for any
e up to 1/3 no restriction at all. At the bound itself queues neither grow nor settle, so it is tried a
few per cent above, where they grow as fast as the formula says, and below, where they do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from eclectus.sim.base.results import RunResult
from published_clusters import halves, means
from short_scenarios import agree, poisson, runs, scenario

slow = pytest.mark.slow
TWO: dict[str, Any] = {"policy": "first-drawn"}
OURS: dict[str, Any] = {"policy": "rosella", "view": "sample", "compare": "sq"}
ONE: dict[str, Any] = {"policy": "pss"}


@dataclass(frozen=True)
class Mistaken:
    """Half of the machines have speed 1, half are faster; with wrong rates, at a load."""

    error: float
    load: float
    fast: float = 4.0
    count: int = 100

    def runs(self, place: dict[str, Any], tasks: int, seeds: int, warm_up: float = 0.3) -> list[RunResult]:
        learn = {"policy": "truth", "error": self.error}
        asked = scenario(
            cluster=halves(self.count, self.fast),
            workload=poisson(self.load),
            profiles=[{"schedulerName": "it", "place": place, "learn": learn}],
            measure={"tasks": tasks, "warmUp": warm_up},
        )
        return runs(asked, range(1, seeds + 1))

    def growth(self, done: list[RunResult]) -> list[float]:
        """Growth of the number in the system per arriving task."""
        return [run.growth / (self.load * self.count / 2 * (1 + self.fast)) for run in done]


def believed(share: float, error: float) -> float:
    """The apparent share of the capacity of a group with this true share."""
    return (1 + error) * share / (1 - error + 2 * error * share)


def bound(error: float) -> float:
    return 8 * error * (1 - error) / (1 + error) ** 2


def test_the_formulas_are_those_of_the_tables() -> None:
    assert [bound(0.5), bound(0.7)] == pytest.approx([0.889, 0.581], abs=5e-4)
    for error in (0.5, 0.7):
        worst = (1 - error) / (2 * error)
        assert worst / believed(worst, error) ** 2 == pytest.approx(bound(error))
    assert bound(1 / 3) == pytest.approx(1)


@slow
@pytest.mark.parametrize(("error", "mean"), [(0, 1.371), (0.3, 1.75)], ids=["exact rates", "30 % error"])
def test_two_choices_bear_thirty_per_cent(error: float, mean: float) -> None:
    world = Mistaken(error, 0.95)
    done = world.runs(TWO, tasks=25_000, seeds=4)
    assert agree(f"two choices, {error:.0%} error, a=.95: mean", means(done), mean, 0.04, 25_000)
    assert max(world.growth(done)) < 0.01


def test_two_choices_of_ours_bear_it_too() -> None:
    world = Mistaken(0.3, 0.95)
    assert max(world.growth(world.runs(OURS, tasks=10_000, seeds=1))) < 0.02


@pytest.mark.parametrize(
    ("error", "tasks"),
    [pytest.param(0.3, 8000, marks=slow), pytest.param(0.1, 40_000, marks=slow)],
    ids=["30 %", "10 %"],
)
def test_one_choice_does_not_bear_even_ten(error: float, tasks: int) -> None:
    """The slow half has .2 of the capacity. Slowly growing queues take long to reach a steady growth."""
    world = Mistaken(error, 0.95, count=20)
    done = world.runs(ONE, tasks, seeds=3, warm_up=0.5)
    expected = believed(0.2, error) - 0.2 / 0.95
    what = f"one choice, {error:.0%} error, a=.95: growth a task"
    assert agree(what, world.growth(done), expected, 0.15, tasks)


@slow
@pytest.mark.parametrize(
    ("error", "fast"), [(0.5, 1.001), (0.7, 11 / 3)], ids=["e = .5, bound .889", "e = .7, bound .581"]
)
def test_two_choices_are_stable_up_to_the_bound_and_not_beyond(error: float, fast: float) -> None:
    """The slow half has the worst share of the capacity: 1/2 and 3/14."""
    share, tasks = 1 / (1 + fast), 25_000
    beyond = Mistaken(error, 1.06 * bound(error), fast)
    growth = believed(share, error) ** 2 - share / beyond.load
    what = f"two choices, {error:.0%} error, 6 % beyond the bound a={bound(error):.3f}: growth a task"
    assert agree(what, beyond.growth(beyond.runs(TWO, tasks, seeds=3)), growth, 0.2, tasks)
    within = Mistaken(error, 0.94 * bound(error), fast)
    assert max(within.growth(within.runs(TWO, tasks, seeds=3))) < 0.2 * growth
