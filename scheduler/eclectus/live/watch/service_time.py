"""How long a container ran, with a finer resolution than the API has.

The API gives the start and the end in whole seconds, truncated: a run of 0.4 s reads as 0 or 1 s. The watch
shows both moments late, but about equally late, so their distance is accurate unless one of the two was
delayed. Therefore the observed distance is used, limited to what the API's values allow.
"""

from __future__ import annotations

from msgspec.structs import replace

from eclectus.model.objects import Task

RESOLUTION_SECONDS = 1.0  # of metav1.Time
FRESH_SECONDS = 5.0
"""A container that had started longer ago than this when we first saw it run had been running before."""


class ServiceTimes:
    """Replaces start and end of each pod by the moments at which the watch showed them."""

    def __init__(self) -> None:
        self._running_since: dict[str, float | None] = {}  # uid -> when seen to start; None: it ran before

    def refined(self, task: Task, now: float) -> Task:
        """The task with refined times, as observed at `now` (seconds)."""
        if task.started is None or not task.node:
            return task
        since = self._running_since
        if task.ended:
            seen_running = since.pop(task.uid, None)
            if task.finished is None:
                return task
            started, finished = refine(task.started, task.finished, seen_running, now)
            return replace(task, started=started, finished=finished)
        if task.uid not in since:
            since[task.uid] = now if now - task.started < FRESH_SECONDS else None
        seen = since[task.uid]
        return task if seen is None else replace(task, started=seen)

    def forget(self, uid: str) -> None:
        """The pod has been deleted."""
        self._running_since.pop(uid, None)


def refine(
    api_started: float, api_finished: float, seen_running: float | None, seen_finished: float
) -> tuple[float, float]:
    """(start, end) in seconds: on our own clock if the start was observed, else as the API says.

    The true duration lies within one second of the API's difference, because both ends are truncated by
    less than a second. `seen_running` is None for a container that ran already when its pod was first seen.
    """
    coarse = api_finished - api_started
    if seen_running is None:
        return api_started, api_finished
    least, most = max(coarse - RESOLUTION_SECONDS, 0.0), coarse + RESOLUTION_SECONDS
    run = min(max(seen_finished - seen_running, least), most)
    return seen_running, seen_running + run
