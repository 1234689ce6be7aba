"""Hill-climbing: the best of some random worlds, then small changes that are kept if an object costs more.

A product of two kinds is often one of three or four values that have to meet, so a climb begins at the best
of many starts. It ends at once where a world costs more than any may: that is a finding, however it grows.
"""

import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from eclectus_e2e.chaos.pressure.kinds import KINDS, Shape
from eclectus_e2e.chaos.pressure.worlds import (
    CONTEXT,
    Candidate,
    Counting,
    Party,
    Work,
    beyond_empty,
    measured,
)

Pair = tuple[str, str]
PAIRS: tuple[Pair, ...] = tuple(combinations_with_replacement(KINDS, 2))
OBJECTIVES = ("step", "beside", "kept")
COUNTS = (16, 64, 192)
STARTS = 24  # of a climb
CHILDREN = 5  # of a generation
_FREE = 256  # so many objects weigh nothing in a score, or the fixed cost of a world would favour few of them
_LEAST = {"step": 200_000, "beside": 30_000, "kept": 2**24}  # less is no finding, however fast it grows
_GROWS_MOST = {"step": 1.3, "beside": 0.7, "kept": 1.3}  # what is of others may not even be linear

Measure = Callable[[Candidate], Work]


@dataclass(frozen=True)
class Found:
    """The worst that was found of a pair for one objective, with twice and with four times as many objects.

    A bound shows in the last doubling, where one is far above the small worlds of a search. What is beyond
    an absolute bound is not doubled any more. `worlds` were measured, in so many seconds of CPU.
    """

    pair: Pair
    objective: str
    candidate: Candidate
    doubled: Work
    redoubled: Work
    factor: int = 4  # of the candidate's objects, in the world of `redoubled`
    worlds: int = 3
    cpu_seconds: float = 0.0

    @property
    def exponent(self) -> float:
        """Of the cost in the last doubling of the objects: 1 is linear, 2 a product, 0 bounded."""
        few, many = getattr(self.doubled, self.objective), getattr(self.redoubled, self.objective)
        return math.log2(max(1, many) / max(1, few))

    @property
    def is_finding(self) -> bool:
        """Whether it is a finding; a step that did not end, or costs more than any may, is one."""
        is_much = getattr(self.redoubled, self.objective) >= _LEAST[self.objective]
        return self.is_over or (is_much and self.exponent > _GROWS_MOST[self.objective])

    @property
    def is_over(self) -> bool:
        """Whether it is beyond an absolute bound."""
        return self.redoubled.is_over or self.redoubled.is_beyond


@dataclass(frozen=True)
class _Genes:
    """Indices into the lists of values: two counts, two shapes and the context."""

    pair: Pair
    values: tuple[int, ...]


def climb(
    pair: Pair, objective: str, seed: int, generations: int, measure: Measure
) -> tuple[Candidate, Work, int]:
    """The best of so many generations from starts that the seed draws, and how many were measured."""
    rng, worlds = random.Random(f"{seed} {pair} {objective}"), 0
    genes = [drawn(pair, rng) for _ in range(STARTS)]
    best, work, most = genes[0], Work(), -1.0
    for _ in range(1 + generations):
        for each in genes:
            found, worlds = measure(candidate_of(each)), worlds + 1
            score = math.inf if found.is_beyond else _score(candidate_of(each), found, objective)
            if score > most:
                best, work, most = each, found, score
            if found.is_beyond:
                return candidate_of(each), found, worlds
        genes = [_changed(best, rng) for _ in range(CHILDREN)]
    return candidate_of(best), work, worlds


def search(pair: Pair, objective: str, seed: int, generations: int, seconds: float) -> Found:
    """Climb, then judge what was found; no world takes more than these seconds of CPU."""
    began = _cpu_seconds()
    candidate, work, worlds = climb(
        pair,
        objective,
        seed,
        generations,
        lambda each: beyond_empty(each, seconds / 8, _counting(objective)),
    )
    if work.is_beyond:
        found = Found(pair, objective, candidate, work, work, factor=1, worlds=0)
    else:
        found = judged(pair, objective, candidate, seconds)
    return replace(found, worlds=found.worlds + worlds, cpu_seconds=_cpu_seconds() - began)


def judged(pair: Pair, objective: str, candidate: Candidate, seconds: float) -> Found:
    """Double it twice, or once if it is beyond a bound then."""
    doubled = beyond_empty(candidate.times(2), seconds, _counting(objective))
    if doubled.is_beyond:
        return Found(pair, objective, candidate, doubled, doubled, factor=2, worlds=1)
    redoubled = beyond_empty(candidate.times(4), seconds, _counting(objective))
    if redoubled.is_beyond:
        return Found(pair, objective, candidate, doubled, redoubled, worlds=2)
    timed = measured(candidate.times(4), seconds, "nothing")
    is_over = redoubled.is_over and timed.is_over  # counting alone makes a step several times as long
    redoubled = replace(redoubled, seconds=timed.seconds, is_over=is_over)
    return Found(pair, objective, candidate, doubled, redoubled)


def _counting(objective: str) -> Counting:
    return "bytes" if objective == "kept" else "calls"


def _cpu_seconds() -> float:
    """Of this process and of the worlds that have ended."""
    times = os.times()
    return sum(times[:4])


def drawn(pair: Pair, rng: random.Random) -> _Genes:
    """A start: of a shape half of the values are the first, as they are in most objects."""

    def value(name: str, values: tuple[int, ...]) -> int:
        is_first = not name.endswith("count") and rng.random() < 0.5
        return 0 if is_first else rng.randrange(len(values))

    return _Genes(pair, tuple(value(*field) for field in _fields(pair)))


def candidate_of(genes: _Genes) -> Candidate:
    """The numbers as a world."""
    named = {name: values[at] for (name, values), at in zip(_fields(genes.pair), genes.values, strict=True)}
    first, second = (
        Party(kind, named[f"{at}.count"], {name: named[f"{at}.{name}"] for name in KINDS[kind].shape})
        for at, kind in enumerate(genes.pair)
    )
    return Candidate((first, second), {name: named[name] for name in CONTEXT})


def _fields(pair: Pair) -> list[tuple[str, tuple[int, ...]]]:
    found: list[tuple[str, tuple[int, ...]]] = list(CONTEXT.items())
    for at, kind in enumerate(pair):
        found += [(f"{at}.count", COUNTS)]
        found += [(f"{at}.{name}", values) for name, values in KINDS[kind].shape.items()]
    return found


def _changed(genes: _Genes, rng: random.Random) -> _Genes:
    """One to three values are others."""
    values, fields = list(genes.values), _fields(genes.pair)
    for at in rng.sample(range(len(fields)), rng.randint(1, 3)):
        values[at] = rng.choice([each for each in range(len(fields[at][1])) if each != values[at]])
    return _Genes(genes.pair, tuple(values))


def _score(candidate: Candidate, work: Work, objective: str) -> float:
    """Work for each object."""
    cost: int = getattr(work, objective)
    return cost / (_FREE + sum(party.count for party in candidate.parties))


def described(candidate: Candidate) -> str:
    """The vector in words; what is 0 is left out."""
    parties = (f"{party.count} {party.kind}{_text(party.shape)}" for party in candidate.parties)
    return "; ".join([*parties, *_named(candidate.context)])


def _text(shape: Shape) -> str:
    named = _named(shape)
    return f" ({', '.join(named)})" if named else ""


def _named(shape: Shape) -> list[str]:
    return [f"{name} {value}" for name, value in shape.items() if value]
