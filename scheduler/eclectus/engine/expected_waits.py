"""Pods that wait for room, and how long each was expected to wait on.

An estimate is made once, with a pod's first report, and compared with the outcome when the pod is placed.
Estimates come in the order of arrival, so those that are open are of the pods ahead.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from eclectus.engine.counters import Counters
from eclectus.model.reservation import ClassKey


class _Estimate(NamedTuple):
    class_key: ClassKey
    profile: str
    seconds: float
    at: float  # seconds


class ExpectedWaits:
    """The open estimates. Those of pods that are placed are counted, with the outcome."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._open: dict[str, _Estimate] = {}  # by uid
        self._pods: Counter[ClassKey] = Counter()  # pods with an open estimate

    def __contains__(self, uid: str) -> bool:
        return uid in self._open

    def longest_queues(self, most: int) -> list[tuple[ClassKey, int]]:
        """The classes with the most pods that have an open estimate, and how many these are."""
        return self._pods.most_common(most)

    def add(self, uid: str, class_key: ClassKey, profile: str, seconds: float, now: float) -> None:
        """The pod is expected to wait for so many seconds from now; it has no open estimate."""
        self._open[uid] = _Estimate(class_key, profile, seconds, now)
        self._pods[class_key] += 1

    def placed(self, uid: str, now: float) -> None:
        """The pod is placed; no effect without an open estimate."""
        estimate = self._close(uid)
        if estimate is not None:
            self._counters.expected_wait_seconds[estimate.profile] += estimate.seconds
            self._counters.observed_wait_seconds[estimate.profile] += now - estimate.at

    def discard(self, uid: str) -> None:
        """The pod waits no more and was not placed; no error if it has no open estimate."""
        self._close(uid)

    def _close(self, uid: str) -> _Estimate | None:
        estimate = self._open.pop(uid, None)
        if estimate is not None:
            self._pods[estimate.class_key] -= 1
            if not self._pods[estimate.class_key]:
                del self._pods[estimate.class_key]
        return estimate
