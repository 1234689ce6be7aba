"""How many units of the built-in benchmark take a given time on this machine.

Kubernetes reports the start and end of containers in whole seconds. A benchmark must take more than a second
on the fastest node, or its service time may be reported as 0.
"""

import time
from functools import cache
from math import ceil

from eclectus_operator.unit import cpu

CORE_SECONDS = 1.3  # more than 1 s also in a container whose Python is a fifth faster than this one
_MEASURED_UNITS = 3


@cache
def units_of_core_seconds(core_seconds: float = CORE_SECONDS) -> int:
    """Units of kind `cpu` that take `core_seconds` on one core, measured with this Python."""
    started = time.process_time()
    cpu(_MEASURED_UNITS)
    return ceil(core_seconds * _MEASURED_UNITS / (time.process_time() - started))
