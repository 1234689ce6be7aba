"""The notional requests of a probe pod, as an annotation of the pod.

A probe pod requests nothing, so that it takes no room from other pods (docs/operator.md). The annotation
has what a pod of its class would request. The probe's duration is a valid sample as long as its node has
at least that much unreserved.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eclectus.api.names import ROOM_ANNOTATION
from eclectus.kube.requests import FieldError, amounts, parsed
from eclectus.model.objects import Amounts

SHARED = ("cpu", "memory", "ephemeral-storage")
"""The resources that a container can use without having requested them."""
_FIELD = f"metadata.annotations[{ROOM_ANNOTATION}]"


def to_annotation(room: Amounts) -> str:
    """The value of the annotation: a resource list in JSON."""
    quantities = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in room}
    return msgspec.json.encode(quantities).decode()


def from_annotations(annotations: Mapping[str, str]) -> Amounts:
    """The notional requests in a pod's annotations; empty without the annotation. Raises FieldError."""
    text = annotations.get(ROOM_ANNOTATION)
    if text is None:
        return ()
    try:
        quantities = msgspec.json.decode(text, type=dict[str, str | int | float])
    except msgspec.DecodeError as error:
        raise FieldError(_FIELD, f"{text[:80]!r} is not a resource list in JSON: {error}") from error
    for name in quantities.keys() - SHARED:
        raise FieldError(_FIELD, f"{name[:80]!r} is not allowed; it must be one of {', '.join(SHARED)}")
    return amounts(parsed(quantities, _FIELD))
