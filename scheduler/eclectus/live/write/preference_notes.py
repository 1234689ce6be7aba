"""What is said of pods that were placed without regard to a preference, or on a node that does not meet it.

The preferences that a node does not meet are an annotation of the Binding, which the API server copies to
the pod, and the end of the event `Scheduled`: both without a request of their own. A placement on a node that
does not meet a stated preference counts as a relaxation, whether a better node existed or not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from prometheus_client import Counter

from eclectus.api.names import RELAXED_PREFERENCES
from eclectus.live.watch.watched_pods import Ignored
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.model.commands import Bind

MAX_CLASSES = 4096  # noted; beyond this number the one that was placed longest ago may be noted again
MAX_WORDS = 800  # characters, so that an event's note has room for it
NOTHING: Mapping[str, str] = MappingProxyType({})


class IgnoredPreferences:
    """Counts pods placed without regard to a preference or a hint.

    An event is written for the first one of a namespace, class and set of features. `take` returns what is
    ignored of a pod, once.
    """

    def __init__(
        self, take: Callable[[str], Ignored | None], recorder: EventRecorder, counter: Counter
    ) -> None:
        self._take = take
        self._recorder = recorder
        self._counter = counter
        self._noted: OrderedDict[tuple[str, Ignored], None] = OrderedDict()

    def placed(self, bind: Bind) -> None:
        """The pod is about to be bound."""
        found = self._take(bind.uid)
        if found is None:
            return
        for feature in found.features:
            self._counter.labels(feature).inc()
        key = (bind.namespace, found)
        if key not in self._noted:
            self._recorder.ignored(bind, _note(found))
        self._noted[key] = None
        self._noted.move_to_end(key)
        if len(self._noted) > MAX_CLASSES:
            self._noted.popitem(last=False)


class RelaxedPreferences:
    """What was relaxed of the pods whose binds have no answer yet.

    `unmet` returns the preferences that the node of a pod that was just decided about does not meet.
    """

    def __init__(self, unmet: Callable[[str], Sequence[str]], counter: Counter) -> None:
        self._unmet = unmet
        self._counter = counter
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
        """The end of the event's note, empty if nothing was relaxed; counts the pod if it is bound."""
        words = self._words.pop(bind.uid, "")
        if not words or not is_bound:
            return ""
        self._counter.labels(bind.profile).inc()
        return f". Preferences not met: {words}"


def _note(found: Ignored) -> str:
    parts = []
    if found.features:
        parts.append(
            f"Eclectus does not read {' and '.join(found.features)} yet: pods of class {found.workload} in "
            "this namespace are placed without regard to that. This is noted once."
        )
    if found.invalid_hints:
        parts.append(f"The pod was placed without these annotations: {'; '.join(found.invalid_hints)}.")
    return " ".join(parts)
