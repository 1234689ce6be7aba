"""How long a container ran, finer than the API says.

The API gives its start and its end in whole seconds, cut off: a run of 0.4 s reads as 0 or 1. The
watch shows both moments late, but about equally late, so the distance between them is good, unless
one of them was held up. So: take the observed distance, as far as the API's words allow it.
"""

from __future__ import annotations

RESOLUTION_SECONDS = 1.0  # of metav1.Time


def refine(
    api_started: float, api_finished: float, seen_running: float | None, seen_finished: float
) -> tuple[float, float]:
    """Start and end in seconds on the shell's clock, as far as it was there to see; else as the API says.

    The true run lies within one second of the API's difference: both ends were cut off, each by less
    than a second. `seen_running` is None for a container that ran already when we first saw its pod.
    """
    coarse = api_finished - api_started
    if seen_running is None:
        return api_started, api_finished
    least, most = max(coarse - RESOLUTION_SECONDS, 0.0), coarse + RESOLUTION_SECONDS
    run = min(max(seen_finished - seen_running, least), most)
    return seen_running, seen_running + run
