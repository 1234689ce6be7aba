"""How much of the built-in benchmark makes a task that a real node can be timed by.

Kubernetes tells when containers begin and end in whole seconds, and what takes none of them teaches nothing.
So work must take more than a second on the fastest node, whatever machine this is.
"""

import time
from functools import cache
from math import ceil

from eclectus_operator.unit import cpu

CORE_SECONDS = 1.3  # more than a second also in a container whose Python is a fifth faster than this one
_TRIAL_UNITS = 3


@cache
def units_of_core_seconds(core_seconds: float = CORE_SECONDS) -> int:
    """Units of kind cpu that take so long on one of this machine's cores, by this process' Python."""
    began = time.process_time()
    cpu(_TRIAL_UNITS)
    return ceil(core_seconds * _TRIAL_UNITS / (time.process_time() - began))
