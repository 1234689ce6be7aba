"""Nodes and pods of which a part cannot be read: the rest counts, and a pending pod gets a report."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import make_engine, make_node
from eclectus.kube.objects import decode_node, decode_pod
from eclectus.kube.translate import node_from, readable_node, readable_task, task_from
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Amounts, Taint, Task
from pod_objects import raw
from worlds import World

BAD = "-1"  # the API server takes none in a spec, but does not check what a kubelet reports


def box(name: str = "main", **requests: str) -> dict[str, Any]:
    return {"name": name, "image": "pause", "resources": {"requests": requests}}


def readable(spec: Any, status: Any = None) -> Task:
    pod = decode_pod(raw(spec, status))
    with pytest.raises(MalformedError) as caught:
        task_from(pod)
    return readable_task(pod, caught.value)


def test_cordon_taints_labels_and_readable_amounts_of_a_node_count() -> None:
    body = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4", "memory": BAD, "example.com/a": "many"}},
    }
    got = node_from(readable_node(decode_node(msgspec.json.encode(body))))
    assert (got.allocatable, got.labels) == ((("cpu", 4000),), (("zone", "a"),))
    assert (got.taints, got.unschedulable) == ((Taint("k"),), True)


SEEN = {
    "name": "main",
    "resources": {"requests": {"cpu": BAD}},
    "allocatedResources": {"cpu": "3", "memory": BAD},
}


@pytest.mark.parametrize(
    ("spec", "status", "holding"),
    [
        ({"containers": [box(cpu=BAD, memory="1Gi")]}, {}, (("memory", 2**30),)),
        ({"containers": [box(cpu="1")], "initContainers": [box("i", cpu=BAD)]}, {}, (("cpu", 1000),)),
        ({"containers": [box(cpu="1")], "overhead": {"cpu": "much"}}, {}, (("cpu", 1000),)),
        ({"containers": [box(cpu="1")], "resources": {"requests": {"cpu": BAD}}}, {}, (("cpu", 1000),)),
        ({"containers": [box(cpu="1")]}, {"containerStatuses": [SEEN]}, (("cpu", 3000),)),
        (
            {"containers": [box(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
            {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": BAD}},
            (("cpu", 3000),),
        ),
    ],
    ids=["container", "init container", "overhead", "pod", "container's status", "pod's status"],
)
def test_what_can_be_read_of_a_bound_pod_is_held(spec: Any, status: Any, holding: Amounts) -> None:
    got = readable({"nodeName": "n1", **spec}, {"phase": "Running", **status})
    assert (got.node, got.phase, got.holding) == ("n1", "Running", holding)


def test_the_end_of_such_a_pod_is_seen() -> None:
    assert readable({"nodeName": "n1", "containers": [box(cpu=BAD)]}, {"phase": "Failed"}).ended


def test_a_pending_one_is_not_placed_and_its_report_says_why() -> None:
    term = {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["v"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affine = readable({"schedulerName": "eclectus", "affinity": {"nodeAffinity": required}})
    world = World(make_engine(), make_node("n1"))
    world.add(affine)
    assert world.node_of(affine.name) == ""
    assert world.messages(affine.name) == [
        (
            "SchedulerError",
            "0/1 nodes are available: pod asks for what cannot be read (spec.affinity.nodeAffinity "
            "matchExpressions k: operator 'Near' is unknown; it must be one of In, NotIn, Exists, "
            "DoesNotExist, Gt, Lt), which Eclectus does not support yet.",
        )
    ]


def test_an_object_without_a_name_stays_an_error() -> None:
    with pytest.raises(MalformedError, match=r"metadata\.name: missing"):
        readable_task(
            decode_pod(raw({"containers": [box(cpu=BAD)]}, name="")), MalformedError("Pod", "?", "", "")
        )
