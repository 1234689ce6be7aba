"""How many requests something may cost: a few at once, and no more than so many in any minute."""

MINUTE_MOST = 100
AT_ONCE = 20  # of these; else a minute in which nothing was spent would allow the next one twice as many
A_SECOND = (MINUTE_MOST - AT_ONCE) / 60.0
ROUNDING = 1e-6  # a little less than one would never be due


class MinuteAllowance:
    """What may be spent now, and when there is more."""

    def __init__(self) -> None:
        self._left, self._as_of = float(AT_ONCE), 0.0

    def has_one(self, now: float) -> bool:
        """Whether one may be spent now."""
        saved = self._left + (now - self._as_of) * A_SECOND
        self._left, self._as_of = min(saved, float(AT_ONCE)), now
        return self._left >= 1.0 - ROUNDING

    def spend(self) -> None:
        """One is spent."""
        self._left -= 1.0

    def next_at(self) -> float:
        """When one may be spent, seconds; a time that is over if one may already."""
        return self._as_of + (1.0 - self._left) / A_SECOND
