"""The test for a change of speed: false alarms, time to detect a change, and the reported start."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from eclectus.maths import numbers
from eclectus.maths.service_rates import (
    AT_REST,
    CLIP,
    MIN_SPREAD,
    MOST_SHOWN,
    Spread,
    Sums,
    changed_since,
    next_sums,
    shown,
)

Distribution = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

SLACK, THRESHOLD = 0.5, 6.0  # the learner's defaults


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.exponential(1.0, shape)


def hyperexponential(scv: float) -> Distribution:
    """Two phases of balanced means, mean 1."""
    share = 0.5 * (1 + sqrt((scv - 1) / (scv + 1)))

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        mean = np.where(rng.random(shape) < share, 0.5 / share, 0.5 / (1 - share))
        return rng.exponential(1.0, shape) * mean

    return draw


def lognormal(sigma: float) -> Distribution:
    return lambda rng, shape: rng.lognormal(-(sigma**2) / 2, sigma, shape)


def bounded_pareto(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Shape 1.5, largest over smallest 1000."""
    return (1 - rng.random(shape) * (1 - 1000**-1.5)) ** (-1 / 1.5)


DISTRIBUTIONS: dict[str, Distribution] = {
    "exponential": exponential,
    "scv 4": hyperexponential(4),
    "scv 10": hyperexponential(10),
    "scv 25": hyperexponential(25),
    "nearly equal": lognormal(0.05),
    "log-normal, sd 0.3": lognormal(0.3),
    "log-normal, sd 2": lognormal(2.0),
    "bounded Pareto": bounded_pareto,
}


def usual(distribution: Distribution) -> Spread:
    """Location and spread that the learner estimates, averaged over 20,000 samples."""
    spread, found = Spread(), []
    for relative in distribution(np.random.default_rng(9), (20_000,)).tolist():
        spread.score(relative)
        found.append((spread.location, spread.spread))
    spread.location, spread.spread = np.mean(found, axis=0).tolist()
    return spread


class ManyCells:
    """Many cells at once, each with a CUSUM of its own."""

    def __init__(self, distribution: Distribution, cells: int, seed: int = 1) -> None:
        self._law, self._spread, self._rng = distribution, usual(distribution), np.random.default_rng(seed)
        self.sums = Sums(*(np.zeros(cells) for _ in range(4)))
        self._at = 0.0

    def sample(self, factor: float = 1.0) -> np.ndarray:
        """One sample for each cell, times multiplied by a factor; resets and returns cells with an alarm."""
        self._at += 1.0
        relative = self._law(self._rng, self.sums.up.shape) * factor
        beyond = (np.log(relative) - self._spread.location) / self._spread.spread
        self.sums = next_sums(np, self.sums, np.clip(beyond, -CLIP, CLIP), self._at, SLACK)
        alarm = np.maximum(self.sums.up, self.sums.down) > THRESHOLD
        self.sums.up[alarm] = self.sums.down[alarm] = 0.0
        return np.asarray(alarm)

    def run_lengths(self, factor: float, most: int = 500) -> np.ndarray:
        """Samples of the new speed to each cell's first alarm."""
        length = np.zeros(self.sums.up.shape)
        for at in range(1, most + 1):
            length[self.sample(factor) & (length == 0)] = at
            if (length > 0).all():
                return length
        raise AssertionError(f"a change by {factor} is not found in {most} samples")


def test_numbers_and_arrays_give_the_same_sums() -> None:
    scores = np.random.default_rng(2).normal(0.3, 1.0, 200).tolist()
    one, many = AT_REST, Sums(*(np.zeros(3) for _ in range(4)))
    for at, score in enumerate(scores):
        one = next_sums(numbers, one, score, float(at), SLACK)
        many = next_sums(np, many, np.full(3, score), float(at), SLACK)
        assert [part[1] for part in many] == pytest.approx(list(one))


def test_the_run_that_alarms_began_with_the_change() -> None:
    """Scores of nothing, then of 1.5 from the twentieth on."""
    sums, found = AT_REST, None
    for at in range(60):
        sums = next_sums(numbers, sums, 0.0 if at < 20 else 1.5, float(at), SLACK)
        found = changed_since(sums, THRESHOLD)
        if found is not None:
            break
    assert (found, at) == (20.0, 26)


@pytest.mark.parametrize("way", [-1.0, 1.0], ids=["faster", "slower"])
def test_four_samples_never_raise_an_alarm(way: float) -> None:
    sums = AT_REST
    for at in range(4):
        sums = next_sums(numbers, sums, way * CLIP, float(at), SLACK)
    assert changed_since(sums, THRESHOLD) is None
    assert changed_since(next_sums(numbers, sums, way * CLIP, 4.0, SLACK), THRESHOLD) == 0.0


def test_a_drift_within_the_slack_raises_no_alarm() -> None:
    sums = AT_REST
    for at in range(10_000):
        sums = next_sums(numbers, sums, 0.49 if at % 2 else 0.5, float(at), SLACK)
    assert changed_since(sums, THRESHOLD) is None


