"""What is known of volumes: claims and volumes as last seen, and what of them is attached to each node."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import ChangeLog, Rows
from eclectus.cluster.memo import unfile
from eclectus.cluster.storage import Reach, Storage
from eclectus.model.objects import Task
from eclectus.model.volumes import AttachedVolume, AttachLimits, Attachment, Volume

Counts = NDArray[np.int64]
NO_LIMIT = np.iinfo(np.int64).max


class AttachedVolumes:
    """How many volumes of each CSI driver are attached on each row, and how many can be.

    A volume counts once on a row, whatever holds it there: pods that use its claim, or a VolumeAttachment, by
    which it stays attached for a while after the last pod that used it. An attachment names its volume and
    its node; it counts once both are there, and neither need come first.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._holders: dict[AttachedVolume, dict[int, int]] = {}  # -> row -> claims and attachments
        self._attached: dict[str, Counts] = {}  # driver -> volumes on each row
        self._limits: dict[str, Counts] = {}  # driver -> the most volumes on each row
        self._installed: dict[str, set[int]] = {}  # driver -> rows

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._holders = {volume: dict(rows) for volume, rows in self._holders.items()}
        self._attached = {driver: counts.copy() for driver, counts in self._attached.items()}
        self._limits = {driver: counts.copy() for driver, counts in self._limits.items()}
        self._installed = {driver: set(rows) for driver, rows in self._installed.items()}
        return self

    def hold(self, volume: AttachedVolume, row: int) -> None:
        """One more claim that pods there use, or one more attachment, holds the volume on the row."""
        rows = self._holders.setdefault(volume, {})
        rows[row] = rows.get(row, 0) + 1
        if rows[row] == 1:
            self._count(volume.driver, row, 1)

    def release(self, volume: AttachedVolume, row: int) -> None:
        """The opposite of `hold`."""
        rows = self._holders[volume]
        rows[row] -= 1
        if rows[row]:
            return
        del rows[row]
        self._count(volume.driver, row, -1)
        if not rows:
            del self._holders[volume]

    def without(self, row: int, leaving: Iterable[AttachedVolume]) -> Mapping[str, int]:
        """Driver -> volumes that the row would have no more, each of `leaving` with one holder less."""
        holders = Counter(leaving)
        gone = (volume for volume, count in holders.items() if self._holders[volume][row] <= count)
        return Counter(volume.driver for volume in gone)

    def _count(self, driver: str, row: int, volumes: int) -> None:
        if driver not in self._attached:
            self._attached[driver] = np.zeros(self._rows, dtype=np.int64)
        self._attached[driver][row] += volumes

    def set_limits(self, row: int, limits: Iterable[tuple[str, int]]) -> None:
        """The most volumes of each CSI driver on a row; of a driver that is not named any number."""
        for counts in self._limits.values():
            counts[row] = NO_LIMIT
        for driver, count in limits:
            if driver not in self._limits:
                self._limits[driver] = np.full(self._rows, NO_LIMIT)
            self._limits[driver][row] = count

    def set_installed(self, row: int, drivers: Iterable[str]) -> bool:
        """These CSI drivers, and no others, are installed on a row; whether they were others before."""
        before = {driver for driver, rows in self._installed.items() if row in rows}
        for driver in before.symmetric_difference(drivers):
            self._installed.setdefault(driver, set()).symmetric_difference_update((row,))
        return before != set(drivers)

    def are_installed(self, driver: str, rows: Rows) -> NDArray[np.bool_]:
        """Whether this CSI driver is installed on each of the rows."""
        return np.isin(rows, list(self._installed.get(driver, ())))

    def resemble(self, row: int, other: int) -> None:
        """The limits and drivers of a row are those of another one."""
        self.set_installed(row, [driver for driver, rows in self._installed.items() if other in rows])
        for counts in self._limits.values():
            counts[row] = counts[other]

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        more = (0, rows - self._rows)
        self._rows = rows
        self._attached = {driver: np.pad(each, more) for driver, each in self._attached.items()}
        self._limits = {
            driver: np.pad(each, more, constant_values=NO_LIMIT) for driver, each in self._limits.items()
        }

    def free(self, driver: str) -> Counts | None:
        """How many more volumes of this driver can be attached on each row; None where none has a limit."""
        limits = self._limits.get(driver)
        if limits is None:
            return None
        attached = self._attached.get(driver)
        return limits if attached is None else limits - attached


