"""How many reviews may be asked for: a number in a row, then so many a second, and few at a time."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """A token bucket with a bound of what is in flight. `now` returns seconds."""

    def __init__(self, burst: int, per_second: float, in_flight: int, now: Callable[[], float]) -> None:
        self._burst, self._rate, self._now = float(burst), per_second, now
        self._left, self._at = self._burst, now()
        self._free = in_flight

    def take(self) -> bool:
        """Whether one more may be asked for; whoever has asked calls `give_back` when it is answered."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1 or not self._free:
            return False
        self._left -= 1
        self._free -= 1
        return True

    def give_back(self) -> None:
        """One has been answered."""
        self._free += 1
