"""Evictions that were sent, those that were refused, and what pools that only try have said."""

from collections.abc import Mapping
from math import inf

DRY_RUN_SECONDS = 60.0  # between two reports of what one pool would evict
SPARED_SECONDS = 30.0  # for which a pod is no victim after a second refusal, doubled each time
SPARED_SECONDS_MOST = 300.0  # up to this


class Evictions:
    """What has become of evictions, by uid of the victim; times in seconds."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self.sent: Mapping[str, str] = self._sent  # uid -> uid of the pod that needs the room
        self._spared: dict[str, float] = {}
        # uid of a pod of which evictions were refused -> until when it is no victim
        self.spared: Mapping[str, float] = self._spared
        self._refusal_waits: dict[str, float] = {}  # uid -> for how long it is spared after the next refusal
        self._said: dict[str, float] = {}  # pool -> when it was said what it would evict

    def send(self, uid: str, for_uid: str) -> None:
        """An eviction is sent, for this pod."""
        self._sent[uid] = for_uid

    def end(self, uid: str) -> None:
        """The pod is gone; no error if no eviction was sent."""
        self._sent.pop(uid, None)
        if self._refusal_waits.pop(uid, None) is not None:
            self._spared.pop(uid, None)

    def refuse(self, uid: str, now: float, *, stays: bool) -> None:
        """The eviction was refused. A pod that `stays` is spared from the second refusal on.

        The time for which it is spared grows with every refusal after the first one, which may have been a
        passing conflict.
        """
        self._sent.pop(uid, None)
        wait = self._refusal_waits.get(uid)
        if wait is not None:
            self._spared[uid] = now + wait
            self._refusal_waits[uid] = min(2 * wait, SPARED_SECONDS_MOST)
        elif stays:
            self._refusal_waits[uid] = SPARED_SECONDS

    def take_spared(self, now: float) -> list[str]:
        """The uids of pods that have been spared for long enough, which may be victims again."""
        over = [uid for uid, until in self._spared.items() if until <= now]
        for uid in over:
            del self._spared[uid]
        return over

    def may_say(self, pool: str, now: float) -> bool:
        """Whether it is time to say whom a pool that only tries would evict; if so it counts as said."""
        if now < self._said.get(pool, -inf) + DRY_RUN_SECONDS:
            return False
        self._said = {each: at for each, at in self._said.items() if now < at + DRY_RUN_SECONDS}
        self._said[pool] = now
        return True
