"""What all foreign queues share: fields that are taken one by one, and what was found while reading them.

Whatever nobody has taken of an object is listed when it is closed, so nothing is dropped silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eclectus.config.settings_reading import join, read_list, read_mapping, show
from eclectus.kube.requests import counted, thousandths
from eclectus.model.errors import Problems

DRAFTS_MOST = 10_000  # YAML aliases can expand a short file to any number of queues
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
UNKNOWN = "is not known here, so it has no effect"
KINDS = "pods of a pool may run on nodes of every kind that their own nodeSelector allows"
WRITTEN_BY_SERVERS = (
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation"),
    *("managedFields", "resourceVersion", "selfLink", "uid"),
)
_PLAIN = re.compile(r"[-\w./]+")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

Amounts = dict[str, int]
"""Resource name -> thousandths."""


class Findings:
    """What has no counterpart, and what is wrong."""

    def __init__(self) -> None:
        self.notes = list[str]()
        self.problems = Problems()

    def note(self, path: str, reason: str) -> None:
        """Record a field without a counterpart: why, and what to do."""
        self.notes.append(f"{path}: {reason}")


@dataclass
class Draft:
    """A Pool that is to be: its names in order of preference, as two queues may share one."""

    key: str
    names: tuple[str, ...]
    where: str
    spec: dict[str, Any]
    parent: str = ""  # key
    may_be_default: bool = False  # its pods are those that name no queue
    namespaces: tuple[str, ...] = ()  # that submit to it; all of the pods of one that submits to no other


class Fields:
    """The fields of a mapping, each of which is taken once."""

    separator = "."  # between its path and the name of a field

    def __init__(self, found: Findings, value: object, path: str) -> None:
        self._found = found
        self.path = path
        self._left: dict[str, Any] = {}
        with found.problems.collected():
            self._left = dict(read_mapping(value, path))

    def __contains__(self, name: str) -> bool:
        return not _says_nothing(self._left.get(name))

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}{self.separator}{name if _PLAIN.fullmatch(name) else show(name)}"

    def problem(self, name: str, problem: str) -> None:
        """Record what is wrong with a field."""
        self._found.problems.add(self.at(name), problem)

    def note(self, name: str, reason: str) -> None:
        """The field has no counterpart; nothing is recorded where it is absent or empty."""
        if not _says_nothing(self._left.pop(name, None)):
            self._found.note(self.at(name), reason)

    def drop(self, *names: str) -> None:
        """These fields say nothing that counts."""
        for name in names:
            self._left.pop(name, None)

    def close(self, reason: str = UNKNOWN) -> None:
        """Whatever has not been taken has no counterpart."""
        for name in list(self._left):
            self.note(name, reason)

    def text(self, name: str, default: str = "") -> str:
        """A text; the default where it is absent."""
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, str):
            self.problem(name, f"must be text, not {show(value)}")
            return default
        return value

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """One of the known texts, the first of which is the default."""
        value = self.text(name, known[0])
        if value not in known:
            self.problem(name, f"{show(value)} is unknown; known are: {', '.join(known)}")
            return known[0]
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._left.pop(name, None)
        if not isinstance(value, bool | None):
            self.problem(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else default

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number within bounds; None where it is absent."""
        value = self._left.pop(name, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.problem(name, f"must be a whole number from {least} to {most}, not {show(value)}")
            return None
        return value

    def amount(self, name: str) -> int | None:
        """A quantity, thousandths; None where it is absent."""
        value = self._left.pop(name, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.problem(name, f"must be a quantity, not {show(value)}")
            return None
        try:
            return thousandths(str(value))
        except ValueError as error:
            self.problem(name, str(error))
            return None

    def amounts(self, name: str, *, cpu: str = "cpu") -> Amounts:
        """Quantities by resource; those that no pod can request are noted. `cpu` is how it is called."""
        part = self.below(name)
        total = Amounts()
        for resource in part.names():
            amount = part.amount(resource)
            known = "cpu" if resource == cpu else resource
            if not counted(known):
                self._found.note(part.at(resource), "pods request no such resource")
            elif amount is not None:
                total[known] = amount
        return total

    def names(self) -> list[str]:
        """The fields that are left."""
        return list(self._left)

    def below(self, name: str) -> Fields:
        """The fields of a mapping."""
        return Fields(self._found, self._left.pop(name, None), self.at(name))

    def items(self, name: str) -> Iterator[Fields]:
        """The mappings of a list, each by its place in it."""
        value = self._left.pop(name, None)
        with self._found.problems.collected():
            for number, each in enumerate(read_list(value, self.at(name))):
                yield Fields(self._found, each, join(self.at(name), number))

    def selector(self, name: str) -> dict[str, Any] | None:
        """A label selector as it is written; an empty one selects all, and none nothing."""
        if self._left.get(name) is None:
            return None
        part = self.below(name)
        known = {each: part.take(each) for each in ("matchLabels", "matchExpressions") if each in part}
        part.close()
        return known

    def take(self, name: str) -> Any:
        """A value of any kind; None where it is absent."""
        return self._left.pop(name, None)


class Object(Fields):
    """An object of the Kubernetes API."""

    separator = ": "

    def __init__(self, found: Findings, value: Mapping[str, Any], where: str) -> None:
        kind, metadata = value.get("kind"), value.get("metadata")
        self.kind = kind if isinstance(kind, str) else ""
        names = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = names.get("name"), names.get("namespace")
        self.name = name if isinstance(name, str) and _NAME.fullmatch(name) else ""
        is_known = isinstance(namespace, str) and _NAME.fullmatch(namespace)
        full_name = f"{namespace}/{self.name or '?'}" if is_known else self.name or "?"
        super().__init__(found, value, f"{where}: {self.kind} {full_name}")
        self.drop("apiVersion", "kind")
        if not self.name:
            problem = f"{show(name)} is not a valid name" if name else "is missing"
            self._found.problems.add(f"{self.path}: metadata.name", problem)

    def namespace(self) -> str:
        """The namespace; empty, and a problem, where there is none that is valid."""
        metadata = self._left.get("metadata")
        value = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        if isinstance(value, str) and _NAME.fullmatch(value):
            return value
        problem = f"{show(value)} is not a valid name" if value else "is missing"
        self.problem("metadata.namespace", problem)
        return ""

    def end(self) -> None:
        """What is left is noted, but for what the API server writes."""
        metadata = self.below("metadata")
        metadata.drop("name", "namespace", *WRITTEN_BY_SERVERS)
        annotations = metadata.below("annotations")
        annotations.drop(APPLIED)
        annotations.close("is not copied to the Pool")
        metadata.note("labels", "are not copied to the Pool")
        metadata.close()
        self.drop("status")
        self.close()


def _says_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def shares(amounts: Mapping[str, int]) -> dict[str, Any]:
    """The `minShare` or `maxShare` of a Pool."""
    return {"amounts": {name: quantity(name, amount) for name, amount in amounts.items()}}


def number(value: float) -> float:
    """The same, an integer where it is whole: so it is printed."""
    return int(value) if value == int(value) else value


def quantity(name: str, amount: int) -> str | int:
    """Thousandths as Kubernetes writes them."""
    if amount % 1000:
        return f"{amount}m" if name == "cpu" else -(-amount // 1000)
    whole = amount // 1000
    if whole and (name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")):
        for suffix, unit in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("G", 10**9), ("M", 10**6)):
            if whole % unit == 0:
                return f"{whole // unit}{suffix}"
    return whole
