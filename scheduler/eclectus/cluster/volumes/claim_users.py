"""Which claims the pods on each row use; the volumes of those claims are attached there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from eclectus.cluster.volumes.attached import AttachedVolumes
from eclectus.model.objects import Task
from eclectus.model.volumes import AttachedVolume


class ClaimUsers:
    """Pods on nodes by the claims that they use.

    `attached_as`: key of a claim -> what its volume is attached as; those of claims in use are held in
    `attached`.
    """

    def __init__(
        self, attached_as: Callable[[str], AttachedVolume | None], attached: AttachedVolumes
    ) -> None:
        self._attached_as, self._attached = attached_as, attached
        self._users: dict[str, dict[int, int]] = {}  # key of a claim -> row -> pods
        self._held: dict[str, AttachedVolume] = {}  # key of a claim that is used -> as what it is counted
        self._changed: dict[str, None] = {}
        self._contended: dict[str, int] = {}  # key of a claim -> pods that wait whose rules read who uses it

    def detach(self, attached: AttachedVolumes) -> Self:
        """Itself, a shallow copy, for a copy of the volumes; it shares nothing that changes."""
        self._attached = attached
        self._users = {key: dict(rows) for key, rows in self._users.items()}
        self._held, self._changed = dict(self._held), dict(self._changed)
        self._contended = dict(self._contended)
        return self

    # -- pods and their claims -----------------------------------------------------------------------

    def hold(self, row: int, task: Task) -> bool:
        """A pod with claims has come to the row; whether any row may have changed for a pod that waits."""
        for key in claim_keys(task):
            rows = self._users.setdefault(key, {})
            volume = self._held.get(key) if rows else self._attached_as(key)
            if volume is not None and row not in rows:
                self._held[key] = volume
                self._attached.hold(volume, row)
            rows[row] = rows.get(row, 0) + 1
            self._changed[key] = None
        return self._is_contended(task)

    def release(self, row: int, task: Task) -> bool:
        """A pod with claims has left the row; returns the same as `hold`."""
        for key in claim_keys(task):
            rows = self._users[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                if key in self._held:
                    self._attached.release(self._held[key], row)
            if not rows:
                del self._users[key]
                self._held.pop(key, None)
            self._changed[key] = None
        return self._is_contended(task)

    def contend(self, key: str, pods: int) -> None:
        """So many more pods wait (or fewer, if negative) whose rules read who uses this claim."""
        self._contended[key] = self._contended.get(key, 0) + pods
        if not self._contended[key]:
            del self._contended[key]

    def _is_contended(self, task: Task) -> bool:
        return bool(self._contended) and any(key in self._contended for key in claim_keys(task))

    def volume_changed(self, key: str) -> list[int]:
        """The claim may have another volume now; returns the rows on which the counts may have changed."""
        rows = list(self._users.get(key, ()))
        before, now = self._held.get(key), self._attached_as(key) if rows else None
        if before == now:
            return []
        for row in rows:
            if before is not None:
                self._attached.release(before, row)
            if now is not None:
                self._attached.hold(now, row)
        self._held.pop(key, None)
        if now is not None:
            self._held[key] = now
        return rows

    def pods(self, key: str) -> int:
        """How many pods on nodes use the claim."""
        return sum(self._users.get(key, {}).values())

    def pods_by_row(self, key: str) -> Mapping[int, int]:
        """How many pods use the claim, by row."""
        return self._users.get(key, {})

    def detached(self, row: int, removed: Collection[Task]) -> tuple[frozenset[str], Mapping[str, int]]:
        """What these pods of the row alone hold there.

        Returns the keys of the claims that no other pod uses on the row, and driver -> volumes that would
        be attached there no longer.
        """
        leaving = Counter(key for pod in removed for key in claim_keys(pod))
        there = {key: self.pods_by_row(key).get(row, 0) for key in leaving}
        keys = frozenset(key for key, pods in leaving.items() if 0 < there[key] <= pods)
        volumes = (self._held[key] for key in keys if key in self._held)
        return keys, self._attached.without(row, volumes)

    def take_changed(self) -> dict[str, None]:
        """The keys of claims that more or fewer pods use than at the last call."""
        changed, self._changed = self._changed, {}
        return changed


def claim_keys(task: Task) -> Sequence[str]:
    """The keys of the claims of a pod, each once, in the order of its volumes."""
    return list(dict.fromkeys(f"{task.namespace}/{each.name}" for each in task.claims))
