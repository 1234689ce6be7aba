"""Hypothesis strategies for storage objects as the API server accepts them, and pods with claims."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from accepted_fields import AMOUNTS, NODE_AFFINITY, REQUIRED, SELECTORS, TEXTS, Drawn, many, one_of, some
from eclectus.kube.cluster_objects import BETA_STORAGE_CLASS, BIND_COMPLETED, SELECTED_NODE

CLAIMS, VOLUMES, CLASSES = ("c0", "c1", "c2"), ("v0", "v1", "v2"), ("k0", "k1", "k2")
NODES, PODS, ATTACHMENTS = ("n0", "n1"), ("p0", "p1", "p2", "p3"), ("a0", "a1", "a2")
DRIVERS = one_of(["csi.a", "csi.b"])
UIDS = one_of(["uid-0", "uid-1"])  # a claim may be deleted and created again
MODES = many(one_of(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]), max_size=2)
SIZES = st.fixed_dictionaries({}, optional={"storage": AMOUNTS.map(lambda amount: amount[0])})
PHASES = one_of(["Pending", "Available", "Bound", "Lost", "Released", ""])


def _named(kind: str, names: tuple[str, ...], parts: dict[str, Drawn], **metadata: Drawn) -> Drawn:
    head = some(
        {"name": one_of(names), **metadata}, optional={"deletionTimestamp": st.just("2026-03-01T12:00:00Z")}
    )
    return st.tuples(st.just(kind), some({"metadata": head, **parts}))


_CLAIM = _named(
    "persistentvolumeclaims",
    CLAIMS,
    {
        "spec": some(
            {
                "accessModes": MODES,
                "resources": some({"requests": SIZES}),
                "volumeName": one_of(["", "", "", *VOLUMES, "gone"]),
            },
            optional={
                "storageClassName": one_of(["", *CLASSES]),
                "volumeMode": one_of(["Block", "Filesystem"]),
                "selector": SELECTORS,
                "volumeAttributesClassName": one_of(["", "gold"]),
            },
        ),
        "status": some({"phase": PHASES}),
    },
    namespace=st.just("default"),
    uid=UIDS,
    annotations=st.dictionaries(
        one_of([BIND_COMPLETED, SELECTED_NODE, BETA_STORAGE_CLASS]), one_of(["yes", *NODES, *CLASSES]) | TEXTS
    ),
    ownerReferences=one_of([[], [{"uid": "uid-p0", "controller": True}]]),
)
_VOLUME = _named(
    "persistentvolumes",
    VOLUMES,
    {
        "spec": some(
            {"capacity": SIZES, "accessModes": MODES, "storageClassName": one_of(["", *CLASSES])},
            optional={
                "claimRef": some(
                    {"namespace": st.just("default"), "name": one_of(CLAIMS), "uid": st.just("") | UIDS}
                ),
                "nodeAffinity": some({"required": NODE_AFFINITY.map(lambda drawn: drawn[REQUIRED])}),
                "csi": some({"driver": DRIVERS, "volumeHandle": one_of(["h", "i"])}),
                "volumeMode": one_of(["Block", "Filesystem"]),
                "volumeAttributesClassName": one_of(["", "gold"]),
            },
        ),
        "status": some({"phase": PHASES}),
    },
    labels=st.dictionaries(
        one_of(["topology.kubernetes.io/zone", "zone"]), one_of(["a", "a__b", "__", "", "x" * 63])
    ),
)
_CLASS = _named(
    "storageclasses",
    CLASSES,
    {"provisioner": one_of(["csi.a", "csi.b", "kubernetes.io/no-provisioner", ""])},
).flatmap(
    lambda drawn: st.fixed_dictionaries(
        {"volumeBindingMode": one_of(["WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate"])},
        optional={
            "allowedTopologies": many(
                some({"matchLabelExpressions": many(some({"key": st.just("zone"), "values": many(TEXTS)}))}),
                max_size=2,
            )
        },
    ).map(lambda more: (drawn[0], {**drawn[1], **more}))
)
_CSI_NODE = _named(
    "csinodes",
    NODES,
    {
        "spec": some(
            {
                "drivers": many(
                    some(
                        {"name": DRIVERS},
                        optional={"allocatable": some({"count": one_of([None, 0, 1, 2**31 - 1])})},
                    ),
                    max_size=2,
                )
            }
        )
    },
)
_ATTACHMENT = _named(
    "volumeattachments",
    ATTACHMENTS,
    {
        "spec": some(
            {
                "attacher": DRIVERS,
                "nodeName": one_of([*NODES, "gone"]),
                "source": some(
                    {},
                    optional={
                        "persistentVolumeName": one_of([*VOLUMES, "gone"]),
                        "inlineVolumeSpec": st.just({}),
                    },
                ),
            }
        )
    },
)
_POD = _named(
    "pods",
    PODS,
    {
        "spec": some(
            {
                "schedulerName": one_of(["eclectus", "eclectus", "another"]),
                "nodeName": one_of(["", "", *NODES]),
                "volumes": many(
                    st.one_of(
                        some({"name": one_of(["v", "c0"]), "ephemeral": st.just({})}),
                        some({"persistentVolumeClaim": some({"claimName": one_of([*CLAIMS, "gone"])})}),
                    ),
                    max_size=3,
                ),
            }
        ),
        "status": some({"phase": one_of(["Pending", "Pending", "Running", "Succeeded"])}),
    },
    namespace=st.just("default"),
)

OBJECTS: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    _CLAIM, _CLAIM, _VOLUME, _VOLUME, _CLASS, _CSI_NODE, _ATTACHMENT, _POD, _POD
)
"""The name of a kind and an object of it, without uid of pods and without version."""
