"""Which namespaces a selector selects, without comparing it with every namespace.

A cluster may have thousands of namespaces, and a pod several selectors, so namespaces are filed by their
labels and a selector is answered by operations on sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import filterfalse
from typing import TypeVar

from eclectus.model.objects import Pairs, Requirement
from eclectus.model.selectors import Selector

_Names = set[str]
_K = TypeVar("_K", bound=Hashable)


class NamespaceLabels:
    """The namespaces that there are, with their labels."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}  # by the name of the namespace
        self._with_key: dict[str, _Names] = {}
        self._with_value: dict[tuple[str, str], _Names] = {}
        self._sorted: tuple[str, ...] | None = None  # all names; None: to be sorted again

    def set(self, name: str, labels: Pairs) -> None:
        """The namespace exists, with these labels."""
        self.remove(name)
        self._labels[name], self._sorted = dict(labels), None
        for key, value in labels:
            self._with_key.setdefault(key, set()).add(name)
            self._with_value.setdefault((key, value), set()).add(name)

    def remove(self, name: str) -> None:
        """The namespace does not exist any more; no error if it is not known."""
        labels = self._labels.pop(name, None)
        if labels is None:
            return
        self._sorted = None
        for key, value in labels.items():
            _discard(self._with_key, key, name)
            _discard(self._with_value, (key, value), name)

    def of(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None if it does not exist."""
        return self._labels.get(name)

    def selected(self, selector: Selector) -> tuple[str, ...]:
        """The names of the namespaces for whose labels all requirements hold, sorted."""
        chosen: _Names | None = None
        excluded = _Names()
        for requirement in selector:
            named = self._named_by(requirement)
            if requirement.op in ("NotIn", "DoesNotExist"):
                excluded |= named
            else:
                chosen = named if chosen is None else chosen & named
        names: Iterable[str] = self._all() if chosen is None else sorted(chosen)
        return tuple(filterfalse(excluded.__contains__, names))

    def _named_by(self, requirement: Requirement) -> _Names:
        """The namespaces that have the label, with one of the values if it names some."""
        if requirement.op in ("Exists", "DoesNotExist"):
            return self._with_key.get(requirement.key, set())
        found = [self._with_value.get((requirement.key, value), set()) for value in requirement.values]
        return found[0] if len(found) == 1 else set().union(*found)

    def _all(self) -> tuple[str, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._labels))
        return self._sorted


def _discard(index: dict[_K, _Names], key: _K, name: str) -> None:
    names = index[key]
    names.discard(name)
    if not names:
        del index[key]
