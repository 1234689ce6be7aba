"""VolumeAttachments as last seen: a volume stays attached for a while after the last pod that used it.

An attachment names its volume and its node; it counts once both are there, and neither need come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from eclectus.cluster.volumes.attached import AttachedVolumes
from eclectus.model.volumes import AttachedVolume, Attachment, Volume


class Attachments:
    """Attachments, by name, node and volume. `rows`: node name -> row; `volumes`: those there are, by name.

    What changes something returns the rows on which the counts may have changed.
    """

    def __init__(
        self, rows: Mapping[str, int], volumes: Mapping[str, Volume], attached: AttachedVolumes
    ) -> None:
        self._rows, self._volumes, self._attached = rows, volumes, attached
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
        _remove(self._of_node, attachment.node, name)
        _remove(self._of_volume, attachment.volume, name)
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


def _remove(index: dict[str, dict[str, None]], key: str, name: str) -> None:
    del index[key][name]
    if not index[key]:
        del index[key]
