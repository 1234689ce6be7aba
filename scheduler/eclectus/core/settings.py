"""Settings are typed fields that explain themselves: meaning, unit, bounds and the reason of the default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """What a user must know of one setting; stands in the `Annotated` type of a dataclass field."""

    means: str
    why: str = ""  # the reason of the default
    unit: str = ""  # of numbers; "s" fields also accept durations such as 500ms or 2m
    least: float | None = None
    most: float | None = None