@pytest.mark.parametrize("name", ["exponential", "scv 10"])
def test_a_fourfold_change_is_detected_within_a_dozen_samples(name: str) -> None:
    for factor in (4.0, 0.25):
        tested = ManyCells(DISTRIBUTIONS[name], cells=400)
        for _ in range(50):
            tested.sample()
        assert tested.run_lengths(factor).mean() < 14


@pytest.mark.parametrize("name", ["exponential", "scv 10"])
def test_false_alarms_are_rare(name: str) -> None:
    tested = ManyCells(DISTRIBUTIONS[name], cells=1000)
    alarms = sum(int(tested.sample().sum()) for _ in range(500))
    assert 500 * 1000 / alarms > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_run_lengths_are_those_of_the_table(name: str) -> None:
    """The table in maths/service_rates.py; at least 1,000 samples to a false alarm for any distribution."""
    tested = ManyCells(DISTRIBUTIONS[name], cells=1000)
    alarms = sum(int(tested.sample().sum()) for _ in range(5000))
    before = 5000 * 1000 / max(alarms, 1)
    found = {}
    for factor in (4.0, 0.25, 2.0, 0.5):
        tested = ManyCells(DISTRIBUTIONS[name], cells=4000, seed=3)
        for _ in range(50):
            tested.sample()
        found[factor] = tested.run_lengths(factor, most=8000)
    cells = [f"{lengths.mean():.0f} ({np.quantile(lengths, 0.9):.0f})" for lengths in found.values()]
    print(f"{name:20} {before:10,.0f}  " + "  ".join(f"{cell:>9}" for cell in cells))  # noqa: T201 — the table
    assert before > 1000
    assert max(found[4.0].mean(), found[0.25].mean()) < (30 if name == "log-normal, sd 2" else 14)


# -- location and spread -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_scores_of_any_distribution_are_around_0_and_within_the_clip(name: str) -> None:
    spread, rng = usual(DISTRIBUTIONS[name]), np.random.default_rng(4)
    scores = np.array([spread.score(r) for r in DISTRIBUTIONS[name](rng, (8000,)).tolist()])
    assert abs(scores.mean()) < 0.12
    assert np.abs(scores).mean() < 0.9
    assert np.abs(scores).max() <= CLIP


def test_equal_sizes_keep_the_minimal_spread() -> None:
    spread = Spread()
    for _ in range(5000):
        spread.score(1.0)
    assert spread.spread == MIN_SPREAD
    assert spread.score(1.1) == pytest.approx(0.38, abs=0.02)


def test_a_new_workload_starts_as_an_exponential_one() -> None:
    """The tenth sample is scored much as the ten thousandth."""
    rng, young, old = np.random.default_rng(5), Spread(), usual(exponential)
    for relative in rng.exponential(1.0, 9).tolist():
        young.score(relative)
    assert young.score(5.0) == pytest.approx(old.score(5.0), abs=0.4)


@pytest.mark.parametrize(("name", "variation"), [("exponential", 1.0), ("scv 4", 4.0), ("nearly equal", 0.0)])
def test_the_coefficient_of_variation_is_found(name: str, variation: float) -> None:
    rng, spread, found = np.random.default_rng(6), usual(DISTRIBUTIONS[name]), []
    for relative in DISTRIBUTIONS[name](rng, (5000,)).tolist():
        spread.score(relative)
        found.append(spread.variation)
    assert np.mean(found) == pytest.approx(variation, rel=0.3, abs=0.02)


def test_one_hung_task_moves_the_estimates_little() -> None:
    spread = usual(exponential)
    before = spread.location, spread.spread, spread.variation
    spread.score(1e6)
    after = spread.location, spread.spread, spread.variation
    assert all(abs(one - other) < 0.1 for one, other in zip(before[:2], after[:2], strict=True))
    assert after[2] < 25


def test_a_workload_that_grows_for_all_is_followed() -> None:
    spread = usual(exponential)
    rng = np.random.default_rng(7)
    scores = [spread.score(10 * r) for r in rng.exponential(1.0, 600).tolist()]
    means = [float(np.mean(scores[at : at + 100])) for at in (0, 200, 500)]
    assert means[0] > 0.6
    assert abs(means[2]) < 0.3
    assert all(one > other for one, other in pairwise(means))


# -- tasks that still run ----------------------------------------------------------------------------------


def test_the_score_so_far_grows_from_0_to_1_and_is_less_than_the_mean_of_those_that_take_as_long() -> None:
    spread = usual(exponential)
    scores = [spread.so_far(relative) for relative in (0.0, 1e-9, 0.1, 0.5, 1.0, 2.0, 50.0)]
    assert scores == sorted(scores)
    assert (scores[0], scores[1], scores[-1]) == (0.0, 0.0, 1.0)
    sizes = exponential(np.random.default_rng(11), (20_000,))
    for least in (0.1, 0.5, 1.0, 2.0, 4.0):
        beyond = np.log(sizes[sizes > least])
        mean = np.clip((beyond - spread.location) / spread.spread, -CLIP, CLIP).mean()
        assert mean / 4 < spread.so_far(least) < mean


def test_what_a_sample_shows_is_bounded() -> None:
    assert (shown(0.5, 1.0), shown(2.0, 30.0), shown(-1.0, -15.0)) == (1.5, MOST_SHOWN, -CLIP)
