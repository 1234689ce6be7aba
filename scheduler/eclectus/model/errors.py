"""Errors, grouped by what the caller should do.

    EclectusError
    ├── SettingsError   correct the settings: names the path, the problem and the nearest known spelling
    ├── PolicyError     correct the policy: it asked for an action that the engine must not take
    └── MalformedError  skip the object and log it: names the kind, the object and the field

Refusals are not errors: that a pod fits on no node is a `Reason`, which is data.
"""

from __future__ import annotations


class EclectusError(Exception):
    """Base of all errors that Eclectus raises on purpose."""


class SettingsError(EclectusError):
    """A setting is unknown, of the wrong type or out of bounds; nothing was started."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class PolicyError(EclectusError):
    """A policy asked for an action that is not allowed; the action was not taken."""


class MalformedError(EclectusError):
    """An API object cannot be read; it was skipped and nothing else is affected."""

    def __init__(self, kind: str, name: str, field: str, problem: str) -> None:
        where = f"{kind} {name}: {field}" if field else f"{kind} {name}"
        super().__init__(f"{where}: {problem}")
        self.kind = kind
        self.name = name  # "namespace/name", or "?" if not even that can be read
        self.field = field
        self.problem = problem
