"""Waiting ever longer, and never in step with others."""

from __future__ import annotations

from random import Random


class Backoff:
    """Waits that double from `least` to `most` seconds, each drawn between half of it and all of it."""

    def __init__(self, least: float, most: float, rng: Random) -> None:
        self._least, self._most, self._rng = least, most, rng
        self._next = least

    def wait(self) -> float:
        """Seconds to wait now; the next wait is longer."""
        ceiling, self._next = self._next, min(self._next * 2, self._most)
        return ceiling * (0.5 + 0.5 * self._rng.random())

    def reset(self) -> None:
        """All is well again: start from the shortest wait."""
        self._next = self._least
