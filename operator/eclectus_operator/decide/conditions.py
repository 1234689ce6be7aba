"""Standard conditions of an object's status."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from eclectus.api.common import Condition

MESSAGE_CHARACTERS = 2000  # of a condition's message: enough for a reader


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """The conditions with this one. Only its message changing is not worth a write."""
    old = next((each for each in conditions if each.type == new.type), None)
    if old and old.status == new.status:
        if (old.reason, old.observed_generation) == (new.reason, new.observed_generation):
            return tuple(conditions)
        new = replace(new, last_transition_time=old.last_transition_time)
    others = (each for each in conditions if each.type != new.type)
    return tuple(sorted((*others, new), key=lambda each: each.type))
