"""The room a probe stands for, as it is written on its pod.

A probe asks for nothing, so that it takes nothing from real pods (docs/operator.md). What a pod of its
class would ask for stands in an annotation instead: the probe's time is good as long as that much is left.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eclectus.kube.requests import FieldError, amounts, parsed
from eclectus.model.objects import Amounts

ROOM = "eclectus.dev/room"
SHARED = ("cpu", "memory", "ephemeral-storage")
"""What a container can use without having asked for it; anything else it gets only if it asks."""
_FIELD = f"metadata.annotations[{ROOM}]"


def to_annotation(room: Amounts) -> str:
    """As the annotation's value: a resource list in JSON."""
    quantities = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in room}
    return msgspec.json.encode(quantities).decode()


def from_annotations(annotations: Mapping[str, str]) -> Amounts:
    """What stands there; nothing where there is no such annotation. Raises FieldError."""
    text = annotations.get(ROOM)
    if text is None:
        return ()
    try:
        quantities = msgspec.json.decode(text, type=dict[str, str | int | float])
    except msgspec.DecodeError as error:
        raise FieldError(_FIELD, f"{text[:80]!r} is no resource list in JSON: {error}") from error
    for name in quantities.keys() - SHARED:
        raise FieldError(_FIELD, f"{name[:80]!r} is none of {', '.join(SHARED)}")
    return amounts(parsed(quantities, _FIELD), _FIELD)
