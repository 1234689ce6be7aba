"""Kinds whose objects are known by namespace and name.

An object that was deleted and created again counts as the same object.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from eclectus.kube.decoding import decode_head
from eclectus.kube.objects import full_name
from eclectus.live.watch.watched import WatchedKind
from eclectus.model.errors import MalformedError


class NamedKind(WatchedKind):
    """A kind keyed by namespace/name, or by the name alone where objects have no namespace."""

    kind: str  # as in the object, for errors
    older_paths: tuple[str, ...] = ()
    list_query: Mapping[str, str] = {}
    undefined = ""
    is_expected = True

    def key(self, raw: Raw) -> tuple[str, str]:
        """The key and the resourceVersion. Raises MalformedError for an object without a name."""
        metadata = decode_head(raw).metadata
        if not metadata.name:
            raise MalformedError(self.kind, "?", "metadata.name", "missing")
        return full_name(metadata.namespace, metadata.name), metadata.resource_version