class Attachments:
    """Attachments, by name, node and volume. `rows`: node name -> row; `volumes`: those there are, by name.

    What changes something returns the rows on which the counts may have changed.
    """

    def __init__(
        self, rows: Mapping[str, int], volumes: Mapping[str, Volume], attached: AttachedVolumes
    ) -> None:
        self._rows = rows
        self._volumes = volumes
        self._attached = attached
        self._seen: dict[str, Attachment] = {}
        self._of_node: dict[str, dict[str, None]] = {}  # node -> names
        self._of_volume: dict[str, dict[str, None]] = {}  # volume -> names
        self._counted: dict[str, tuple[AttachedVolume, int]] = {}  # name -> as what, and on which row

    def detach(self, rows: Mapping[str, int], attached: AttachedVolumes) -> Self:
        """Itself, a shallow copy, for copies of rows and counts; it shares nothing that changes."""
        self._rows, self._attached = rows, attached
        self._seen, self._counted = dict(self._seen), dict(self._counted)
        self._of_node = {node: dict(names) for node, names in self._of_node.items()}
        self._of_volume = {volume: dict(names) for volume, names in self._of_volume.items()}
        return self

    def __len__(self) -> int:
        return len(self._seen)

    def put(self, attachment: Attachment) -> set[int]:
        """Add or update an attachment."""
        if self._seen.get(attachment.name) == attachment:
            return set()
        changed = self.drop(attachment.name)
        self._seen[attachment.name] = attachment
        self._of_node.setdefault(attachment.node, {})[attachment.name] = None
        self._of_volume.setdefault(attachment.volume, {})[attachment.name] = None
        return changed | self._recount([attachment.name])

    def drop(self, name: str) -> set[int]:
        """Remove an attachment; no error if it is not known."""
        attachment = self._seen.pop(name, None)
        if attachment is None:
            return set()
        unfile(self._of_node, attachment.node, name)
        unfile(self._of_volume, attachment.volume, name)
        return self._recount([name])

    def node_changed(self, node: str) -> set[int]:
        """The node has got a row, or has none any more."""
        return self._recount(self._of_node.get(node, ()))

    def volume_changed(self, volume: str) -> set[int]:
        """The volume has come or gone, or is another one of the same name."""
        return self._recount(self._of_volume.get(volume, ()))

    def _recount(self, names: Mapping[str, None] | list[str] | tuple[()]) -> set[int]:
        changed = set[int]()
        for name in names:
            before, now = self._counted.get(name), self._counts_as(name)
            if before == now:
                continue
            if before is not None:
                self._attached.release(*before)
                del self._counted[name]
                changed.add(before[1])
            if now is not None:
                self._attached.hold(*now)
                self._counted[name] = now
                changed.add(now[1])
        return changed

    def _counts_as(self, name: str) -> tuple[AttachedVolume, int] | None:
        """As kube-scheduler does: under the driver that attaches it, if its volume is one of CSI."""
        attachment = self._seen.get(name)
        if attachment is None:
            return None
        row, volume = self._rows.get(attachment.node), self._volumes.get(attachment.volume)
        if row is None or volume is None or not volume.driver:
            return None
        return volume.attached_by(attachment.driver), row


