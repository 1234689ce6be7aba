"""Errors, grouped by what the caller should do.

    EclectusError
    ├── SettingsError   correct the settings: each problem's path, what is wrong, the nearest known spelling
    ├── QuestionError   correct the question: it names what does not exist, or what cannot be answered
    ├── PolicyError     correct the policy: it asked for an action that the engine must not take
    └── MalformedError  skip the object and log it: names the kind, the object and the field

Refusals are not errors: that a pod fits on no node is a `Reason`, which is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Self


class EclectusError(Exception):
    """Base of all errors that Eclectus raises on purpose."""


class SettingsError(EclectusError):
    """Settings are unknown, of the wrong type or out of bounds; nothing was started.

    Holds at least one problem. `path` and `problem` are those of the first; `str` has a line for each.
    """

    def __init__(self, path: str, problem: str, others: Iterable[tuple[str, str]] = ()) -> None:
        self.problems = ((path, problem), *others)
        super().__init__("\n".join(self.lines()))
        self.path = path
        self.problem = problem

    def lines(self) -> list[str]:
        """`path: problem` for each problem."""
        return [f"{path}: {problem}" if path else problem for path, problem in self.problems]

    def moved(self, path_of: Callable[[str], str]) -> SettingsError:
        """The same problems, each at `path_of` its path."""
        (path, problem), *others = ((path_of(path), problem) for path, problem in self.problems)
        return SettingsError(path, problem, others)

    def below(self, path: str) -> SettingsError:
        """The same problems, their paths relative to `path`."""
        return self.moved(lambda at: f"{path}.{at}" if path and at else path or at)

    def in_file(self, file: PathLike[str]) -> SettingsError:
        """The same problems, each with the name of the file."""
        name = fspath(file)
        return self.moved(lambda at: f"{name}: {at}" if at else name)


@contextmanager
def errors_below(path: str) -> Iterator[None]:
    """The paths of SettingsErrors that the block raises are relative to `path`."""
    try:
        yield
    except SettingsError as error:
        raise error.below(path) from None


class Problems:
    """Collects SettingsErrors of independent parts, so that all are reported at once."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, path: str, problem: str) -> None:
        """Record a problem."""
        self._found.append((path, problem))

    @contextmanager
    def collected(self) -> Iterator[Self]:
        """Record a SettingsError that the block raises; the block ends there."""
        try:
            yield self
        except SettingsError as error:
            self._found += error.problems

    def raise_any(self) -> None:
        """Raise one SettingsError with all recorded problems, if there are any."""
        if self._found:
            (path, problem), *others = self._found
            raise SettingsError(path, problem, others)


class QuestionError(EclectusError):
    """A question to an explanation cannot be answered as it was asked; nothing was changed."""


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
