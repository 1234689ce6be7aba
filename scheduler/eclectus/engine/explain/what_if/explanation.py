"""What would be different: the answer to a question about a changed state, encoded as JSON.

As in model/explanation.py, other pods are named by `OtherPod` alone.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eclectus.model.explanation import PodExplanation

Answered = Literal["places", "defers", "refuses", "noRoom", "cannotSay"]
"""places: on `node`; defers: it lets the pod wait, for `node` if that is not empty; refuses: although nodes
have room; noRoom: no node has any, so it is not asked; cannotSay: `reason` says why."""


class Candidate(Struct, frozen=True, rename="camel"):
    """A node that a policy would take, or would take if those before it were not there."""

    node: str
    cost: float | None = None  # by the policy's own measure, the less the better; None: it has none
    draws: int = 0  # of `PolicyAnswer.draws`, how many chose this node


class PolicyAnswer(Struct, frozen=True, rename="camel"):
    """Where a Place policy would put a pod, were it the only one that waits."""

    policy: str
    answered: Answered
    node: str = ""
    reason: str = ""  # a sentence; empty where `answered` says all
    candidates: tuple[Candidate, ...] = ()  # the best one first; some of them
    draws: int = 0  # how often it was asked, each time with another seed


class RuleDifference(Struct, frozen=True, rename="camel"):
    """A rule that refuses more nodes than before, or fewer, of those that all rules before it leave."""

    rule: str  # as in FilterStep
    refused_before: int  # nodes
    refused: int


class WhatIfExplanation(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer: what differs, and the pod explained as it would be."""

    changes: tuple[str, ...]  # as they were asked for
    summary: str  # one sentence, for people
    with_room_before: int  # nodes that have room for the pod as it is
    with_room: int  # nodes that would have room
    rules: tuple[RuleDifference, ...]
    placement: PolicyAnswer
    pod: PodExplanation  # without what concerns its place in a queue, which nothing changes
