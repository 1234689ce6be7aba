"""What one namespace takes from the speeds that others have learned: a prior, robust and bounded.

Each namespace has one vote for a node, whatever the number of its samples, once they weigh LEAST_SAMPLES:
the logarithm v of the node's speed, where the geometric mean over the nodes of that namespace is 1. For node
i and namespace g,

    q_gi = the number nearest to 0 between the lower and the upper median of v_hi over all h other than g
    ln p_gi = q_gi - (mean of q_g over the nodes of which g has samples itself),  within -ln MOST .. ln MOST

An odd number of votes has one median. With an even number the two middle ones count as far as they agree: of
two votes the weaker one, and none if they contradict each other. So one liar among two or more votes moves
q to a value between 0 and the honest ones at most. The mean over the nodes that g knows is subtracted because
only ratios matter: the same factor on all nodes says nothing. For it, q is within -2 ln MOST .. 2 ln MOST, so
that a single node moves it little.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

Marks = NDArray[np.bool_]

LEAST_SAMPLES = 4.0  # weight: a speed from 4 samples of exponential times has a relative error of a half
MOST = 2.0  # factor on a rate, up or down: by more than its square, 4, a ratio of two rates never changes


def vote(factor: Floats, samples: Floats) -> Floats:
    """Logarithms of the speeds of one namespace, nan where it has no vote; all arrays have shape [rows]."""
    has_vote = samples >= LEAST_SAMPLES
    found = np.full(len(factor), np.nan)
    if has_vote.any():
        logs = np.log(factor[has_vote])
        found[has_vote] = logs - logs.mean()
    return found


class Votes:
    """The votes of all namespaces, each of shape [rows]; a median needs at least one."""

    def __init__(self, votes: Sequence[Floats]) -> None:
        self._votes = np.array(votes)
        self._sorted = np.sort(self._votes, axis=0)  # nan comes last
        self._count = (~np.isnan(self._votes)).sum(axis=0)

    def median(self, without: int | None = None) -> Floats:
        """q of each row, of all namespaces or of all but one; nan where there is no vote."""
        count, rank = self._count, np.full(len(self._count), len(self._votes))
        if without is not None:
            own = self._votes[without]
            has_vote = ~np.isnan(own)
            rank = np.where(has_vote, (self._votes < own).sum(axis=0), rank)
            count = count - has_vote
        lower, upper = self._at((count - 1) // 2, rank), self._at(count // 2, rank)
        return np.where(count > 0, np.clip(0.0, lower, upper), np.nan)

    def _at(self, position: NDArray[np.intp], left_out: NDArray[np.intp]) -> Floats:
        """The vote at this position of each row, in ascending order without the one left out."""
        position = np.maximum(position, 0)
        position = np.minimum(position + (position >= left_out), len(self._sorted) - 1)
        return np.asarray(self._sorted[position, np.arange(len(position))])


def prior(median: Floats, is_known: Marks) -> Floats:
    """p of each row, 1 where there is no vote. `is_known`: the rows of which there are own samples."""
    has_vote = ~np.isnan(median)
    if not has_vote.any():
        return np.ones(len(median))
    is_reference = has_vote & is_known
    bounded = np.clip(median, -2.0 * log(MOST), 2.0 * log(MOST))
    reference = bounded[is_reference if is_reference.any() else has_vote].mean()
    return np.where(has_vote, np.exp(np.clip(bounded - reference, -log(MOST), log(MOST))), 1.0)
