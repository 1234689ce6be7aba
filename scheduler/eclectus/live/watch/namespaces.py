"""Namespaces as a watched kind: their labels, by which pods select namespaces in rules about other pods."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from eclectus.kube.constraints import pairs
from eclectus.kube.decoding import decode_head
from eclectus.kube.objects import Metadata
from eclectus.live.watch.watched import ObservedObject
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, NamespaceGone, NamespaceSeen


class WatchedNamespaces:
    """Namespaces, keyed by name."""

    name = "namespaces"
    path = "/api/v1/namespaces"
    list_query: Mapping[str, str] = {}
    undefined = ""

    def key(self, raw: Raw) -> tuple[str, str]:
        """The name: a namespace that was deleted and created again counts as the same namespace."""
        metadata = _metadata(raw)
        return metadata.name, metadata.resource_version

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """NamespaceSeen; a namespace that is being deleted counts while it exists."""
        del now
        metadata = _metadata(raw)
        seen = NamespaceSeen(metadata.name, pairs(metadata.labels))
        return ObservedObject(metadata.name, metadata.resource_version, seen)

    def gone(self, key: str) -> Event:
        """NamespaceGone."""
        return NamespaceGone(key)


def _metadata(raw: Raw) -> Metadata:
    metadata = decode_head(raw).metadata
    if not metadata.name:
        raise MalformedError("Namespace", "?", "metadata.name", "missing")
    return metadata
