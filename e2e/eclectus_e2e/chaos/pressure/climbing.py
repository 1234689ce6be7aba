"""Screening and hill-climbing: some random worlds, then small changes that are kept if an object costs more.

A product of two kinds is often one of three or four values that have to meet. So a few worlds of every pair
are drawn first, each measured once for all objectives, and climbs come in the order of what objects of their
pairs cost there. A climb begins at the best of many starts. It ends at once where a world costs more than any
may: that is a finding, however it grows. It also ends when it has used its share of the time, so that pairs
whose worlds are slow do not keep the others from being climbed at all.
"""

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement, product

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
SCREENED = 4  # worlds of a pair that are drawn before any climb
STARTS = 12  # more of them, with which a climb begins
CHILDREN = 5  # of a generation
PATIENCE = 2  # generations in a row without a costlier world, after which a climb ends
_FREE = 256  # so many objects weigh nothing in a score, or the fixed cost of a world would favour few of them
_LEAST = {"step": 200_000, "beside": 30_000, "kept": 2**24}  # less is no finding, however fast it grows
_GROWS_MOST = {"step": 1.3, "beside": 0.7, "kept": 1.3}  # what is of others may not even be linear

Measure = Callable[[Candidate], Work]


@dataclass(frozen=True)
class Found:
    """The worst that was found of a pair for one objective, with `factor` and half as many times the objects.

    A bound shows in the last doubling, where one is far above the small worlds of a search. What is beyond
    an absolute bound is not doubled any more, nor is what costs so little that twice a product of it would
    not be much. `worlds` were measured, in so many seconds of CPU.
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


@dataclass(frozen=True)
class World:
    """One world of a pair, and what it costs."""

    genes: _Genes
    work: Work

    def score(self, objective: str) -> float:
        """Work for each object; inf beyond a bound."""
        cost: int = getattr(self.work, objective)
        count = sum(party.count for party in candidate_of(self.genes).parties)
        return math.inf if self.work.is_beyond else cost / (_FREE + count)


@dataclass(frozen=True)
class Screened:
    """The worlds of a pair that a seed has drawn, none after one that is beyond a bound."""

    pair: Pair
    seed: int
    worlds: tuple[World, ...]
    cpu_seconds: float = 0.0

    def best(self, objective: str) -> World:
        """Where a climb begins."""
        return max(self.worlds, key=lambda each: each.score(objective))


def screened(pair: Pair, seed: int, measure: Measure) -> Screened:
    """Draw worlds and measure them."""
    rng, worlds = random.Random(f"{seed} {pair}"), list[World]()
    while len(worlds) < SCREENED and not any(each.work.is_beyond for each in worlds):
        genes = drawn(pair, rng)
        worlds.append(World(genes, measure(candidate_of(genes))))
    return Screened(pair, seed, tuple(worlds))


def in_order(found: Sequence[Screened], objectives: Sequence[str]) -> list[tuple[Screened, str]]:
    """The climbs, the most promising first: of each objective in turn the pair whose objects cost most.

    First what is beyond a bound already and needs no climb. Of the rest a kind counts half as much with each
    pair of it that comes before, or one kind whose objects are costly would have all the time.
    """
    beyond = [each for each in found if each.worlds[-1].work.is_beyond]
    ranked = (_spread([each for each in found if each not in beyond], objective) for objective in objectives)
    rest = chain.from_iterable(zip(each, objectives, strict=True) for each in zip(*ranked, strict=True))
    return [*product(beyond, objectives), *rest]


def _spread(left: list[Screened], objective: str) -> Iterator[Screened]:
    before = Counter[str]()

    def promise(each: Screened) -> float:
        return each.best(objective).score(objective) / 2.0 ** sum(before[kind] for kind in each.pair)

    while left:
        found = max(left, key=promise)
        left.remove(found)
        before.update(found.pair)
        yield found


def climb(
    start: World,
    objective: str,
    rng: random.Random,
    generations: int,
    measure: Measure,
    *,
    is_spent: Callable[[], bool],
) -> tuple[World, int]:
    """The best world of more starts and so many generations, and how many were measured.

    Fewer if it does not get better, or when its time is spent.
    """
    best, worlds, patience = start, 0, PATIENCE
    genes = [drawn(start.genes.pair, rng) for _ in range(STARTS)]
    for generation in range(1 + generations):
        before = best
        for each in genes:
            if best.work.is_beyond or is_spent():
                return best, worlds
            found, worlds = World(each, measure(candidate_of(each))), worlds + 1
            best = max(best, found, key=lambda one: one.score(objective))
        patience = PATIENCE if best is not before or not generation else patience - 1
        if not patience:
            break
        genes = [_changed(best.genes, rng) for _ in range(CHILDREN)]
    return best, worlds


def screen(pair: Pair, seed: int, seconds: float) -> Screened:
    """Screen a pair; no world takes more than an eighth of these seconds of CPU."""
    began = _cpu_seconds()
    found = screened(pair, seed, lambda each: beyond_empty(each, seconds / 8, "all"))
    return replace(found, cpu_seconds=_cpu_seconds() - began)


def search(found: Screened, objective: str, generations: int, seconds: float, share_seconds: float) -> Found:
    """Climb for a share of CPU at most, then judge what was found; no world takes more than `seconds`."""
    began, pair = _cpu_seconds(), found.pair
    best, worlds = climb(
        found.best(objective),
        objective,
        random.Random(f"{found.seed} {pair} {objective}"),
        generations,
        lambda each: beyond_empty(each, seconds / 8, _counting(objective)),
        is_spent=lambda: _cpu_seconds() - began > share_seconds,
    )
    candidate, work = candidate_of(best.genes), best.work
    if work.is_beyond or 4**2 * getattr(work, objective) < _LEAST[objective]:
        result = Found(pair, objective, candidate, work, work, factor=1, worlds=0)
    else:
        result = judged(pair, objective, candidate, seconds)
    return replace(result, worlds=result.worlds + worlds, cpu_seconds=_cpu_seconds() - began)


def judged(pair: Pair, objective: str, candidate: Candidate, seconds: float) -> Found:
    """Double it twice, or once if it is beyond a bound then; once more if it seems to be a finding.

    For a bound may stand a little above the second world, as that of what is planned in a step does.
    """
    doubled = beyond_empty(candidate.times(2), seconds, _counting(objective))
    found = Found(pair, objective, candidate, doubled, doubled, factor=2, worlds=1)
    if not doubled.is_beyond:
        redoubled = _timed(candidate.times(4), objective, seconds)
        found = Found(pair, objective, candidate, doubled, redoubled, factor=4, worlds=2)
    if found.is_finding and not found.is_over:
        again = _timed(candidate.times(8), objective, seconds)
        found = Found(pair, objective, candidate, found.redoubled, again, factor=8, worlds=3)
    return found


def _timed(candidate: Candidate, objective: str, seconds: float) -> Work:
    """Its counts, and its seconds of a run of its own: counting makes a step several times as long."""
    work = beyond_empty(candidate, seconds, _counting(objective))
    if work.is_beyond:
        return work
    timed = measured(candidate, seconds, "nothing")
    return replace(work, seconds=timed.seconds, is_over=work.is_over and timed.is_over)


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


def described(candidate: Candidate) -> str:
    """The vector in words; what is 0 is left out."""
    parties = (f"{party.count} {party.kind}{_text(party.shape)}" for party in candidate.parties)
    return "; ".join([*parties, *_named(candidate.context)])


def _text(shape: Shape) -> str:
    named = _named(shape)
    return f" ({', '.join(named)})" if named else ""


def _named(shape: Shape) -> list[str]:
    return [f"{name} {value}" for name, value in shape.items() if value]
