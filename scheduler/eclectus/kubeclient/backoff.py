"""Exponential back-off with jitter."""

from __future__ import annotations

from random import Random


class Backoff:
    """Waits that double from `least` to `most` seconds; each is drawn uniformly from its upper half."""

    def __init__(self, least: float, most: float, rng: Random) -> None:
        self._least, self._most, self._rng = least, most, rng
        self._next = least

    def wait(self) -> float:
        """Seconds to wait now; the next wait is longer."""
        ceiling, self._next = self._next, min(self._next * 2, self._most)
        return ceiling * (0.5 + 0.5 * self._rng.random())

    def reset(self) -> None:
        """Start from the shortest wait again, after a success."""
        self._next = self._least
