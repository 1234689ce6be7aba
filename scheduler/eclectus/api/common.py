"""What the custom resources share: metadata, conditions, owners, and how numbers and times are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import DecodeError, Struct, field
from msgspec.structs import replace

NOTABLE = 0.1  # relative change of a rate, absolute change of a share, that is worth a write
NOT_JSON = (
    DecodeError,
    UnicodeDecodeError,
)  # what msgspec raises of bytes that are none, or none of the type
MESSAGE_CHARACTERS = 2000  # of a condition's message: enough for a reader
LATEST_SECONDS = datetime(9999, 12, 31, tzinfo=UTC).timestamp()  # the last day that a time can be written of
_DIGITS = 4  # significant digits of the numbers in a status: people read them


class ObjectMeta(Struct, frozen=True, rename="camel"):
    """The fields of an object's metadata that Eclectus reads."""

    name: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class ListMeta(Struct, frozen=True):
    """A list's metadata: the token of the next page, empty on the last one."""

    continue_: str = field(default="", name="continue")


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A standard condition."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    last_transition_time: str
    message: str = ""
    observed_generation: int = 0


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one. Only its message changing is not worth a write."""
    old = next((each for each in conditions if each.type == new.type), None)
    if old and old.status == new.status:
        if (old.reason, old.observed_generation) == (new.reason, new.observed_generation):
            return tuple(conditions)
        new = replace(new, last_transition_time=old.last_transition_time)
    others = (each for each in conditions if each.type != new.type)
    return tuple(sorted((*others, new), key=lambda each: each.type))


def node_owner(name: str, uid: str) -> dict[str, Any]:
    """The ownerReference by which an object is deleted together with its Node."""
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}


def rounded(number: float) -> float:
    """The number to four significant digits."""
    return float(f"{number:.{_DIGITS}g}")


def has_changed(one: float, other: float) -> bool:
    """Whether two rates differ by more than a tenth of the greater."""
    return abs(one - other) > NOTABLE * max(abs(one), abs(other))


def time_text(seconds: float) -> str:
    """Seconds since the epoch as an RFC 3339 time in UTC, cut to whole seconds as Kubernetes does."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time_text(seconds: float) -> str:
    """The same with six digits, as the API server wants a MicroTime; the last day for a later time."""
    return datetime.fromtimestamp(min(seconds, LATEST_SECONDS), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_seconds(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time. Raises ValueError for any other text."""
    return datetime.fromisoformat(text).timestamp()