class ClaimUsers:
    """Pods on nodes by the claims that they use.

    `attached_as`: key of a claim -> what its volume is attached as; those of claims in use are held in
    `attached`.
    """

    def __init__(
        self, attached_as: Callable[[str], AttachedVolume | None], attached: AttachedVolumes
    ) -> None:
        self._attached_as = attached_as
        self._attached = attached
        self.users: dict[str, dict[int, int]] = {}  # key of a claim -> row -> pods; written here only
        self._held: dict[str, AttachedVolume] = {}  # key of a claim that is used -> as what it is counted
        self._changed: dict[str, None] = {}
        self._contended: dict[str, int] = {}  # key of a claim -> pods that wait whose rules read what uses it

    def detach(self, attached: AttachedVolumes) -> Self:
        """Itself, a shallow copy, for a copy of the volumes; it shares nothing that changes."""
        self._attached = attached
        self.users = {key: dict(rows) for key, rows in self.users.items()}
        self._held, self._changed = dict(self._held), dict(self._changed)
        self._contended = dict(self._contended)
        return self

    def hold(self, row: int, task: Task) -> bool:
        """A pod with claims has come to the row; whether any row may have changed for a pod that waits."""
        for key in claim_keys(task):
            rows = self.users.setdefault(key, {})
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
            rows = self.users[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                if key in self._held:
                    self._attached.release(self._held[key], row)
            if not rows:
                del self.users[key]
                self._held.pop(key, None)
            self._changed[key] = None
        return self._is_contended(task)

    def contend(self, key: str, pods: int) -> None:
        """So many more pods wait (or fewer, if negative) whose rules read what uses this claim."""
        self._contended[key] = self._contended.get(key, 0) + pods
        if not self._contended[key]:
            del self._contended[key]

    def _is_contended(self, task: Task) -> bool:
        return bool(self._contended) and any(key in self._contended for key in claim_keys(task))

    def volume_changed(self, key: str) -> list[int]:
        """The claim may have another volume now; returns the rows on which the counts may have changed."""
        rows = list(self.users.get(key, ()))
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
        return sum(self.users.get(key, {}).values())

    def detached(self, row: int, removed: Collection[Task]) -> tuple[frozenset[str], Mapping[str, int]]:
        """What these pods of the row alone hold there.

        Returns the keys of the claims that no other pod uses on the row, and driver -> volumes that would
        be attached there no longer.
        """
        leaving = Counter(key for pod in removed for key in claim_keys(pod))
        there = {key: self.users.get(key, {}).get(row, 0) for key in leaving}
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


class NodeVolumes:
    """Volumes by row. `rows`: node name -> row.

    Rows on which the counts change are recorded in `usage`, those whose drivers do in `shape`.
    """

    def __init__(
        self, rows: Mapping[str, int], usage: ChangeLog[int], shape: ChangeLog[int], capacity: int
    ) -> None:
        self._rows = rows
        self._usage, self._shape = usage, shape
        self.storage = Storage()
        self.attached = AttachedVolumes(capacity)
        self.claim_users = ClaimUsers(self.storage.attached_as, self.attached)
        self.attachments = Attachments(rows, self.storage.volumes, self.attached)
        # Where unbound claims get volumes, and what finds it out: feasibility/volume_reaches.py.
        self.reach: dict[int, Reach] = {}
        self.matching: object = None
        self._limits: dict[str, AttachLimits] = {}  # by node, whether it has a row or not

    def detach(self, rows: Mapping[str, int], usage: ChangeLog[int], shape: ChangeLog[int]) -> Self:
        """Itself, a shallow copy, for copies of rows and logs; they share nothing that nodes and pods change.

        What is known of claims and volumes is shared: nothing that happens to nodes and pods changes it.
        """
        self._rows, self._usage, self._shape, self._limits = rows, usage, shape, dict(self._limits)
        self.attached = copy(self.attached).detach()
        self.claim_users = copy(self.claim_users).detach(self.attached)
        self.attachments = copy(self.attachments).detach(rows, self.attached)
        self.reach = {number: copy(each) for number, each in self.reach.items()}
        return self

    def set_attach_limits(self, limits: AttachLimits) -> None:
        """What can attach volumes to a node, and how many; it need not have a row yet."""
        if limits.limits or limits.drivers:
            self._limits[limits.node] = limits
        else:
            self._limits.pop(limits.node, None)
        row = self._rows.get(limits.node)
        if row is not None:
            self.attached.set_limits(row, limits.limits)
            self._usage.record(row)
            if self.attached.set_installed(row, limits.drivers):
                self._shape.record(row)

    def set_attachment(self, attachment: Attachment) -> None:
        """Add or update a VolumeAttachment; neither its node nor its volume need be known yet."""
        self._record(self.attachments.put(attachment))

    def drop_attachment(self, name: str) -> None:
        """Remove a VolumeAttachment; no error if it is not known."""
        self._record(self.attachments.drop(name))

    def set_volume(self, volume: Volume) -> None:
        """Add or update a PersistentVolume."""
        self.storage.set_volume(volume)
        self._record(self.attachments.volume_changed(volume.name))

    def drop_volume(self, name: str) -> None:
        """Remove a PersistentVolume; no error if it is not known."""
        self.storage.drop_volume(name)
        self._record(self.attachments.volume_changed(name))

    def claim_changed(self, key: str) -> None:
        """The claim, or what its volume is attached as, may be another one now."""
        self._record(self.claim_users.volume_changed(key))

    def open_row(self, row: int, name: str) -> None:
        """A node that is new; its drivers and its attachments may have been seen before it."""
        limits = self._limits.get(name)
        if limits is not None:
            self.attached.set_limits(row, limits.limits)
            self.attached.set_installed(row, limits.drivers)
        self.attachments.node_changed(name)

    def close_row(self, row: int, name: str) -> None:
        """The node has no row any more."""
        self.attached.set_limits(row, ())
        self.attached.set_installed(row, ())
        self.attachments.node_changed(name)

    def resemble(self, row: int, other: int) -> None:
        """As many volumes fit on a row, of the same drivers, and claims can get theirs, as on another one."""
        self.attached.resemble(row, other)
        for reach in self.reach.values():
            reach.resemble(row, other)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now, the new ones without a node."""
        self.attached.grow_rows(rows)
        for each in self.reach.values():
            each.grow_rows(rows)

    def hold(self, row: int, task: Task) -> None:
        """A pod with claims has come to the row."""
        self.storage.has_news = True
        if self.claim_users.hold(row, task):
            self._usage.record_all()

    def release(self, row: int, task: Task) -> None:
        """A pod with claims has left the row."""
        self.storage.has_news = True
        if self.claim_users.release(row, task):
            self._usage.record_all()

    def _record(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._usage.record(row)
