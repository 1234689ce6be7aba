"""Services, ReplicationControllers, ReplicaSets and StatefulSets as watched kinds: which pods they select.

Of each the selector alone is kept, and nothing of those that select no pods.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from eclectus.kube.objects import full_name
from eclectus.kube.pod_selectors.translate import selected_by_labels, selected_by_selector
from eclectus.live.watch.named import NamedKind
from eclectus.live.watch.watched import ObservedObject, WatchedKind
from eclectus.model.events import Event, PodSelectorGone, PodSelectorSeen
from eclectus.model.selectors import PodSelector

SelectorFrom = Callable[[str, bytes | Raw], tuple[PodSelector, str]]

_KINDS: tuple[tuple[str, str, SelectorFrom], ...] = (
    ("Service", "/api/v1/services", selected_by_labels),
    ("ReplicationController", "/api/v1/replicationcontrollers", selected_by_labels),
    ("ReplicaSet", "/apis/apps/v1/replicasets", selected_by_selector),
    ("StatefulSet", "/apis/apps/v1/statefulsets", selected_by_selector),
)


class WatchedPodSelectors(NamedKind):
    """One of the kinds, keyed by namespace/name."""

    def __init__(self, kind: str, path: str, selector_from: SelectorFrom) -> None:
        self.kind, self.path, self._selector_from = kind, path, selector_from
        self.name = path.rpartition("/")[2]

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """PodSelectorSeen, or PodSelectorGone for one that selects no pods."""
        del now
        found, version = self._selector_from(self.kind, raw)
        key = full_name(found.namespace, found.name)
        if not found.selector:
            return ObservedObject(key, version, self.gone(key), is_listed=False)
        return ObservedObject(key, version, PodSelectorSeen(found))

    def gone(self, key: str) -> Event:
        """PodSelectorGone."""
        namespace, _, name = key.partition("/")
        return PodSelectorGone(self.kind, namespace, name)


def pod_selector_kinds() -> list[WatchedKind]:
    """All of them."""
    return [WatchedPodSelectors(*each) for each in _KINDS]
