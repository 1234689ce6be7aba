"""PodGroups of both APIs, and which one a pod names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eclectus.kube.cluster_objects import coscheduling_gang_from, gang_from
from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import task_from
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Gang, GangKey

META = {"name": "train", "namespace": "ml", "resourceVersion": "7"}
OWN, OTHER = GangKey("scheduling.k8s.io", "ml", "train"), GangKey("scheduling.x-k8s.io", "ml", "train")


def raw(spec: Any) -> bytes:
    return json.dumps({"metadata": META, "spec": spec}).encode()


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [({"gang": {"minCount": 4}}, 4), ({"basic": {}}, 1), ({}, 1)],
)
def test_the_quorum_of_kubernetes_pod_groups(policy: Any, minimum: int) -> None:
    assert gang_from(raw({"schedulingPolicy": policy})) == Gang(OWN, minimum)


def test_the_quorum_of_coscheduling_pod_groups() -> None:
    asked = {"minMember": 3, "scheduleTimeoutSeconds": 10}
    assert coscheduling_gang_from(raw(asked)) == Gang(OTHER, 3)
    assert coscheduling_gang_from(raw({})) == Gang(OTHER, 1)


def test_a_pod_group_whose_spec_is_null_starts_each_pod_by_itself() -> None:
    assert gang_from(raw(None)) == Gang(OWN, 1)
    assert coscheduling_gang_from(raw(None)) == Gang(OTHER, 1)


def test_a_quorum_that_is_no_number_is_named() -> None:
    with pytest.raises(MalformedError, match=r"ml/train.*minMember"):
        coscheduling_gang_from(raw({"minMember": "three"}))


def of_pod(spec: dict[str, Any], labels: dict[str, str] | None = None) -> Any:
    meta = {"name": "p", "namespace": "ml", "uid": "u", "labels": labels or {}}
    return task_from(decode_pod(json.dumps({"metadata": meta, "spec": {"containers": [], **spec}}).encode()))


LABEL = {"scheduling.x-k8s.io/pod-group": "train"}


def test_a_pod_names_its_group_by_the_field_or_by_the_label() -> None:
    named = {"schedulingGroup": {"podGroupName": "train"}}
    assert of_pod({}).gang is None
    assert of_pod(named).gang == OWN
    assert of_pod({}, LABEL).gang == OTHER
    assert of_pod(named, LABEL).gang == OWN
    assert of_pod(named).spec == of_pod({}).spec, "pods of different groups share a class"
    assert of_pod({}, {"scheduling.x-k8s.io/pod-group": ""}).gang is None


@pytest.mark.parametrize("spec", [{"workloadRef": {"name": "w", "podGroup": "g"}}, {"schedulingGroup": {}}])
def test_a_group_that_is_no_pod_group_is_refused(spec: Any) -> None:
    assert of_pod(spec).spec.unsupported == ("a group that is no PodGroup",)
