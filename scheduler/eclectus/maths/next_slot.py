"""When the next slot gets free on nodes whose running tasks are known, and for how long to wait for it.

A task that has run for a seconds, and takes S in all, runs on for more than t with probability

    P(S > a + t | S > a) = exp(H(a) - H(a + t)),     H(t) = (t / b)^k

S has the distribution of Weibull with the mean and the squared coefficient of variation C^2 of its kind of
work: k = C^-1.086 (Justus and others, "Methods for Estimating Wind Speed Frequency Distributions", Journal of
Applied Meteorology 1978), b = mean / Gamma(1 + 1/k). With C = 1 that is the exponential one, of which age
says nothing; with less, old tasks end soon; with more, they go on. Over all ages the mean of what is left is
that of maths/backlog_wait.py.

A slot is free once all tasks of its group have ended: one task, or several where each is too small. With
tasks that end independently, no slot is free by t with probability

    S(t) = product over slots of (1 - product over their tasks of (1 - exp(H(a) - H(a + t))))

Who waits for it up to w seconds, and saves g where it comes by then, gains in the mean

    g (1 - S(w)) - integral of S from 0 to w
"""

from collections.abc import Sequence
from itertools import accumulate
from math import gamma, inf
from typing import NamedTuple

import numpy as np

from eclectus.maths.numbers import Floats

LEAST_SHAPE, MOST_SHAPE = 0.5, 10.0  # of k, so for C between .12 and 1.9
STEPS = 16  # in which a wait is judged
# Seconds, 9 % apart: the mean is good to some tenths of a percent.
_TIMES = np.concatenate(([0.0], np.geomspace(1e-3, 1e6, 256)))


class Life(NamedTuple):
    """A running task: its age, and mean and squared coefficient of variation of run times like its own."""

    age: float  # seconds
    mean: float  # seconds, above 0
    variation: float


class NextSlot:
    """The next of several slots, each of which is free once all tasks of its group have ended."""

    def __init__(self, slots: Sequence[Sequence[Life]]) -> None:
        """No group is empty; no slot at all is ever free where there is none."""
        lives = [life for slot in slots for life in slot]
        self._firsts = list(accumulate((len(slot) for slot in slots[:-1]), initial=0))
        shapes = [_shape(life.variation) for life in lives]
        scales = [life.mean / gamma(1 + 1 / k) for life, k in zip(lives, shapes, strict=True)]
        self._age, self._shape, self._scale = (
            np.array(each, dtype=np.float64)[:, None]
            for each in ([max(life.age, 0.0) for life in lives], shapes, scales)
        )
        self._known = (self._age / self._scale) ** self._shape

    @property
    def never(self) -> bool:
        """Whether there is no slot that could get free."""
        return not len(self._age)

    def missing(self, seconds: Floats) -> Floats:
        """The probability that after so long no slot is free, for each of the times."""
        if self.never:
            return np.ones_like(seconds)
        spent = ((self._age + seconds) / self._scale) ** self._shape - self._known
        ended = np.multiply.reduceat(-np.expm1(-spent), self._firsts, axis=0)
        missing: Floats = np.prod(1.0 - ended, axis=0)
        return missing

    def chance(self, seconds: float) -> float:
        """The probability that a slot is free within so long."""
        return 1.0 - float(self.missing(np.array([seconds]))[0])

    @property
    def expected_seconds(self) -> float:
        """How long it takes in the mean until a slot is free; inf for never."""
        return inf if self.never else float(_integral(self.missing(_TIMES), _TIMES)[-1])

    def best_wait(self, gain: float, most: float) -> float:
        """For how long to wait for it, up to `most` seconds; 0 if no wait gains anything.

        `gain`: what a start there saves, seconds; inf where that is not known.
        """
        if gain == inf or self.never:
            return 0.0 if self.never else most
        times = np.linspace(0.0, most, STEPS + 1)
        missing = self.missing(times)
        return float(times[int((gain * (1.0 - missing) - _integral(missing, times)).argmax())])


def _shape(variation: float) -> float:
    """k. C^2 may be 0."""
    shape: float = max(variation, 1e-6) ** (-1.086 / 2)
    return min(max(shape, LEAST_SHAPE), MOST_SHAPE)


def _integral(values: Floats, at: Floats) -> Floats:
    """From the first place to each, by the trapezoidal rule."""
    found = np.zeros_like(at)
    np.cumsum((values[1:] + values[:-1]) / 2 * np.diff(at), out=found[1:])
    return found
