"""Shares that are kept up to date are those of a division made anew, and cost what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import pytest

from eclectus.accounts.pool_shares import Division, pools_below


class Stated(NamedTuple):
    """Minima, maxima and weights by path; of others nothing, and 1."""

    least: Mapping[str, Mapping[str, int]] = {}
    most: Mapping[str, Mapping[str, int]] = {}
    weights: Mapping[str, float] = {}

    def least_of(self, path: str) -> Mapping[str, int]:
        return self.least.get(path, {})

    def most_of(self, path: str) -> Mapping[str, int]:
        return self.most.get(path, {})

    def weight_of(self, path: str) -> float:
        return self.weights.get(path, 1.0)


PATHS = ["a", "b", "b/c", "b/d", "b/d/e", "b/d/f", "g/h", "g/i", "g-a/j"]
NAMES = "cpu", "gpu"


def some(random: Random, most: int) -> dict[str, int]:
    return {name: random.randrange(most) for name in NAMES if random.random() < 0.6}


def stated(random: Random) -> Stated:
    every = sorted(
        {path[:at] for path in PATHS for at in range(1, len(path) + 1) if path[at : at + 1] in "/"}
    )
    return Stated(
        {path: some(random, 6) for path in every if random.random() < 0.5},
        {path: some(random, 15) for path in every if random.random() < 0.3},
        {path: random.choice([0.0, 1.0, 2.5]) for path in every},
    )


def shown(division: Division) -> object:
    """Without what is 0: nobody asks whether it is listed."""
    shares = {
        path: {name: amount for name, amount in each.items() if amount}
        for path, each in division.shares.items()
    }
    return shares, {path: set(names) for path, names in division.contended.items()}


@pytest.mark.parametrize("seed", range(40))
def test_shares_that_are_kept_are_those_of_a_division_made_anew(seed: int) -> None:
    random = Random(seed)
    rules, needs, total = stated(random), dict[str, dict[str, int]](), {"cpu": 20.0, "gpu": 8.0}
    kept = Division(rules)
    for _ in range(40):
        if random.random() < 0.2:
            total[random.choice(NAMES)] = float(random.randrange(30))
        given = {
            path: some(random, 12) if random.random() < 0.8 else None for path in random.sample(PATHS, 2)
        }
        before = {path: dict(shares) for path, shares in kept.shares.items()}
        moved = kept.update(given, total)
        needs = {path: each for path, each in (needs | given).items() if each is not None}
        anew = Division(rules)
        anew.update(needs, total)
        assert shown(kept) == shown(anew)
        assert kept.shares.keys() == {
            path[:at] for path in needs for at in range(1, len(path) + 1) if path[at : at + 1] in "/"
        }
        for path, shares in kept.shares.items():
            if path not in moved:
                was = before.get(path, {})
                assert {name: was.get(name, 0.0) for name in shares} == shares


def test_a_level_is_divided_again_only_of_what_has_changed() -> None:
    needs = {f"{top}/{at}": {"cpu": 9, "gpu": 1} for top in "abcd" for at in range(50)}
    division = Division(Stated(most={top: {"cpu": 100} for top in "abcd"}))
    division.update(needs, {"cpu": 400.0, "gpu": 1000.0})
    before = division.divided
    assert division.update({"b/7": {"cpu": 12, "gpu": 1}}, {"cpu": 400.0, "gpu": 1000.0}) == set()
    assert division.divided - before == 50  # of cpu below b, which can use no more than before
    division.update({"b/7": {"cpu": 1, "gpu": 1}}, {"cpu": 400.0, "gpu": 1000.0})
    assert division.divided - before == 100


def test_pools_with_others_below_them_are_left_out() -> None:
    assert pools_below({"a", "a/b", "a/b/c", "a-b", "d"}) == {"a/b/c", "a-b", "d"}
