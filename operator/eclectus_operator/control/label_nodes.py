"""Sets the labels that describe machines, by the mapping of the settings, on nodes that lack them."""

from __future__ import annotations

import logging

from msgspec import Struct

from eclectus.kubeclient.errors import MissingError
from eclectus_operator.control.context import OperatorContext, Snapshot
from eclectus_operator.control.nodes import FRESH_SECONDS, NODES_PATH
from eclectus_operator.node_labels import changes, parse
from eclectus_operator.objects import convert

MAX_WRITES = 100  # in one sync, so that a first one of a large cluster does not delay probes for long
_log = logging.getLogger(__name__)


class _Metadata(Struct, frozen=True):
    name: str
    labels: dict[str, str] | None = None


class NodeLabeller:
    """Compares the labels of all nodes with the mapping, at most once a minute; idle without a mapping."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._mapping = parse(context.settings.node_labels)
        self._compared_at = float("-inf")

    async def label(self, snapshot: Snapshot) -> None:
        """Label some nodes if it is time; the next sync goes on with the others. Raises ApiError."""
        now = self._context.now()
        if not self._mapping or now - self._compared_at < FRESH_SECONDS:
            return
        # Version 0 is answered from the API server's cache, without a read of etcd and in one page.
        found = await self._context.api.send(
            "GET", NODES_PATH, query={"resourceVersion": "0"}, metadata_only=True
        )
        nodes = [convert.read(each["metadata"], _Metadata) for each in found.get("items") or []]
        wanted = {node.name: changes(self._mapping, node.labels or {}) for node in nodes}
        due = [(name, labels) for name, labels in wanted.items() if labels]
        for name, labels in due[:MAX_WRITES]:
            await self._set(name, labels)
        if len(due) > MAX_WRITES:
            snapshot.wake_by(now)
        else:
            self._compared_at = now

    async def _set(self, name: str, labels: dict[str, str]) -> None:
        try:
            await self._context.api.send("PATCH", f"{NODES_PATH}/{name}", {"metadata": {"labels": labels}})
        except MissingError:
            return  # the node is gone
        _log.info("labelled node %s: %s", name, ", ".join(f"{key}={labels[key]}" for key in sorted(labels)))
