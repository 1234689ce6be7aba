"""Services and controllers of the API as selectors of pods in the model. Their other fields are skipped.

One without a selector, or with an empty one, says nothing about pods, and one that wants no pods has none
that wait: a Deployment keeps ten ReplicaSets of its past. The selector of all these is empty in the model.
"""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import Decoder

from eclectus.kube.constraints import label_selector
from eclectus.kube.decoding import decode
from eclectus.kube.objects import Metadata
from eclectus.kube.placement import ApiObject, LabelSelector
from eclectus.model.selectors import PodSelector


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


def selected_by_labels(kind: str, raw: bytes | Raw) -> tuple[PodSelector, str]:
    """A Service or a ReplicationController, and its resourceVersion.

    Raises MalformedError naming the object and the field.
    """
    found = decode(_BY_LABELS, kind, raw)
    selector = LabelSelector(found.spec.selector or {})
    return _selector(kind, found.metadata, selector, found.spec.replicas)


def selected_by_selector(kind: str, raw: bytes | Raw) -> tuple[PodSelector, str]:
    """A ReplicaSet or a StatefulSet, likewise."""
    found = decode(_BY_SELECTOR, kind, raw)
    selector = found.spec.selector or LabelSelector()
    return _selector(kind, found.metadata, selector, found.spec.replicas)


def _selector(
    kind: str, meta: Metadata, selector: LabelSelector, replicas: int | None
) -> tuple[PodSelector, str]:
    selected = () if replicas == 0 else label_selector(selector)
    return PodSelector(kind, meta.namespace, meta.name, selected), meta.resource_version


_BY_LABELS, _BY_SELECTOR = Decoder(SelectingByLabels), Decoder(SelectingBySelector)
