"""Namespaces as a watched kind: their labels, by which pods select namespaces in rules about other pods."""

from __future__ import annotations

from msgspec import Raw

from eclectus.kube.constraints import pairs
from eclectus.kube.decoding import decode_head
from eclectus.live.watch.named import NamedKind
from eclectus.live.watch.watched import ObservedObject
from eclectus.model.events import Event, NamespaceGone, NamespaceSeen


class WatchedNamespaces(NamedKind):
    """Namespaces, keyed by name."""

    name, kind = "namespaces", "Namespace"
    path = "/api/v1/namespaces"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """NamespaceSeen; a namespace that is being deleted counts while it exists."""
        del now
        key, version = self.key(raw)
        return ObservedObject(key, version, NamespaceSeen(key, pairs(decode_head(raw).metadata.labels)))

    def gone(self, key: str) -> Event:
        """NamespaceGone."""
        return NamespaceGone(key)
