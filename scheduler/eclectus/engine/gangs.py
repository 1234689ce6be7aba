"""All gangs: which pods belong to them, which of these wait together, and when they are tried again.

A pod that names a PodGroup waits here until so many pods of its group can be tried as must start together.
Then one of them, the lead, is in a class queue: its turn is the turn of the gang, and all are tried in one
transaction (gang_attempts.py). A gang that fails backs off as a pod does. Once enough of its pods have
nodes, all others are ordinary pods.

Members that wait are of no class queue but for the lead, so a gang that is not complete costs nothing. While
room is made for a gang that its pools claim (relief.py), it has no turn: it starts there when that is free.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from eclectus.cluster.due_times import DueTimes
from eclectus.engine.agenda import backoff_seconds
from eclectus.model.objects import Gang, GangKey, Task

MEMBERS_MOST = 1_000  # pods that start together: one step tries them all, in half a second at most
PROFILES_NAMED_MOST = 3


class Failure(NamedTuple):
    """What an attempt to place a gang has come to."""

    placed: int  # pods that had room, each beside those before it
    needed: int  # pods that had to get a node in the attempt
    why: str  # what kept another one from a node
    is_beside_room: bool  # a node had room for that one, and the policy did not take it
    is_limited: bool = False  # a limit of its pool kept it from starting


def in_turn(task: Task) -> tuple[float, float, str]:
    """Sort key of the pods of a gang: the order in which they are tried, and whose turn is the gang's."""
    return (-task.priority, task.created, task.name)


class WaitingGang(Struct, eq=False):
    """A gang with pods that wait, or a PodGroup whose pods may come."""

    key: GangKey
    min_count: int | None = None  # None: there is no such PodGroup
    # uid -> profile, of every pod that names it and has not ended; and how many of these have each profile.
    members: dict[str, str] = field(default_factory=dict)
    profiles: Counter[str] = field(default_factory=Counter)
    placed: set[str] = field(default_factory=set)  # uids of those that have a node, as far as is known
    ended: set[str] = field(default_factory=set)  # of those that had a node and have ended, until deleted
    held: dict[str, Task] = field(default_factory=dict)  # by uid, those that wait to be placed together
    lead: Task | None = None  # the one of them in a class queue, whose turn is the gang's
    ordinary: dict[str, None] = field(default_factory=dict)  # uids of those that wait as pods without a gang
    failures: int = 0  # attempts in succession
    failure: Failure | None = None  # of the last attempt that was explained
    explain_at: float = 0.0  # when an attempt that fails is explained again, seconds
    retry_at: float = 0.0  # seconds
    beside_room_since: float | None = None  # since when attempts fail despite room, seconds
    is_new: bool = True  # whether this process has never seen so many of its pods that they can be tried
    has_room: bool = False  # whether room is held for those that start together, until others have gone
    has_started: bool = False  # whether so many have, or had, a node as start together

    @property
    def started(self) -> int:
        """How many pods have a node, or have had one since enough of them started together.

        A pod that has ended had started with the others: the one that replaces it, or another, need not wait
        for it. Once none runs, the next pods of the gang start together again. If fewer had started than must
        start together, because the scheduler was killed between their binds, those that have ended make up
        for the members that are missing: the others would wait for ever.
        """
        if self.placed:
            return len(self.placed) + len(self.ended)
        lacking = (self.min_count or 0) - len(self.members)
        return 0 if self.has_started else max(min(len(self.ended), lacking), 0)

    @property
    def is_complete(self) -> bool:
        """Whether the pods that must start together have started, so that the others are ordinary pods."""
        return self.min_count is not None and (self.min_count <= 1 or self.started >= self.min_count)

    @property
    def needed(self) -> int:
        """How many pods must still get a node together."""
        return max((self.min_count or 0) - self.started, 0)

    @property
    def asks_too_much(self) -> bool:
        """Whether more pods would have to start together than are placed in one step."""
        return (self.min_count or 0) > MEMBERS_MOST

    @property
    def problem(self) -> str:
        """Why its pods cannot be tried, whatever room there is; empty if they can."""
        minimum = self.min_count
        if minimum is None:
            return f"waiting for {self.key}, which does not exist"
        profiles = sorted(profile for profile, pods in self.profiles.items() if pods)
        if len(profiles) > 1:
            named = ", ".join(profiles[:PROFILES_NAMED_MOST])
            return f"the pods of {self.key} ask for different schedulers: {named}"
        if self.asks_too_much:
            return f"{self.key} has minimum {minimum}; at most {MEMBERS_MOST} pods can start together"
        there = len(self.members) + self.started - len(self.placed)
        if there < minimum:
            return f"{self.key} has {there} of the {minimum} pods that start together"
        if len(self.held) >= self.needed:
            return ""
        not_ready = len(self.members) - len(self.placed) - len(self.held)
        verb = "is" if not_ready == 1 else "are"
        held_up = f"{not_ready} of them {verb} gated, being deleted or backing off"
        return f"{self.key} has {len(self.members)} pods, of which {minimum} start together, but {held_up}"


