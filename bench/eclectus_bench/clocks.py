"""What a measurement takes."""

from __future__ import annotations

import os
import time


def clocks() -> tuple[float, float]:
    """Time, and processor time of this process and of those that have ended; minutes."""
    used = os.times()
    return time.monotonic() / 60, (used.user + used.system + used.children_user + used.children_system) / 60
