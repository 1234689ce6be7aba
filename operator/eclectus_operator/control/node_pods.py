"""What is on a node, as the API server says: the node itself, and the pods that are bound to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eclectus.kube import objects as kube
from eclectus_operator.api import listed
from eclectus_operator.control.context import Means
from eclectus_operator.decide import waiting
from eclectus_operator.objects import convert
from eclectus_operator.objects.observed import Pod


@dataclass(frozen=True)
class Neighbours:
    """A node and its pods, whatever their phase."""

    node: kube.Node
    found: list[dict[str, Any]]

    @property
    def pods(self) -> list[kube.Pod]:
        """As the arithmetic of room asks about them."""
        return [convert.read(each, kube.Pod) for each in self.found]

    @property
    def starting(self) -> Pod | None:
        """A real pod that has not started; None if there is none."""
        seen = (convert.read(each, Pod) for each in self.found)
        return waiting.first_real(pod for pod in seen if pod.status.phase == "Pending")


async def on(means: Means, name: str) -> Neighbours:
    """Ask. Raises ApiError; MissingError when there is no such node."""
    node = convert.read(await means.api.send("GET", f"/api/v1/nodes/{name}"), kube.Node)
    found = await listed(means.api, waiting.PODS, {"fieldSelector": f"spec.nodeName={name}"})
    return Neighbours(node, found)
