"""Nodes: the names that a selector matches, the largest of all, one node with its pods, and their labels."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from msgspec import Struct

from eclectus.api.names import NO_PROBES_LABEL, NODE_PROFILES_PATH
from eclectus.api.node_profile import NodeProfile
from eclectus.kube import objects as kube
from eclectus.kubeclient.api_errors import MissingError
from eclectus.kubeclient.client import ObjectApi, Query, list_pages
from eclectus_operator import convert, node_labels, room
from eclectus_operator.observed import ALL_PODS_PATH, Pod
from eclectus_operator.room import Room

NODES_PATH = "/api/v1/nodes"
FRESH_SECONDS = 60.0
PAGE_NODES = 100  # of whole nodes, which are several times as large as pods
CAPACITY_SECONDS = 600.0  # how long the largest nodes stay cached: whole nodes are listed for them
MAX_WRITES = 100  # labelled nodes in one sync, so that a large cluster's first one does not delay probes
_log = logging.getLogger(__name__)


class NodePool:
    """Names of nodes by selector and the largest capacities, cached. `now`: seconds since the epoch.

    Nodes are listed instead of watched: in a large cluster each is written every few minutes, mostly for
    reasons that do not matter here. The cached list may be stale, because a node that was drawn is read
    before anything is done there.
    """

    def __init__(self, api: ObjectApi, now: Callable[[], float]) -> None:
        self._api = api
        self._now = now
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._capacities: tuple[float, list[Room]] = (float("-inf"), [])

    async def names(self, selector: Mapping[str, str]) -> tuple[str, ...]:
        """Nodes with these labels that are neither excluded nor cordoned. Raises ApiError."""
        terms = [f"{key}={value}" for key, value in sorted(selector.items())]
        labels = ",".join([*terms, f"!{NO_PROBES_LABEL}"])
        listed_at, names = self._cache.get(labels, (float("-inf"), ()))
        if self._now() - listed_at >= FRESH_SECONDS:
            query = {"labelSelector": labels, "fieldSelector": "spec.unschedulable=false"}
            names = tuple(each.name for each in await _list_names(self._api, query))
            self._cache[labels] = self._now(), names
        return names

    async def capacities(self) -> list[Room]:
        """What the largest nodes of the cluster could give. Raises ApiError."""
        listed_at, largest = self._capacities
        if self._now() - listed_at >= CAPACITY_SECONDS:
            largest = []
            # Page by page: with version 0 the API server would send all nodes at once.
            async for page in list_pages(self._api, NODES_PATH, {"limit": str(PAGE_NODES)}):
                largest = room.capacities([convert.read(each, kube.Node) for each in page], largest)
            self._capacities = self._now(), largest
        return largest


@dataclass(frozen=True)
class NodeWithPods:
    """A node, and the pods bound to it, whatever their phase, as the accounting of room reads them."""

    node: kube.Node
    pods: list[kube.Pod]
    starting: Pod | None  # a real pod that has not started; None if there is none


async def read_node(api: ObjectApi, name: str) -> NodeWithPods:
    """A node and its pods. Raises ApiError; MissingError when there is no such node."""
    node = convert.read(await api.send("GET", f"{NODES_PATH}/{name}"), kube.Node)
    pods, starting = list[kube.Pod](), None
    async for page in list_pages(api, ALL_PODS_PATH, {"fieldSelector": f"spec.nodeName={name}"}):
        pods += [convert.read(each, kube.Pod) for each in page]
        observed = (convert.read_authored(each, Pod) for each in page)
        waiting = (pod for pod in observed if pod.status.phase == "Pending" and pod.is_real)
        starting = starting or next(waiting, None)
    return NodeWithPods(node, pods, starting)


async def unbound_pods(api: ObjectApi) -> AsyncIterator[kube.Pod]:
    """The real pods that are not bound, read page by page: they may be very many. Raises ApiError."""
    async for page in list_pages(api, ALL_PODS_PATH, room.UNBOUND_REAL_PODS):
        for each in page:
            yield convert.read(each, kube.Pod)


async def read_profile(api: ObjectApi, node: str) -> NodeProfile:
    """The node's NodeProfile; an empty one if there is none. Raises ApiError."""
    try:
        return convert.read(await api.send("GET", f"{NODE_PROFILES_PATH}/{node}"), NodeProfile)
    except MissingError:
        return NodeProfile()


class NodeLabeller:
    """Sets the labels that describe machines, by the mapping of the settings, on nodes that lack them.

    It compares all nodes with the mapping at most once a minute; without a mapping it is idle.
    """

    def __init__(self, api: ObjectApi, now: Callable[[], float], mapping: str) -> None:
        self._api = api
        self._now = now
        self._mapping = node_labels.parse(mapping)
        self._compared_at = float("-inf")

    async def label(self) -> bool:
        """Label some nodes if it is time. Whether others are left for the next sync. Raises ApiError."""
        now = self._now()
        if not self._mapping or now - self._compared_at < FRESH_SECONDS:
            return False
        nodes = await _list_names(self._api, {})
        wanted = {node.name: node_labels.changes(self._mapping, node.labels or {}) for node in nodes}
        due = [(name, labels) for name, labels in wanted.items() if labels]
        for name, labels in due[:MAX_WRITES]:
            with suppress(MissingError):  # the node is gone
                await self._api.send("PATCH", f"{NODES_PATH}/{name}", {"metadata": {"labels": labels}})
                text = ", ".join(f"{key}={labels[key]}" for key in sorted(labels))
                _log.info("labelled node %s: %s", name, text)
        if len(due) <= MAX_WRITES:
            self._compared_at = now
        return len(due) > MAX_WRITES


class _Named(Struct, frozen=True):
    """What is read of a node whose labels alone matter."""

    name: str
    labels: dict[str, str] | None = None


async def _list_names(api: ObjectApi, query: Query) -> list[_Named]:
    """The names and labels of nodes. Raises ApiError."""
    # Version 0 is answered from the API server's cache, without a read of etcd and in one page.
    found = await api.send("GET", NODES_PATH, query={**query, "resourceVersion": "0"}, metadata_only=True)
    return [convert.read(each["metadata"], _Named) for each in found.get("items") or []]
