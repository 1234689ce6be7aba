"""The fields of Services and controllers that say which pods they select. Every other field is skipped."""

from __future__ import annotations

from eclectus.kube.objects import Metadata
from eclectus.kube.placement import ApiObject, LabelSelector


class LabelsSpec(ApiObject, frozen=True):
    """spec of a Service or a ReplicationController; a Service has no replicas."""

    selector: dict[str, str] | None = None
    replicas: int | None = None


class SelectorSpec(ApiObject, frozen=True):
    """spec of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None
    replicas: int | None = None


class SelectingByLabels(ApiObject, frozen=True):
    """v1 Service or ReplicationController."""

    metadata: Metadata
    spec: LabelsSpec = LabelsSpec()


class SelectingBySelector(ApiObject, frozen=True):
    """apps/v1 ReplicaSet or StatefulSet."""

    metadata: Metadata
    spec: SelectorSpec = SelectorSpec()
