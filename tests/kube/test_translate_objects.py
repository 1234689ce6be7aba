"""Nodes of the API; malformed objects, lists and watch lines."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eclectus.kube.objects import (
    decode_event,
    decode_head,
    decode_list,
    decode_node,
    decode_pod,
    decode_status,
)
from eclectus.kube.translate import node_from, task_from
from eclectus.model import objects as model
from eclectus.model.errors import MalformedError
from pod_objects import raw, task

# -- nodes -----------------------------------------------------------------------------------------


def node(spec: Any = None, allocatable: Any = None, **metadata: Any) -> bytes:
    body = {
        "metadata": {"name": "n1", **metadata},
        "spec": spec or {},
        "status": {"allocatable": allocatable or {}},
    }
    return msgspec.json.encode(body)


def test_a_node() -> None:
    taints = [
        {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-03-01T12:00:00Z"},
        {"key": "odd", "effect": "Later"},
    ]
    room = {"cpu": "3920m", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "8", "hugepages-2Mi": "0"}
    got = node_from(
        decode_node(node({"unschedulable": True, "taints": taints}, room, labels={"b": "1", "a": "2"}))
    )
    assert got == model.Node(
        name="n1",
        allocatable=(("cpu", 3920), ("memory", 16 * 2**30), ("nvidia.com/gpu", 8), ("pods", 110)),
        labels=(("a", "2"), ("b", "1")),
        taints=(model.Taint("k", "v", "NoExecute"),),
        unschedulable=True,
    )


def test_the_error_of_a_malformed_node_names_it() -> None:
    with pytest.raises(MalformedError, match=r"^Node n1: status\.allocatable\.cpu: 'lots' is not a quantity"):
        node_from(decode_node(node(allocatable={"cpu": "lots"})))


# -- malformed objects, lists and watch lines ------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (
            b'{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":3}]}}',
            ("b/a", "spec.containers[0].name"),
        ),
        (b'{"metadata":{"name":"a","namespace":"b"},"spec":{"priority":"high"}}', ("b/a", "spec.priority")),
        (b'{"metadata":{"name":"a"}}', ("a", "")),
        (b'{"metadata":{"name":5},"spec":{}}', ("?", "metadata.name")),
        (b'{"metadata":', ("?", "")),
    ],
)
def test_the_error_of_a_malformed_pod_names_it_and_the_field(body: bytes, where: tuple[str, str]) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_pod(body)
    assert (caught.value.kind, caught.value.name, caught.value.field) == ("Pod", *where)


def test_a_pod_without_a_uid_is_refused() -> None:
    with pytest.raises(MalformedError, match=r"Pod shop/web-0: metadata\.uid: missing"):
        task(uid="")


def test_objects_without_a_name_are_refused() -> None:
    with pytest.raises(MalformedError, match=r"Pod shop/: metadata\.name: missing"):
        task(name="")
    with pytest.raises(MalformedError, match=r"Node \?: metadata\.name: missing"):
        node_from(decode_node(node(name="")))


def test_a_malformed_object_in_a_list_does_not_affect_the_others() -> None:
    page = (
        b'{"metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":7}},'
        + raw()
        + b"]}"
    )
    listed = decode_list(page)
    assert (listed.metadata.resource_version, listed.metadata.continue_) == ("9", "more")
    bad, good = listed.items or []
    with pytest.raises(MalformedError):
        decode_pod(bad)
    assert task_from(decode_pod(good)).uid == "uid-1"


def test_an_empty_list_may_be_null() -> None:
    assert not decode_list(b'{"metadata":{},"items":null}').items


def test_watch_lines() -> None:
    added = decode_event(b'{"type":"ADDED","object":' + raw() + b"}")
    assert (added.type, decode_pod(added.object).metadata.name) == ("ADDED", "web-0")
    bookmark = decode_event(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}')
    assert decode_head(bookmark.object).metadata.resource_version == "12"
    error = decode_event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}')
    assert decode_status(error.object).code == 410
    with pytest.raises(MalformedError, match="WatchEvent"):
        decode_event(b'{"type":"ADDED"')
