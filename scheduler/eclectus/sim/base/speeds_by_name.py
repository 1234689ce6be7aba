"""Speeds of nodes by name pattern, for lists of nodes that have no speeds of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from eclectus.config.settings_reading import join, nearest
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting

SpeedsByName = Annotated[
    dict[str, float],
    Setting(
        "speed of nodes by name pattern with `*` and `?`; the first match counts, 1 without one",
        least=1e-6,
        most=1e6,
    ),
]


def speed_of(name: str, speeds: Mapping[str, float]) -> float:
    """The speed of a node: that of the first pattern that matches, 1 if none does."""
    return next((speed for pattern, speed in speeds.items() if fnmatchcase(name, pattern)), 1.0)


def check_patterns(speeds: Mapping[str, float], names: Iterable[str], where: str) -> None:
    """Raise SettingsError for a pattern that matches no node; `where` says of which list."""
    known = sorted(names)
    for pattern in speeds:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise SettingsError(
                join("speeds", pattern), f"matches no node {where}; {nearest(pattern, known)}"
            )
