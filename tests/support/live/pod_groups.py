"""PodGroups as users write them, of both APIs, and the definition of those of coscheduling."""

from __future__ import annotations

from typing import Any

from eclectus.kube.cluster_objects import COSCHEDULING, COSCHEDULING_LABEL

_COUNT = {"type": "integer", "format": "int32"}
_SPEC = {"type": "object", "properties": {"minMember": _COUNT, "scheduleTimeoutSeconds": _COUNT}}
_NAMES = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"podgroups.{COSCHEDULING}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"},
    },
    "spec": {
        "group": COSCHEDULING,
        "scope": "Namespaced",
        "names": _NAMES,
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
            }
        ],
    },
}
"""Of coscheduling's PodGroup. The API server wants an approval of names that end in k8s.io."""


def pod_group(name: str, minimum: int) -> dict[str, Any]:
    """Of `scheduling.k8s.io`."""
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}


def coscheduling_pod_group(name: str, minimum: int) -> dict[str, Any]:
    """Of `scheduling.x-k8s.io`."""
    return {
        "apiVersion": f"{COSCHEDULING}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


def labelled(pod: dict[str, Any], group: str) -> dict[str, Any]:
    """The pod as one of a PodGroup of coscheduling."""
    pod["metadata"]["labels"] = {COSCHEDULING_LABEL: group}
    return pod
