"""What the speeds of some nodes, or the votes of other namespaces, say of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

# -- votes of other namespaces -------------------------------------------------------------------

# What one namespace takes from the speeds that others have learned: a prior, robust and bounded.
#
# Each namespace has one vote for a node, whatever the number of its samples, once they weigh LEAST_SAMPLES:
# the logarithm v of the node's speed, where the geometric mean over the nodes of that namespace is 1. For
# node i and namespace g,
#
#     q_gi = the number nearest to 0 between the lower and the upper median of v_hi over all h other than g
#     ln p_gi = q_gi - (mean of q_g over the nodes of which g has samples itself),  within -ln MOST .. ln MOST
#
# An odd number of votes has one median. With an even number the two middle ones count as far as they agree:
# of two votes the weaker one, and none if they contradict each other. So one liar among two or more votes
# moves q to a value between 0 and the honest ones at most. The mean over the nodes that g knows is subtracted
# because only ratios matter: the same factor on all nodes says nothing. For it, q is within -2 ln MOST .. 2
# ln MOST, so that a single node moves it little.

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


# -- common changes ------------------------------------------------------------------------------

# Common changes: many nodes change speed at about the same time, and what is known of others is in doubt.
#
# Q. Wu, Z. Liu, "Rosella", 2020, ask how soon a scheduler recovers then. An alarm (maths/cusum.py) needs ends
# of tasks on the node itself. Of a node that became faster there are none: it was slow, so nothing is sent
# there while its old speed is believed, although others are full. But where every third node has changed
# within a short time, the rest have probably changed as well: their samples from before are dropped, and they
# count as typical until they have new ones, as after a start.
#
# Only alarms over all workloads of a node count, since those over one may be a change of that workload alone.
# With a false alarm of a node in about 1,500 samples, about one node in a hundred has one within the time
# that counts.

SHARE, LEAST_NODES = 1.0 / 3.0, 3  # of the nodes with samples, and in any case so many
SAMPLES_PER_NODE = 16  # how long an alarm counts; a fourfold change is detected after 10 to 12
ROWS_AT_ONCE = 128  # of which samples are dropped at a fit: those of 5,000 nodes would take a second


class _Alarm(NamedTuple):
    sample: int  # the number of the sample that raised it
    since: float  # when the node changed


class CommonChanges:
    """The newest alarms of one namespace by node, and the rows of which older samples are to be dropped."""

    def __init__(self) -> None:
        self.samples = 0  # taken so far, of all nodes
        self._alarms: dict[int, _Alarm] = {}
        self._outdated: dict[int, float] = {}

    def alarm(self, row: int, since: float, known: NDArray[np.intp]) -> bool:
        """Count an alarm of a whole node; whether it makes a common change. `known`: the rows with samples.

        The nodes that have raised an alarm are judged by their own.
        """
        first = self.samples - SAMPLES_PER_NODE * len(known)
        self._alarms = {each: alarm for each, alarm in self._alarms.items() if alarm.sample > first}
        self._alarms[row] = _Alarm(self.samples, since)
        if len(self._alarms) < max(LEAST_NODES, SHARE * len(known)):
            return False
        at = max(alarm.since for alarm in self._alarms.values())
        self._outdated = {each: at for each in known.tolist() if each not in self._alarms}
        self._alarms.clear()
        return True

    def take_outdated(self) -> Iterator[tuple[int, float]]:
        """The next rows of which samples from before the given time are to be dropped."""
        for row in list(islice(self._outdated, ROWS_AT_ONCE)):
            yield row, self._outdated.pop(row)

    def forget(self, row: int) -> None:
        """The node of this row is gone, or its samples are."""
        self._alarms.pop(row, None)
        self._outdated.pop(row, None)
