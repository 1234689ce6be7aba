"""One gang: the pods that name a PodGroup, and whether they can be placed together. Written by Gangs only."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from eclectus.model.gangs import GangKey
from eclectus.model.objects import Task

MEMBERS_MOST = 1_000  # pods that start together: one step tries them all, in half a second at most
PROFILES_NAMED_MOST = 3


class Failure(NamedTuple):
    """What an attempt to place a gang has come to."""

    placed: int  # pods that had room, each beside those before it
    needed: int  # pods that had to get a node in the attempt
    why: str  # what kept another one from a node
    is_beside_room: bool  # a node had room for that one, and the policy did not take it


def in_turn(task: Task) -> tuple[float, float, str]:
    """Sort key of the pods of a gang: the order in which they are tried, and whose turn is the gang's."""
    return (-task.priority, task.created, task.name)


class WaitingGang:
    """A gang with pods that wait, or a PodGroup whose pods may come."""

    __slots__ = (
        "beside_room_since",
        "explain_at",
        "failure",
        "failures",
        "held",
        "key",
        "lead",
        "members",
        "min_count",
        "ordinary",
        "placed",
        "profiles",
        "retry_at",
    )

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.min_count: int | None = None  # None: there is no such PodGroup
        self.members: dict[str, str] = {}  # uid -> profile, of every pod that names it and has not ended
        self.profiles = Counter[str]()  # of the members
        self.placed: set[str] = set()  # uids of those that have a node, as far as is known
        self.held: dict[str, Task] = {}  # uid -> task, of those that wait to be placed together…
        self.lead: Task | None = None  # …and the one of them in a class queue, whose turn is the gang's
        self.ordinary: dict[str, None] = {}  # uids of those that wait as pods without a gang
        self.failures = 0  # attempts in succession
        self.failure: Failure | None = None  # of the last attempt that was explained
        self.explain_at = 0.0  # when an attempt that fails is explained again, seconds
        self.retry_at = 0.0  # seconds
        self.beside_room_since: float | None = None  # since when attempts fail despite room, seconds

    @property
    def is_complete(self) -> bool:
        """Whether the pods that must start together have nodes, so that the others are ordinary pods."""
        return self.min_count is not None and (self.min_count <= 1 or len(self.placed) >= self.min_count)

    @property
    def needed(self) -> int:
        """How many pods must still get a node together."""
        return max((self.min_count or 0) - len(self.placed), 0)

    @property
    def asks_too_much(self) -> bool:
        """Whether more pods would have to start together than are placed in one step."""
        return (self.min_count or 0) > MEMBERS_MOST

    @property
    def problem(self) -> str:
        """Why its pods cannot be tried, whatever room there is; empty if they can."""
        if self.min_count is None:
            return f"waiting for {self.key}, which does not exist"
        profiles = sorted(profile for profile, pods in self.profiles.items() if pods)
        if len(profiles) > 1:
            named = ", ".join(profiles[:PROFILES_NAMED_MOST])
            return f"the pods of {self.key} ask for different schedulers: {named}"
        if self.asks_too_much:
            return f"{self.key} has minimum {self.min_count}; at most {MEMBERS_MOST} pods can start together"
        return self._shortage(self.min_count)

    def _shortage(self, minimum: int) -> str:
        if len(self.members) < minimum:
            return f"{self.key} has {len(self.members)} of the {minimum} pods that start together"
        not_ready = len(self.members) - len(self.placed) - len(self.held)
        if len(self.held) >= self.needed:
            return ""
        verb = "is" if not_ready == 1 else "are"
        held_up = f"{not_ready} of them {verb} gated, being deleted or backing off"
        return f"{self.key} has {len(self.members)} pods, of which {minimum} start together, but {held_up}"
