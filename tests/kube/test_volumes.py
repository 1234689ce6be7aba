"""Storage objects of the API as values of the model: the fields that count, and those that are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw, json

from eclectus.kube.cluster_objects import (
    attach_limits_from,
    attachment_from,
    claim_from,
    free_storage_from,
    storage_class_from,
    storage_driver_from,
    volume_from,
)
from eclectus.kube.objects import decode_pod
from eclectus.kube.requests import MOST
from eclectus.kube.translate import task_from
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Requirement, Term, UsedClaim
from eclectus.model.volumes import AttachLimits, Attachment, FreeStorage, StorageClass, Volume, VolumeClaim

META = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"}
HOST = "kubernetes.io/hostname"


def raw(spec: Any = None, status: Any = None, annotations: Any = None, **fields: Any) -> Raw:
    document = {
        "metadata": {**META, "annotations": annotations or {}, **fields.pop("metadata", {})},
        **fields,
    }
    document |= {name: part for name, part in (("spec", spec), ("status", status)) if part is not None}
    return Raw(json.encode(document))


@pytest.mark.parametrize(
    "read", [claim_from, volume_from, attach_limits_from, attachment_from, storage_driver_from]
)
def test_a_spec_that_is_null_is_not_set(read: Callable[[Raw], object]) -> None:
    assert read(Raw(json.encode({"metadata": META, "spec": None}))) == read(raw())


def test_a_plain_claim() -> None:
    assert claim_from(raw()) == VolumeClaim("default", "a", "u")


def test_every_field_of_a_claim() -> None:
    spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "volumeMode": "Block",
        "resources": {"requests": {"storage": "10Gi"}},
        "selector": {"matchLabels": {"tier": "gold"}},
        "volumeName": "v",
        "volumeAttributesClassName": "gold",
    }
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1"}
    owners = [{"uid": "other"}, {"uid": "pod", "controller": True}]
    claim = claim_from(raw(spec, {"phase": "Lost"}, annotations, metadata={"ownerReferences": owners}))
    assert claim == VolumeClaim(
        "default",
        "a",
        "u",
        storage_class="fast",
        size=10 * 2**30,
        access_modes=("ReadOnlyMany", "ReadWriteOnce"),
        volume_mode="Block",
        selector=(Requirement("tier", "In", ("gold",)),),
        attributes_class="gold",
        volume="v",
        is_bound=True,
        is_lost=True,
        selected_node="n1",
        owner="pod",
    )


def test_a_claim_that_names_a_volume_is_not_bound_yet() -> None:
    claim = claim_from(raw({"volumeName": "v"}))
    assert (claim.volume, claim.is_bound) == ("v", False)


def test_the_older_annotation_of_the_class_goes_before_the_field() -> None:
    beta = {"volume.beta.kubernetes.io/storage-class": "old"}
    assert claim_from(raw({"storageClassName": "new"}, annotations=beta)).storage_class == "old"
    assert volume_from(raw({"storageClassName": "new"}, annotations=beta)).storage_class == "old"


def test_every_field_of_a_volume() -> None:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n1"]}]}
    spec = {
        "storageClassName": "local",
        "capacity": {"storage": "500M"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "data", "uid": "c"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": "csi.example", "volumeHandle": "h"},
    }
    metadata = {
        "name": "v",
        "namespace": "",
        "labels": {"tier": "gold"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    assert volume_from(raw(spec, {"phase": "Bound"}, metadata=metadata)) == Volume(
        "v",
        storage_class="local",
        size=500_000_000,
        access_modes=("ReadWriteOnce",),
        labels=(("tier", "gold"),),
        affinity=(Term((Requirement(HOST, "In", ("n1",)),)),),
        driver="csi.example",
        handle="h",
        deleting=True,
        claim="default/data",
        claim_uid="c",
    )


def test_a_free_volume_is_available() -> None:
    volume = volume_from(raw({}, {"phase": "Available"}))
    assert (volume.is_available, volume.claim, volume.affinity) == (True, "", None)


def test_an_operator_that_is_unknown_is_reported_with_the_volume() -> None:
    term = {"matchExpressions": [{"key": HOST, "operator": "Near", "values": ["n1"]}]}
    with pytest.raises(MalformedError, match=r"PersistentVolume a.*spec.nodeAffinity"):
        volume_from(raw({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}))


@pytest.mark.parametrize("size", ["much", "-1Gi"])
def test_a_size_that_cannot_be_read_is_zero(size: str) -> None:
    assert claim_from(raw({"resources": {"requests": {"storage": size}}})).size == 0


def test_a_storage_class() -> None:
    topology = {"matchLabelExpressions": [{"key": "zone", "values": ["z1", "z2"]}]}
    late = raw(provisioner="p", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=[topology])
    terms = (Term((Requirement("zone", "In", ("z1", "z2")),)),)
    assert storage_class_from(late) == StorageClass("a", "p", waits_for_consumer=True, topologies=terms)
    assert not storage_class_from(raw(provisioner="p")).waits_for_consumer
    assert not storage_class_from(raw(provisioner="kubernetes.io/no-provisioner")).provisions


def test_the_limits_and_the_drivers_of_a_csi_node() -> None:
    drivers = [{"name": "b", "allocatable": {"count": 3}}, {"name": "a", "allocatable": {}}, {"name": "c"}]
    expected = AttachLimits("a", (("b", 3),), ("a", "b", "c"))
    assert attach_limits_from(raw({"drivers": drivers})) == expected


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"source": {"persistentVolumeName": "v"}}, Attachment("a", "n", "v", "d")),
        ({"source": {"inlineVolumeSpec": {}}}, None),
        ({"source": {"persistentVolumeName": "v"}, "attacher": ""}, None),
    ],
)
def test_an_attachment_counts_if_it_names_a_volume_and_a_driver(
    spec: dict[str, Any], found: Attachment | None
) -> None:
    assert attachment_from(raw({"attacher": "d", "nodeName": "n", **spec})) == found


ZONE_1 = {"matchLabels": {"zone": "z1"}}
IN_ZONE_1 = (Requirement("zone", "In", ("z1",)),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"capacity": "5Gi", "nodeTopology": ZONE_1},
            FreeStorage("default/a", "late", 5 * 2**30, IN_ZONE_1, 5 * 2**30),
        ),
        (
            {"capacity": "5Gi", "maximumVolumeSize": "1Gi", "nodeTopology": ZONE_1},
            FreeStorage("default/a", "late", 2**30, IN_ZONE_1, 5 * 2**30),
        ),
        ({"capacity": 7, "nodeTopology": {}}, FreeStorage("default/a", "late", 7, total=7)),
        ({"capacity": "1e40", "nodeTopology": {}}, FreeStorage("default/a", "late", MOST, total=MOST)),
        ({"capacity": "5Gi"}, None),
        ({"nodeTopology": ZONE_1}, None),
        ({"capacity": "much", "nodeTopology": ZONE_1}, None),
    ],
)
def test_free_storage(fields: Any, expected: FreeStorage | None) -> None:
    assert free_storage_from(raw(storageClassName="late", **fields)) == expected


@pytest.mark.parametrize(
    ("spec", "publishes"),
    [({"storageCapacity": True}, True), ({"storageCapacity": False}, False), ({}, False)],
)
def test_whether_a_driver_publishes_how_much_storage_is_free(spec: Any, publishes: bool) -> None:
    assert storage_driver_from(raw(spec)) == ("a", publishes, False)


def test_whether_a_driver_must_be_installed() -> None:
    assert storage_driver_from(raw({"preventPodSchedulingIfMissing": True})) == ("a", False, True)


def test_the_claims_of_a_pod() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "cache", "ephemeral": {"volumeClaimTemplate": {}}},
    ]
    pod = {"metadata": META, "spec": {"containers": [], "volumes": volumes}}
    task = task_from(decode_pod(Raw(json.encode(pod))))
    assert task.claims == (UsedClaim("c"), UsedClaim("a-cache", is_own=True))