EXPLAIN_SECONDS = (10.0, 300.0)  # between two attempts that are explained: doubled from the first to the last
DOUBLINGS_MOST = 5


class Gangs:
    """The gangs whose PodGroup or whose pods are known."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, WaitingGang] = {}
        self._of: dict[str, WaitingGang] = {}  # uid of a member -> its gang
        self._ended: dict[str, WaitingGang] = {}  # uid of a pod that has ended -> its gang
        self._changed: dict[GangKey, None] = {}
        self._retries = DueTimes[GangKey]()
        self.pods: Mapping[str, WaitingGang] = self._of  # by uid
        self.ended: Mapping[str, WaitingGang] = self._ended  # likewise
        self.changed: Mapping[GangKey, None] = self._changed  # gangs to be updated
        self.retries: Mapping[GangKey, object] = self._retries.keys  # gangs that back off
        self.next_due = self._retries.next_due  # when a gang that backs off is to be tried again, seconds

    def take_changed(self, now: float) -> list[WaitingGang]:
        """The gangs to be updated, among them those whose back-off is over."""
        if self._retries.keys:
            self._changed.update(dict.fromkeys(self._retries.take_due(now)))
        changed = [self._gangs[key] for key in self._changed if key in self._gangs]
        self._changed.clear()
        return changed

    def change(self, gang: WaitingGang) -> None:
        """The gang is to be updated."""
        self._changed[gang.key] = None

    def set(self, gang: Gang) -> None:
        """A PodGroup exists, as given."""
        known = self._get(gang.key)
        if known.min_count != gang.min_count:
            known.min_count = gang.min_count
            known.retry_at = 0.0
            self._reckon(known)
            self.change(known)

    def remove(self, key: GangKey) -> None:
        """The PodGroup does not exist any more."""
        known = self._gangs.get(key)
        if known is not None:
            known.min_count = None
            self._drop_if_unused(known)

    def see(self, task: Task) -> None:
        """A pod that has not ended was seen: pending or bound, of any scheduler."""
        uid = task.uid
        known = self._of.get(uid)
        if known is not None and known.key != task.gang:
            self.forget(uid)
            known = None
        if task.gang is None:
            return
        if known is None:
            known = self._of[uid] = self._get(task.gang)
            self.change(known)
        before = known.members.get(uid)
        if before != task.profile:
            if before is not None:
                known.profiles[before] -= 1
            known.profiles[task.profile] += 1
            known.members[uid] = task.profile
            self.change(known)
        if task.node and uid not in known.placed:
            self.assumed(uid)

    def assumed(self, uid: str) -> None:
        """The pod is placed: its bind is under way, or is done."""
        gang = self._of.get(uid)
        if gang is not None:
            if not gang.placed:
                gang.has_started = False  # the next ones
            gang.placed.add(uid)
            gang.ordinary.pop(uid, None)
            self._reckon(gang)
            self.change(gang)

    def bind_refused(self, uid: str) -> None:
        """The pod has no node after all."""
        gang = self._of.get(uid)
        if gang is not None:
            gang.placed.discard(uid)
            self._reckon(gang, refused=True)
            self.change(gang)

    def forget(self, uid: str) -> None:
        """The pod has ended, was deleted, or belongs to another gang; no error if it is not known."""
        if self._ended and (gang := self._ended.pop(uid, None)) is not None:
            gang.ended.discard(uid)
            self._drop_if_unused(gang)
        gang = self._of.get(uid)
        if gang is None:
            return
        self.discard(uid)
        del self._of[uid]
        gang.profiles[gang.members.pop(uid)] -= 1
        gang.placed.discard(uid)
        if not gang.placed and gang.has_started:
            for ended in gang.ended:
                del self._ended[ended]
            gang.ended.clear()
        self._drop_if_unused(gang)

    def end(self, task: Task) -> None:
        """A pod that had a node has ended and is forgotten; its object exists still."""
        if task.gang is None or not task.node:
            return
        gang = self._get(task.gang)
        if gang.placed or not gang.has_started:
            self._ended[task.uid] = gang
            gang.ended.add(task.uid)
            self._reckon(gang)
        self.change(gang)

    def find(self, key: GangKey) -> WaitingGang | None:
        """The gang of this PodGroup; None if neither that nor a pod of it is known."""
        return self._gangs.get(key)

    def keeps(self, task: Task) -> bool:
        """Whether a pod that is to be queued waits here."""
        return task.gang is not None and not self._of[task.uid].is_complete

    def hold(self, task: Task) -> None:
        """The pod, of a gang that is not complete, waits here."""
        gang = self._of[task.uid]
        gang.held[task.uid] = task
        gang.ordinary.pop(task.uid, None)
        self.change(gang)

    def discard(self, uid: str) -> None:
        """The pod does not wait here; no error if it did not.

        The caller takes a lead out of its class queue.
        """
        gang = self._of.get(uid)
        if gang is None:
            return
        gang.ordinary.pop(uid, None)
        if gang.held.pop(uid, None) is not None:
            if gang.lead is not None and gang.lead.uid == uid:
                gang.lead = None
            self.change(gang)

    def let_go(self, task: Task) -> None:
        """The pod's gang is complete: the pod waits as any other from now on."""
        self._of[task.uid].ordinary[task.uid] = None

    def succeeded(self, gang: WaitingGang, placed: Iterable[Task]) -> None:
        """These pods of the gang are placed, together."""
        for task in placed:
            self.discard(task.uid)
        gang.failures, gang.failure, gang.beside_room_since, gang.explain_at = 0, None, None, 0.0

    def failed(self, gang: WaitingGang, now: float, *, is_beside_room: bool) -> None:
        """An attempt has failed, perhaps although there was room. The gang backs off."""
        gang.failures += 1
        gang.retry_at = now + backoff_seconds(gang.failures)
        if not is_beside_room:
            gang.beside_room_since = None
        elif gang.beside_room_since is None:
            gang.beside_room_since = now
        self._retries.set(gang.key, gang.retry_at)

    def explained(self, gang: WaitingGang, failure: Failure, now: float) -> None:
        """What the attempt that has just failed came to."""
        least, most = EXPLAIN_SECONDS
        gang.failure = failure
        gang.explain_at = now + min(least * 2 ** min(gang.failures, DOUBLINGS_MOST), most)

    def _get(self, key: GangKey) -> WaitingGang:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = WaitingGang(key)
        return gang

    def _reckon(self, gang: WaitingGang, *, refused: bool = False) -> None:
        """Note whether enough have started; that some of them are deleted later changes nothing."""
        enough = gang.min_count is not None and len(gang.placed) + len(gang.ended) >= gang.min_count
        gang.has_started = enough or (gang.has_started and not refused)

    def _drop_if_unused(self, gang: WaitingGang) -> None:
        if gang.min_count is None and not gang.members and not gang.ended:
            del self._gangs[gang.key]
            self._changed.pop(gang.key, None)
            self._retries.discard(gang.key)
        else:
            self.change(gang)
