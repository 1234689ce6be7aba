"""The nodes that a NodeProbe may be about, by name.

Listed now and then instead of watched: each node of a large cluster is written every few minutes for reasons
that do not matter here, and a node that was drawn is asked about anyway before anything is done there. So the
list may be stale, and names and labels are all that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eclectus.api.names import NO_PROBES_LABEL
from eclectus_operator.api import Api
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import NodeHead

FRESH_SECONDS = 60.0


class Pool:
    """Lists of nodes by selector, kept for a minute. `now`: seconds since the epoch."""

    def __init__(self, api: Api, now: Callable[[], float]) -> None:
        self._api, self._now = api, now
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def names(self, selector: Mapping[str, str]) -> tuple[str, ...]:
        """Nodes with these labels that are neither excluded nor cordoned. Raises ApiError."""
        labels = ",".join(
            [f"{key}={value}" for key, value in sorted(selector.items())] + [f"!{NO_PROBES_LABEL}"]
        )
        listed_at, names = self._known.get(labels, (float("-inf"), ()))
        if self._now() - listed_at >= FRESH_SECONDS:
            # Version 0 is what the API server has at hand, without a look into etcd, and not in pages.
            query = {
                "labelSelector": labels,
                "fieldSelector": "spec.unschedulable=false",
                "resourceVersion": "0",
            }
            found = await self._api.send("GET", "/api/v1/nodes", query=query, brief=True)
            names = tuple(convert.read(each, NodeHead).metadata.name for each in found.get("items") or [])
            self._known[labels] = self._now(), names
        return names
