"""Images of pods and nodes, by the names under which nodes report them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, json

from eclectus.kube import translate as images
from eclectus.kube.constraints import unsupported
from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import images_of_node, images_of_pod
from eclectus.model.errors import MalformedError


def node(*reported: Any) -> Raw:
    return Raw(json.encode({"metadata": {"name": "n"}, "status": {"images": list(reported)}}))


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("host:5000/web", "host:5000/web:latest"),
        ("web@sha256:abc", "web@sha256:abc"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(written: str, reported: str) -> None:
    containers = {"initContainers": [{"name": "i", "image": "init:1"}]}
    spec = {"containers": [{"name": "c", "image": written}], **containers}
    pod = decode_pod(Raw(json.encode({"metadata": {"name": "p"}, "spec": spec})))
    assert images_of_pod(pod) == ("init:1", reported)


def test_an_image_volume_counts_as_a_container_does() -> None:
    volumes = [{"name": "v", "image": {"reference": "data"}}, {"name": "w", "emptyDir": {}}]
    spec = {"containers": [{"name": "c", "image": "web"}], "volumes": volumes}
    pod = decode_pod(Raw(json.encode({"metadata": {"name": "p"}, "spec": spec})))
    assert images_of_pod(pod) == ("web:latest", "data:latest")
    assert unsupported(pod.spec) == ()


def test_all_names_of_an_image_count_and_nodes_share_them_in_memory() -> None:
    one = images_of_node(node({"names": ["web@sha256:a", "web:1"], "sizeBytes": 7}, {"names": None}))
    other = images_of_node(node({"names": ["web:1"], "sizeBytes": 7}))
    assert one == (("web@sha256:a", 7), ("web:1", 7))
    assert one[1] is other[0]
    assert images_of_node(Raw(b'{"metadata": {"name": "n"}}')) == ()


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_SHARED", 3)
    many = [{"names": [f"{at}:{name}" for name in range(9)], "sizeBytes": 1} for at in range(90)]
    assert len(images_of_node(node(*many))) == images.MAX_IMAGES * images.MAX_NAMES
    images_of_node(node())
    assert len(images._shared) <= images.MAX_SHARED


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(MalformedError, match=r"n.*status\.images"):
        images_of_node(node({"names": ["a"], "sizeBytes": "large"}))
