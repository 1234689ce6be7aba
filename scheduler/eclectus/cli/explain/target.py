"""What an explanation is asked of: `pod/NAME`, `node/NAME` or `job/NAME`."""

from __future__ import annotations

from typing import Literal, NamedTuple

import click

Kind = Literal["pod", "node", "job"]
KINDS: dict[str, Kind] = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "node": "node",
    "nodes": "node",
    "no": "node",
    "job": "job",
    "jobs": "job",
    "dagjob": "job",
    "dagjobs": "job",
    "dj": "job",
}
"""Spelling, as kubectl has it -> kind."""


class Target(NamedTuple):
    """One object; a node has no namespace."""

    kind: Kind
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"


def target_of(text: str, namespace: str) -> Target:
    """The target that a user has spelled. Raises click.UsageError."""
    spelling, slash, name = text.partition("/")
    kind = KINDS.get(spelling)
    if kind is None or not slash or not name or "/" in name:
        raise click.UsageError(f"{text!r} is none of pod/NAME, node/NAME, job/NAME")
    return Target(kind, name, "" if kind == "node" else namespace)
