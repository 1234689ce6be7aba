"""When a task gives up a preference: the choice between waiting for preferred nodes and starting elsewhere.

Phoenix (Thinakaran et al., ICDCS 2017) negotiates constraints that may be relaxed; its rule is not published
in full. The one here compares when the task would end, W and S being wait and run time on preferred nodes, W'
the wait without the preference, g S the run time there:

    relax if and only if  W + S > W' + g S

with a margin for tasks that do not wait yet, so that an estimate that moves a little does not change the
decision about each task again and again.
"""

from __future__ import annotations

MARGIN = 1.1  # by how much the end on preferred nodes must be sooner for a task to begin to wait


def relaxes(
    wait_seconds: float, service_seconds: float, *, elsewhere_seconds: float, is_waiting: bool
) -> bool:
    """Whether the task takes another node than a preferred one.

    `elsewhere_seconds`: when it would end there, W' + g S, from now. `is_waiting`: it has begun to wait.
    """
    preferred_seconds = wait_seconds + service_seconds
    return preferred_seconds * (1.0 if is_waiting else MARGIN) > elsewhere_seconds
