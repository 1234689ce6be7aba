"""Records on a pod which of its preferences its node does not meet.

They are an annotation of the Binding, which the API server copies to the pod, and the end of the event
`Scheduled`, both without a request of their own; and a condition (relaxed_conditions.py). A placement on a
node that does not meet a stated preference counts as a relaxation, whether a better node existed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import Counter

from eclectus.api.names import RELAXED_PREFERENCES
from eclectus.model.commands import Bind

MAX_WORDS = 800  # characters, so that an event's note has room for it
NOTHING: Mapping[str, str] = {}


class RelaxedPreferences:
    """What was relaxed of the pods whose binds have no answer yet.

    `unmet` returns the preferences that the node of a pod that was just decided about does not meet.
    """

    def __init__(
        self, unmet: Callable[[str], Sequence[str]], counter: Counter, condition: Callable[[Bind, str], None]
    ) -> None:
        """`condition`: what takes the bind and the words of a pod that is to get the condition."""
        self._unmet, self._counter, self._condition = unmet, counter, condition
        self._words: dict[str, str] = {}  # by uid

    def decided(self, bind: Bind) -> None:
        """The pod is about to be bound."""
        unmet = self._unmet(bind.uid)
        if unmet:
            words = "; ".join(unmet)
            self._words[bind.uid] = words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"

    def annotations(self, uid: str) -> Mapping[str, str]:
        """The annotations for the Binding of the pod."""
        words = self._words.get(uid)
        return NOTHING if words is None else {RELAXED_PREFERENCES: words}

    def answered(self, bind: Bind, is_bound: bool) -> str:
        """The end of the event's note, empty if nothing was relaxed; counts the pod if it is bound.

        That pod also gets the condition.
        """
        words = self._words.pop(bind.uid, "")
        if not words or not is_bound:
            return ""
        self._counter.labels(bind.profile).inc()
        self._condition(bind, words)
        return f". Preferences not met: {words}"
