"""Selectors of Services and controllers, and all that selects a pod joined to one selector.

As DefaultSelector of kube-scheduler: the labels of every Service that selects the pod, and the requirements
of its controller, which need not select it. A pod is compared with few Services, whatever there are in its
namespace: an index has each different selector under one of its labels, that which fewest others have there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eclectus.model.objects import Pairs, Requirement
from eclectus.model.selectors import PodSelector, Selector, selects

SERVICE = "Service"

_Label = tuple[str, str, str]  # namespace, key, value


class _Indexed(NamedTuple):
    """A selector of Services of one namespace."""

    label: _Label  # under which it is found
    services: dict[str, None]  # names, as an ordered set


class PodSelectors:
    """What there is; selectors of Services require labels with one value each."""

    def __init__(self) -> None:
        self._services: dict[tuple[str, str], Selector] = {}  # by namespace and name
        self._indexed: dict[tuple[str, Selector], _Indexed] = {}  # by namespace and selector
        self._with_label: dict[_Label, dict[Selector, None]] = {}
        self._controllers: dict[tuple[str, str], Selector] = {}  # by namespace and kind/name

    def __len__(self) -> int:
        """Services and controllers."""
        return len(self._services) + len(self._controllers)

    def set(self, given: PodSelector) -> bool:
        """It exists and selects these pods; whether that is new."""
        namespace, name = given.namespace, given.name
        if given.kind != SERVICE:
            key = (namespace, f"{given.kind}/{name}")
            before, self._controllers[key] = self._controllers.get(key), given.selector
            return before != given.selector
        if self._services.get((namespace, name)) == given.selector:
            return False
        self._drop_service(namespace, name)
        self._services[namespace, name] = given.selector
        self._add_service(namespace, name, given.selector)
        return True

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """It does not exist any more, or selects none; whether it was known."""
        if kind == SERVICE:
            return self._drop_service(namespace, name)
        return self._controllers.pop((namespace, f"{kind}/{name}"), None) is not None

    def joined(self, namespace: str, labels: Pairs, controller: str) -> Selector:
        """All requirements that select this pod, sorted, each once; empty if nothing does."""
        found = dict[Requirement, None]()
        if self._services:
            for selector in self._selecting(namespace, labels):
                found |= dict.fromkeys(selector)
        found |= dict.fromkeys(self._controllers.get((namespace, controller), ()))
        return tuple(sorted(found, key=_order)) if len(found) > 1 else tuple(found)

    def _selecting(self, namespace: str, labels: Pairs) -> Iterator[Selector]:
        values = dict(labels)
        for key, value in labels:
            for selector in self._with_label.get((namespace, key, value), ()):
                if selects(selector, values):
                    yield selector

    # -- the index -----------------------------------------------------------------------------

    def _add_service(self, namespace: str, name: str, selector: Selector) -> None:
        indexed = self._indexed.get((namespace, selector))
        if indexed is None:
            labels = [(namespace, each.key, each.values[0]) for each in selector]
            label = min(labels, key=lambda each: len(self._with_label.get(each, ())))
            self._with_label.setdefault(label, {})[selector] = None
            indexed = self._indexed[namespace, selector] = _Indexed(label, {})
        indexed.services[name] = None

    def _drop_service(self, namespace: str, name: str) -> bool:
        selector = self._services.pop((namespace, name), None)
        if selector is None:
            return False
        label, services = self._indexed[namespace, selector]
        del services[name]
        if not services:
            del self._indexed[namespace, selector]
            selectors = self._with_label[label]
            del selectors[selector]
            if not selectors:
                del self._with_label[label]
        return True


def _order(requirement: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return requirement.key, requirement.op, requirement.values
