"""Work that is done at a speed which may change: remaining work, and when it will be done.

The unit is one second at speed 1. Time is an argument: the loop's clock, in seconds.
"""

import math
from dataclasses import dataclass


@dataclass
class Work:
    """What is left of one pod's work. `remaining` is infinite for a pod that never ends by itself."""

    remaining: float  # work-seconds
    speed: float  # work-seconds a second; 0 while the node is frozen
    since: float  # loop time at which `remaining` was true

    def settle(self, now: float) -> None:
        """Account for what was done until now."""
        # Infinity stays infinity; infinity times speed zero would be NaN.
        self.remaining = max(0.0, self.remaining - (now - self.since) * self.speed)
        self.since = now

    def change_speed(self, now: float, speed: float) -> None:
        """Go on at another speed: what is done stays done."""
        self.settle(now)
        self.speed = speed

    def done_at(self) -> float:
        """Loop time at which the work ends at this speed; infinite when never."""
        if self.remaining <= 0:
            return self.since
        return self.since + self.remaining / self.speed if self.speed > 0 else math.inf
