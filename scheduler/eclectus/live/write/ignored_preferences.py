"""Notes about pods that were placed without regard to a preference or a hint, one event for each class."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from prometheus_client import Counter

from eclectus.live.watch.watched import Ignored
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.model.commands import Bind

MAX_CLASSES = 4096  # noted; beyond this number the one that was placed longest ago may be noted again


class IgnoredPreferences:
    """Counts every such pod, and writes an event for the first one of a namespace, class and set of features.

    `take` returns what is ignored of a pod, once.
    """

    def __init__(
        self, take: Callable[[str], Ignored | None], recorder: EventRecorder, counter: Counter
    ) -> None:
        self._take, self._recorder, self._counter = take, recorder, counter
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
