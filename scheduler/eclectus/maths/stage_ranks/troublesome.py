"""Which stages of a job are hard to place: long ones, and ones that leave much of the share unused.

Grandl, Kandula, Rao, Akella, Kulkarni, "Graphene", OSDI 2016; sets of stages are bits of a number.

    LongScore(s) = run time of a task / longest run time of a task of the job
    FragScore(s) = time of the stage by its work alone / its time in the share, alone and in whole waves

The troublesome set for thresholds l and f has all stages with LongScore >= l or FragScore <= f, and all that
lie on a path between two of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eclectus.maths.dag_plan.stages import Remaining, fitting

MOST_THRESHOLDS = 3  # of each score: the hardest stages, and quantiles of the others


class Parts(NamedTuple):
    """The waiting stages of a job: a troublesome set, its ancestors, its descendants, all others."""

    troublesome: list[int]
    parents: list[int]
    children: list[int]
    others: list[int]


def divisions(work: Remaining) -> Iterator[Parts]:
    """One for each different troublesome set that leaves something out."""
    waiting = [at for at, tasks in enumerate(work.waiting) if tasks]
    everything = sum(1 << at for at in waiting)
    above, below = _relatives(work)
    longest = max((work.ticks[at] for at in waiting), default=1)
    scores = {at: (-work.ticks[at] / longest, _fragmentation(work, at)) for at in waiting}
    seen = {0, everything}
    for least_long in _thresholds([score for score, _ in scores.values()]):
        for most_fragmented in _thresholds([score for _, score in scores.values()]):
            chosen = [
                at for at, score in scores.items() if score[0] <= least_long or score[1] <= most_fragmented
            ]
            before, after, found = 0, 0, sum(1 << at for at in chosen)
            for at in chosen:
                before |= above[at]
                after |= below[at]
            found = (found | (before & after)) & everything
            if found not in seen:
                seen.add(found)
                before, after = before & everything & ~found, after & everything & ~found
                yield Parts(
                    *(
                        _members(each)
                        for each in (found, before, after, everything & ~(found | before | after))
                    )
                )


def _relatives(work: Remaining) -> tuple[list[int], list[int]]:
    """The ancestors and the descendants of each stage."""
    stages = len(work.ticks)
    above, below = [0] * stages, [0] * stages
    for at in range(stages):
        for parent in work.parents[at]:
            above[at] |= above[parent] | 1 << parent
    for at in reversed(range(stages)):
        for child in work.children[at]:
            below[at] |= below[child] | 1 << child
    return above, below


def _fragmentation(work: Remaining, at: int) -> float:
    """FragScore: 1 if whole waves use up the share."""
    waiting = work.waiting[at]
    waves = -(-waiting // fitting(work.quota, work.needs[at], waiting))
    return (
        max((waiting * amount / work.quota[resource] for resource, amount in work.needs[at]), default=1.0)
        / waves
    )


def _thresholds(scores: list[float]) -> list[float]:
    """Some of the scores, ascending, after one that none reaches."""
    ordered = sorted(set(scores))
    step = max(1, -(-len(ordered) // MOST_THRESHOLDS))
    return [-float("inf"), *ordered[::step]]


def _members(bits: int) -> list[int]:
    return [at for at in range(bits.bit_length()) if bits >> at & 1]
