"""What an explanation is asked of: `pod/NAME`, `node/NAME` or `job/NAME`; and what would be different."""

from __future__ import annotations

from typing import Literal, NamedTuple
from urllib.parse import urlencode

import click

from eclectus.config.what_if import AS_POLICY, WHAT_IF, read_question
from eclectus.explain.what_if import Question
from eclectus.model.errors import QuestionError

Kind = Literal["pod", "node", "job"]
SPELLINGS: dict[Kind, tuple[str, ...]] = {
    "pod": ("pod", "pods", "po"),
    "node": ("node", "nodes", "no"),
    "job": ("job", "jobs", "dagjob", "dagjobs", "dj"),
}
"""Kind -> its spellings, as kubectl has them."""


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
    kind = next((kind for kind, known in SPELLINGS.items() if spelling in known), None)
    if kind is None or not slash or not name or "/" in name:
        raise click.UsageError(f"{text!r} is none of pod/NAME, node/NAME, job/NAME")
    return Target(kind, name, "" if kind == "node" else namespace)


class Asked(NamedTuple):
    """What would be other than it is, and which policy decides; empty: the object is explained as it is."""

    what_if: tuple[str, ...] = ()
    as_policy: str = ""

    @property
    def path(self) -> str:
        """What follows the path of the object on the scheduler's server."""
        if self == NOTHING_ELSE:
            return ""
        policy = [(AS_POLICY, self.as_policy)] if self.as_policy else []
        return f"/what-if?{urlencode([*((WHAT_IF, each) for each in self.what_if), *policy])}"

    def question(self, target: Target) -> Question | None:
        """The same as the engine is asked; None for nothing else. Raises click.UsageError."""
        if self == NOTHING_ELSE:
            return None
        if target.kind != "pod":
            raise click.UsageError(f"--what-if and --as-policy ask about a pod, not about a {target.kind}")
        try:
            return read_question(self.what_if, self.as_policy, target.namespace)
        except QuestionError as error:
            raise click.UsageError(str(error)) from None


NOTHING_ELSE = Asked()
