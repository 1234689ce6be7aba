"""Errors, by what the caller does next.

    EclectusError
    ├── SettingsError   mend the settings: names the path, what is wrong, and the nearest right spelling
    ├── PolicyError     mend the policy: it asked for an action the engine must not take
    └── MalformedError  skip the object and say so: it names the kind, the object and the field

Refusals are not errors: a pod that fits nowhere is a `Why`, which is data.
"""

from __future__ import annotations


class EclectusError(Exception):
    """Whatever Eclectus raises on purpose."""


class SettingsError(EclectusError):
    """A setting is unknown, of the wrong kind or absurd; nothing was started."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class PolicyError(EclectusError):
    """A policy asked for an action that would break a promise; the action was not taken."""


class MalformedError(EclectusError):
    """An API object cannot be understood; it was left out and nothing else was lost."""

    def __init__(self, kind: str, name: str, field: str, problem: str) -> None:
        where = f"{kind} {name}: {field}" if field else f"{kind} {name}"
        super().__init__(f"{where}: {problem}")
        self.kind = kind
        self.name = name  # "namespace/name", or "?" where not even that can be read
        self.field = field
        self.problem = problem
