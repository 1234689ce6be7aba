"""Simulated work of a pod at a speed that may change.

Work is measured in work-seconds: one second at speed 1. Times are arguments, in seconds of the event
loop's clock.
"""

import math
from dataclasses import dataclass


@dataclass
class Work:
    """The remaining work of one pod; infinite for a pod that never ends by itself."""

    remaining: float  # work-seconds
    speed: float  # work-seconds per second; 0 while the node is frozen or dead
    since: float  # loop time at which `remaining` was true

    def settle(self, now: float) -> None:
        """Subtract the work done until now."""
        # An infinite `remaining` stays infinite. It is never multiplied: infinity times 0 is NaN.
        self.remaining = max(0.0, self.remaining - (now - self.since) * self.speed)
        self.since = now

    def change_speed(self, now: float, speed: float) -> None:
        """Continue at another speed; work done so far stays done."""
        self.settle(now)
        self.speed = speed

    def done_at(self) -> float:
        """Loop time at which the work is done at the current speed; infinite at speed 0."""
        if self.remaining <= 0:
            return self.since
        return self.since + self.remaining / self.speed if self.speed > 0 else math.inf
