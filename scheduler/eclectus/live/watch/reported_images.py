"""Container images: which a pod asks for, and which a node has.

They are read only where a profile weighs them: 15,000 nodes name up to 50 images each, by several names.
"""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import Decoder

from eclectus.kube.decoding import decode
from eclectus.kube.objects import Pod
from eclectus.kube.placement import ApiObject
from eclectus.model.objects import Images

MAX_IMAGES = 50  # of a pod or node: as many as a kubelet reports by default, the largest first
MAX_NAMES = 5  # of an image, as a kubelet reports at most
MAX_SHARED = 50_000  # names with sizes that nodes share in memory


class _Image(ApiObject, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class _Status(ApiObject, frozen=True):
    images: tuple[_Image, ...] = ()


class _Node(ApiObject, frozen=True):
    status: _Status = _Status()


_NODE = Decoder(_Node)
_shared: dict[tuple[str, int], tuple[str, int]] = {}


def images_of_pod(pod: Pod) -> tuple[str, ...]:
    """The image of each container, init containers included, by the name that nodes report."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return tuple(_reported(each.image) for each in containers[:MAX_IMAGES])


def images_of_node(raw: Raw) -> Images:
    """The images that a node reports in its status. Raises MalformedError."""
    found = decode(_NODE, "Node", raw).status.images[:MAX_IMAGES]
    if len(_shared) > MAX_SHARED:
        _shared.clear()
    named = ((name, each.size_bytes) for each in found for name in (each.names or ())[:MAX_NAMES])
    return tuple(_shared.setdefault(image, image) for image in named)


def _reported(image: str) -> str:
    """With the tag `latest` where it has neither a tag nor a digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
