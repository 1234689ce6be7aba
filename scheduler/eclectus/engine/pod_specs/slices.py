"""Pods that are to be seen again, a bounded number in each step.

One event may concern every pod of a cluster: the labels of a namespace, or the selector of a Service. Seen
again in one step they would cost more seconds than a Lease lasts. The bound is a count and no time, so equal
events give equal commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

PODS_MOST = 1_000  # in one step


class PodSlices:
    """The uids of pods that are still to be seen again, those named first at the beginning."""

    def __init__(self) -> None:
        self._left: dict[str, None] = {}
        self.left: Mapping[str, None] = self._left

    def add(self, uids: Iterable[str]) -> None:
        """These pods are to be seen again; one that is named already keeps its place."""
        for uid in uids:
            self._left[uid] = None

    def discard(self, uid: str) -> None:
        """The pod need not be seen again; no error if it is not named."""
        self._left.pop(uid, None)

    def take(self) -> list[str]:
        """The pods of this step."""
        taken = list(islice(self._left, PODS_MOST))
        for uid in taken:
            del self._left[uid]
        return taken
