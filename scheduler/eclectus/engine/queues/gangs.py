"""All gangs: who belongs to them, which pods wait to be placed together, and when they are tried again.

A pod that names a PodGroup waits here until so many pods of its group can be tried as must start together.
Then one of them, the lead, is in a class queue: its turn is the turn of the gang, and all are tried in one
transaction (engine/gangs/). A gang that fails backs off as a pod does. Once enough of its pods have nodes,
all others are ordinary pods.

Members that wait are of no class queue but for the lead, so a gang that is not complete costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from eclectus.engine.agenda import DueTimes, backoff_seconds
from eclectus.engine.queues.gang import Failure, WaitingGang
from eclectus.model.gangs import Gang, GangKey
from eclectus.model.objects import Task

EXPLAIN_SECONDS = (10.0, 300.0)  # between two attempts that are explained: doubled from the first to the last
DOUBLINGS_MOST = 5


class Gangs:
    """The gangs whose PodGroup or whose pods are known."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, WaitingGang] = {}
        self._of: dict[str, WaitingGang] = {}  # uid of a member -> its gang
        self._changed: dict[GangKey, None] = {}
        self._retries = DueTimes[GangKey]()

    @property
    def has_changed(self) -> bool:
        """Whether a gang is to be updated."""
        return bool(self._changed)

    def of(self, uid: str) -> WaitingGang:
        """The gang of a pod that belongs to one."""
        return self._of[uid]

    def next_due(self) -> float:
        """When a gang that backs off is to be tried again, seconds; inf for never."""
        return self._retries.next_due()

    def take_changed(self, now: float) -> list[WaitingGang]:
        """The gangs to be updated, among them those whose back-off is over."""
        if self._retries:
            self._changed.update(dict.fromkeys(self._retries.take_due(now)))
        changed, self._changed = self._changed, {}
        return [self._gangs[key] for key in changed if key in self._gangs]

    def change(self, gang: WaitingGang) -> None:
        """The gang is to be updated."""
        self._changed[gang.key] = None

    # -- PodGroups -----------------------------------------------------------------------------------

    def set(self, gang: Gang) -> None:
        """A PodGroup exists, as given."""
        known = self._get(gang.key)
        if known.min_count != gang.min_count:
            known.min_count = gang.min_count
            known.retry_at = 0.0
            self.change(known)

    def remove(self, key: GangKey) -> None:
        """The PodGroup does not exist any more."""
        known = self._gangs.get(key)
        if known is not None:
            known.min_count = None
            self._drop_if_unused(known)

    # -- members -------------------------------------------------------------------------------------

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
        self._count(known, task)

    def _count(self, gang: WaitingGang, task: Task) -> None:
        before = gang.members.get(task.uid)
        if before != task.profile:
            if before is not None:
                gang.profiles[before] -= 1
            gang.profiles[task.profile] += 1
            gang.members[task.uid] = task.profile
            self.change(gang)
        if task.node and task.uid not in gang.placed:
            self._place(gang, task.uid)

    def assumed(self, uid: str) -> None:
        """The pod is placed: its bind is under way."""
        gang = self._of.get(uid)
        if gang is not None:
            self._place(gang, uid)

    def _place(self, gang: WaitingGang, uid: str) -> None:
        gang.placed.add(uid)
        gang.ordinary.pop(uid, None)
        self.change(gang)

    def bind_refused(self, uid: str) -> None:
        """The pod has no node after all."""
        gang = self._of.get(uid)
        if gang is not None:
            gang.placed.discard(uid)
            self.change(gang)

    def forget(self, uid: str) -> None:
        """The pod has ended, was deleted, or belongs to another gang; no error if it is not known."""
        gang = self._of.get(uid)
        if gang is None:
            return
        self.discard(uid)
        del self._of[uid]
        gang.profiles[gang.members.pop(uid)] -= 1
        gang.placed.discard(uid)
        self._drop_if_unused(gang)

    # -- members that wait ---------------------------------------------------------------------------

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
        """The gang is complete: the pod, if it has one, waits as any other from now on."""
        if task.gang is not None:
            self._of[task.uid].ordinary[task.uid] = None

    # -- attempts ------------------------------------------------------------------------------------

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

    # -- internals -----------------------------------------------------------------------------------

    def _get(self, key: GangKey) -> WaitingGang:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = WaitingGang(key)
        return gang

    def _drop_if_unused(self, gang: WaitingGang) -> None:
        if gang.min_count is None and not gang.members:
            del self._gangs[gang.key]
            self._changed.pop(gang.key, None)
            self._retries.discard(gang.key)
        else:
            self.change(gang)
