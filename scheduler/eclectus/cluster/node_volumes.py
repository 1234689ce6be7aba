"""What is known of volumes: claims and volumes as last seen, and what of them is attached to each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Self

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.storage import Reach, Storage
from eclectus.cluster.volume_users import AttachedVolumes, Attachments, ClaimUsers
from eclectus.model.objects import Task
from eclectus.model.volumes import AttachLimits, Attachment, Volume


class NodeVolumes:
    """Volumes by row. `rows`: node name -> row; rows on which the counts change are recorded in `usage`."""

    def __init__(self, rows: Mapping[str, int], usage: ChangeLog[int], capacity: int) -> None:
        self._rows, self._usage = rows, usage
        self.storage = Storage()
        self.attached = AttachedVolumes(capacity)
        self.claim_users = ClaimUsers(self.storage.attached_as, self.attached)
        self.attachments = Attachments(rows, self.storage.volumes, self.attached)
        self.reach: dict[int, Reach] = {}  # where unbound claims can get volumes; feasibility/volumes/
        self._limits: dict[str, AttachLimits] = {}  # by node, whether it has a row or not

    def detach(self, rows: Mapping[str, int], usage: ChangeLog[int]) -> Self:
        """Itself, a shallow copy, for copies of rows and log; they share nothing that nodes and pods change.

        What is known of claims and volumes is shared: nothing that happens to nodes and pods changes it.
        """
        self._rows, self._usage, self._limits = rows, usage, dict(self._limits)
        self.attached = copy(self.attached).detach()
        self.claim_users = copy(self.claim_users).detach(self.attached)
        self.attachments = copy(self.attachments).detach(rows, self.attached)
        self.reach = {number: copy(each) for number, each in self.reach.items()}
        return self

    # -- what is seen --------------------------------------------------------------------------------

    def set_attach_limits(self, limits: AttachLimits) -> None:
        """How many volumes can be attached to a node; it need not have a row yet."""
        if limits.limits:
            self._limits[limits.node] = limits
        else:
            self._limits.pop(limits.node, None)
        row = self._rows.get(limits.node)
        if row is not None:
            self.attached.set_limits(row, limits.limits)
            self._usage.record(row)

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

    # -- rows ----------------------------------------------------------------------------------------

    def open_row(self, row: int, name: str) -> None:
        """A node that is new; its limits and its attachments may have been seen before it."""
        limits = self._limits.get(name)
        if limits is not None:
            self.attached.set_limits(row, limits.limits)
        self.attachments.node_changed(name)

    def close_row(self, row: int, name: str) -> None:
        """The node has no row any more."""
        self.attached.set_limits(row, ())
        self.attachments.node_changed(name)

    def resemble(self, row: int, other: int) -> None:
        """As many volumes fit on a row, and claims can get theirs there, as on another one."""
        self.attached.resemble(row, other)
        for reach in self.reach.values():
            reach.resemble(row, other)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now, the new ones without a node."""
        self.attached.grow_rows(rows)
        for each in self.reach.values():
            each.grow_rows(rows)

    # -- pods ----------------------------------------------------------------------------------------

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
