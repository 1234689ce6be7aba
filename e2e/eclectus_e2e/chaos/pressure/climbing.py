"""Hill-climbing: small changes of a candidate are kept if an object costs more then."""

import math
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
CHILDREN = 5  # of a generation
_FREE = 256  # so many objects weigh nothing in a score, or the fixed cost of a world would favour few of them
_LEAST = {"step": 200_000, "beside": 30_000, "kept": 2**24}  # less is no finding, however fast it grows
_GROWS_MOST = {"step": 1.3, "beside": 0.7, "kept": 1.3}  # what is of others may not even be linear

Measure = Callable[[Candidate], Work]


@dataclass(frozen=True)
class Found:
    """The worst that was found of a pair for one objective, with twice and with four times as many objects.

    A bound shows in the last doubling, where one is far above the small worlds of a search.
    """

    pair: Pair
    objective: str
    candidate: Candidate
    doubled: Work
    redoubled: Work

    @property
    def exponent(self) -> float:
        """Of the cost in the last doubling of the objects: 1 is linear, 2 a product, 0 bounded."""
        few, many = getattr(self.doubled, self.objective), getattr(self.redoubled, self.objective)
        return math.log2(max(1, many) / max(1, few))

    @property
    def is_finding(self) -> bool:
        """Whether it is a finding; a step that did not end is one."""
        is_much = getattr(self.redoubled, self.objective) >= _LEAST[self.objective]
        return self.redoubled.is_over or (is_much and self.exponent > _GROWS_MOST[self.objective])


@dataclass(frozen=True)
class _Genes:
    """Indices into the lists of values: two counts, two shapes and the context."""

    pair: Pair
    values: tuple[int, ...]


def climb(
    pair: Pair, objective: str, seed: int, generations: int, measure: Measure
) -> tuple[Candidate, Work]:
    """The best of so many generations from a start that the seed draws."""
    rng = random.Random(f"{seed} {pair} {objective}")
    best = drawn(pair, rng)
    work = measure(candidate_of(best))
    for _ in range(generations):
        for other in [_changed(best, rng) for _ in range(CHILDREN)]:
            found = measure(candidate_of(other))
            if _score(candidate_of(other), found, objective) > _score(candidate_of(best), work, objective):
                best, work = other, found
    return candidate_of(best), work


def search(pair: Pair, objective: str, seed: int, generations: int, seconds: float) -> Found:
    """Climb, then double what was found twice; no world takes more than these seconds of CPU."""
    counting: Counting = "bytes" if objective == "kept" else "calls"
    candidate, _ = climb(
        pair, objective, seed, generations, lambda each: beyond_empty(each, seconds / 4, counting)
    )
    doubled, redoubled = (beyond_empty(candidate.times(factor), seconds, counting) for factor in (2, 4))
    timed = measured(candidate.times(4), seconds, "nothing")
    is_over = redoubled.is_over and timed.is_over  # counting alone makes a step several times as long
    return Found(
        pair, objective, candidate, doubled, replace(redoubled, seconds=timed.seconds, is_over=is_over)
    )


def drawn(pair: Pair, rng: random.Random) -> _Genes:
    """A start."""
    return _Genes(pair, tuple(rng.randrange(len(values)) for _, values in _fields(pair)))


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
