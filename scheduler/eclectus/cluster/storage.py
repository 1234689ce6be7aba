"""PersistentVolumeClaims, volumes, StorageClasses and free storage as last seen, and what has changed.

Decisions of this process come before what the API server shows: a volume that is chosen for a pod is taken
until the watch shows it reserved, or until the pod's bind is refused.

Where the unbound claims of a pod can get volumes is kept for all pods whose claims ask for the same. `now`
changes with each volume that is chosen. Policies that plan ahead must not see nodes become infeasible
within a scheduling cycle, so `known` takes over `now` only between two cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.memo import unfile
from eclectus.model.objects import UnboundClaim
from eclectus.model.volumes import AttachedVolume, FreeStorage, StorageClass, Volume, VolumeClaim


class Decision(NamedTuple):
    """How an unbound claim is to get its volume: for a pod whose bind to `node` is under way."""

    node: str
    volume: str  # empty: one that is provisioned for the node


class Moved(NamedTuple):
    """What may decide anew where unbound claims get volumes, by name; claims by key."""

    classes: set[str]  # their free volumes, their free storage, or they themselves
    volumes: set[str]
    claims: set[str]  # what was decided for them


class Storage:
    """What there is."""

    def __init__(self) -> None:
        self._claims: dict[str, VolumeClaim] = {}
        self._volumes: dict[str, Volume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._available: dict[str, dict[str, Volume]] = {}  # StorageClass -> name -> free volumes of it
        self._reserved: dict[str, dict[str, None]] = {}  # key of a claim -> names of volumes reserved for it
        self._free: dict[str, FreeStorage] = {}
        self._free_of: dict[str, dict[str, FreeStorage]] = {}  # StorageClass -> key -> free storage of it
        self._publishing: set[str] = set()  # CSI drivers that publish how much storage is free
        self.must_be_installed: set[str] = set()  # CSI drivers without which a node gets no pod with volumes
        self._decisions: dict[str, Decision] = {}
        self._taken: set[str] = set()  # names of volumes that are chosen and not yet seen as reserved
        self._changed: dict[str, None] = {}
        self._changed_classes: set[str] = set()
        self._moved = Moved(set(), set(), set())
        # Whether something of claims, of volumes or of their users has changed since `take_changed`.
        self.has_news = False
        self.classes: Mapping[str, StorageClass] = self._classes
        self.claims: Mapping[str, VolumeClaim] = self._claims  # by namespace/name
        self.volumes: Mapping[str, Volume] = self._volumes
        self.decisions: Mapping[str, Decision] = self._decisions  # by the claim's key

    def set_claim(self, claim: VolumeClaim) -> None:
        """Add or update a claim."""
        if self._claims.get(claim.key) != claim:
            self._claims[claim.key] = claim
            self._claim_changed(claim.key)

    def drop_claim(self, key: str) -> None:
        """Remove a claim; no error if it is not known."""
        if self._claims.pop(key, None) is not None:
            self._claim_changed(key)

    def set_volume(self, volume: Volume) -> None:
        """Add or update a volume."""
        if volume.claim:
            self._taken.discard(volume.name)
        before = self._volumes.get(volume.name)
        if before != volume:
            if before is not None:
                self._forget_volume(before)
            self._volumes[volume.name] = volume
            if volume.claim:
                self._reserved.setdefault(volume.claim, {})[volume.name] = None
            elif volume.is_available and not volume.deleting:
                self._available.setdefault(volume.storage_class, {})[volume.name] = volume
            self._volume_changed(volume)

    def drop_volume(self, name: str) -> None:
        """Remove a volume; no error if it is not known."""
        self._taken.discard(name)
        volume = self._volumes.pop(name, None)
        if volume is not None:
            self._forget_volume(volume)

    def set_class(self, storage_class: StorageClass) -> None:
        """Add or update a StorageClass."""
        if self._classes.get(storage_class.name) != storage_class:
            self._classes[storage_class.name] = storage_class
            self._class_changed(storage_class.name)

    def drop_class(self, name: str) -> None:
        """Remove a StorageClass; no error if it is not known."""
        if self._classes.pop(name, None) is not None:
            self._class_changed(name)

    def set_free(self, free: FreeStorage) -> None:
        """Add or update how much storage is free."""
        if self._free.get(free.key) != free:
            self.drop_free(free.key)
            self._free[free.key] = free
            self._free_of.setdefault(free.storage_class, {})[free.key] = free
            self._classes_moved([free.storage_class])

    def drop_free(self, key: str) -> None:
        """Nothing is said of free storage by this object any more; no error if it is not known."""
        free = self._free.pop(key, None)
        if free is not None:
            unfile(self._free_of, free.storage_class, key)
            self._classes_moved([free.storage_class])

    def set_driver(self, name: str, publishes_capacity: bool, must_be_installed: bool) -> None:
        """Whether this CSI driver publishes how much storage is free, and whether nodes must have it.

        One that is not known does not, and need not be installed.
        """
        if (name in self._publishing) != publishes_capacity:
            self._publishing ^= {name}
            self._classes_moved(each.name for each in self._classes.values() if each.provisioner == name)
        if (name in self.must_be_installed) != must_be_installed:
            self.must_be_installed ^= {name}
            for key in self._claims:
                self._claim_changed(key)

    def _forget_volume(self, volume: Volume) -> None:
        self._available.get(volume.storage_class, {}).pop(volume.name, None)
        if volume.claim in self._reserved:
            unfile(self._reserved, volume.claim, volume.name)
        self._volume_changed(volume)

    def _volume_changed(self, volume: Volume) -> None:
        self._classes_moved([volume.storage_class])
        self._moved.volumes.add(volume.name)
        if volume.claim:
            self._claim_changed(volume.claim)

    def _class_changed(self, name: str) -> None:
        self._classes_moved([name])
        self._changed_classes.add(name)

    def _claim_changed(self, key: str) -> None:
        self._changed[key] = None
        self.has_news = True

    def _classes_moved(self, names: Iterable[str]) -> None:
        self._moved.classes.update(names)
        self.has_news = True

    def decide(self, key: str, decision: Decision) -> None:
        """A pod is about to be bound, and this claim with it."""
        self._decisions[key] = decision
        if decision.volume:
            self._taken.add(decision.volume)
        self._decision_changed(key, decision)

    def end_decision(self, key: str) -> None:
        """No bind is under way with this claim any more.

        If the claim has got the volume, that stays taken until the watch shows that it is reserved.
        """
        decision, claim = self._decisions.pop(key), self._claims.get(key)
        if claim is None or claim.volume != decision.volume:
            self._taken.discard(decision.volume)
        self._claim_changed(key)
        self._decision_changed(key, decision)

    def _decision_changed(self, key: str, decision: Decision) -> None:
        self._moved.claims.add(key)
        self.has_news = True
        volume = self._volumes.get(decision.volume)
        if volume is not None:
            self._classes_moved([volume.storage_class])
            self._moved.volumes.add(volume.name)

    def available(self, storage_class: str) -> list[Volume]:
        """The volumes of a StorageClass that no claim has, in the order in which they were seen."""
        free = self._available.get(storage_class, {})
        return [volume for name, volume in free.items() if name not in self._taken]

    def available_volume(self, storage_class: str, name: str) -> Volume | None:
        """The volume of this name, if it is one of the StorageClass that no claim has."""
        return None if name in self._taken else self._available.get(storage_class, {}).get(name)

    def free_storage(self, storage_class: StorageClass) -> Iterable[FreeStorage] | None:
        """What the class's driver has published of free storage; None if it publishes nothing of the kind."""
        if storage_class.provisioner not in self._publishing:
            return None
        return self._free_of.get(storage_class.name, {}).values()

    def reserved_for(self, claim: VolumeClaim) -> list[Volume]:
        """The volumes that are reserved for a claim."""
        names = self._reserved.get(claim.key, ())
        return [each for name in names if (each := self._volumes[name]).is_reserved_for(claim)]

    def attached_as(self, key: str) -> AttachedVolume | None:
        """What the claim's volume is attached as; None: by no CSI driver, or by none that is known."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        volume = self._volumes.get(claim.volume)
        if volume is not None:
            return volume.attached_by(volume.driver) if volume.driver else None
        storage_class = self._classes.get(claim.storage_class)
        if storage_class is None or not storage_class.provisions:
            return None
        return AttachedVolume(storage_class.provisioner, claim=key)

    def take_changed(self) -> tuple[dict[str, None], set[str]]:
        """Keys of claims of which something has changed since the last call, and names of StorageClasses."""
        changed, classes = self._changed, self._changed_classes
        self._changed, self._changed_classes, self.has_news = {}, set(), False
        return changed, classes

    def take_moved(self) -> Moved:
        """What has changed since the last call."""
        moved, self._moved = self._moved, Moved(set(), set(), set())
        return moved


Mask = NDArray[np.bool_]


class Places(NamedTuple):
    """Masks over rows, shape [capacity]."""

    gets: Mask  # all claims can get volumes
    is_short: Mask  # the first claim that cannot would get one if more storage were free

    def grown(self, rows: int) -> Places:
        """The same for `rows` rows; no volume is known for the new ones."""
        more = (0, rows - len(self.gets))
        return Places(np.pad(self.gets, more), np.pad(self.is_short, more))

    def resembling(self, row: int, other: int) -> Places:
        """The same, but for a row on which everything is as on another one."""
        gets, is_short = self.gets.copy(), self.is_short.copy()
        gets[row], is_short[row] = gets[other], is_short[other]
        return Places(gets, is_short)


class Reach:
    """`now`: as the volumes are now. `known`: as it was after the events of the last step.

    `version`: another number when the volumes or the storage that the claims can get may be others.
    """

    __slots__ = ("claims", "known", "now", "version")

    def __init__(self, claims: tuple[UnboundClaim, ...], now: Places) -> None:
        self.claims = claims
        self.now = now
        self.known = now
        self.version = 0

    def resemble(self, row: int, other: int) -> None:
        """The claims can get volumes on a row where they can on another one."""
        self.now, self.known = self.now.resembling(row, other), self.known.resembling(row, other)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        self.now, self.known = self.now.grown(rows), self.known.grown(rows)
