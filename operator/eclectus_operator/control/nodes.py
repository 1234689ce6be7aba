"""Nodes: the names that a NodeProbe's selector matches, the largest of all, one node with the pods on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eclectus.api.common import ObjectMeta
from eclectus.api.names import NO_PROBES_LABEL, NODE_PROFILES_PATH
from eclectus.api.node_profile import NodeProfile
from eclectus.kube import objects as kube
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.errors import MissingError
from eclectus.kubeclient.listing import list_pages
from eclectus_operator.decide import room
from eclectus_operator.decide.room import Room
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import ALL_PODS_PATH, Pod

NODES_PATH = "/api/v1/nodes"
FRESH_SECONDS = 60.0
PAGE_NODES = 100  # of whole nodes, which are several times as large as pods
CAPACITY_SECONDS = 600.0  # how long the largest nodes stay cached: whole nodes are listed for them


class NodePool:
    """Names of nodes by selector and the largest capacities, cached. `now`: seconds since the epoch.

    Nodes are listed instead of watched: in a large cluster each is written every few minutes, mostly for
    reasons that do not matter here. The cached list may be stale, because a node that was drawn is read
    before anything is done there.
    """

    def __init__(self, api: ObjectApi, now: Callable[[], float]) -> None:
        self._api, self._now = api, now
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._capacities: tuple[float, list[Room]] = (float("-inf"), [])

    async def names(self, selector: Mapping[str, str]) -> tuple[str, ...]:
        """Nodes with these labels that are neither excluded nor cordoned. Raises ApiError."""
        terms = [f"{key}={value}" for key, value in sorted(selector.items())]
        labels = ",".join([*terms, f"!{NO_PROBES_LABEL}"])
        listed_at, names = self._cache.get(labels, (float("-inf"), ()))
        if self._now() - listed_at >= FRESH_SECONDS:
            # Version 0 is answered from the API server's cache, without a read of etcd and in one page.
            query = {
                "labelSelector": labels,
                "fieldSelector": "spec.unschedulable=false",
                "resourceVersion": "0",
            }
            found = await self._api.send("GET", NODES_PATH, query=query, metadata_only=True)
            items = found.get("items") or []
            names = tuple(convert.read(each["metadata"], ObjectMeta).name for each in items)
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
    """A node, and the pods bound to it, whatever their phase, as the accounting of room reads them.

    `starting`: a real pod that has not started; None if there is none.
    """

    node: kube.Node
    pods: list[kube.Pod]
    starting: Pod | None


async def read_node(api: ObjectApi, name: str) -> NodeWithPods:
    """A node and its pods. Raises ApiError; MissingError when there is no such node."""
    node = convert.read(await api.send("GET", f"{NODES_PATH}/{name}"), kube.Node)
    pods, starting = list[kube.Pod](), None
    async for page in list_pages(api, ALL_PODS_PATH, {"fieldSelector": f"spec.nodeName={name}"}):
        pods += [convert.read(each, kube.Pod) for each in page]
        observed = (convert.read(each, Pod) for each in page)
        starting = starting or next((pod for pod in observed if _is_starting(pod)), None)
    return NodeWithPods(node, pods, starting)


def _is_starting(pod: Pod) -> bool:
    return pod.status.phase == "Pending" and pod.is_real


async def read_profile(api: ObjectApi, node: str) -> NodeProfile:
    """The node's NodeProfile; an empty one if there is none. Raises ApiError."""
    try:
        return convert.read(await api.send("GET", f"{NODE_PROFILES_PATH}/{node}"), NodeProfile)
    except MissingError:
        return NodeProfile()
