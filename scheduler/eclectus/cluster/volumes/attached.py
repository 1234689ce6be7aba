"""How many volumes of each CSI driver are attached on each row, and how many can be.

A volume counts once on a row, whatever holds it there: pods that use it, or a VolumeAttachment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.model.volumes import AttachedVolume

Counts = NDArray[np.int64]
NO_LIMIT = np.iinfo(np.int64).max


class AttachedVolumes:
    """Volumes by what they are attached as, and the limits of rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._holders: dict[AttachedVolume, dict[int, int]] = {}  # -> row -> claims and attachments
        self._attached: dict[str, Counts] = {}  # driver -> volumes on each row
        self._limits: dict[str, Counts] = {}  # driver -> the most volumes on each row

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._holders = {volume: dict(rows) for volume, rows in self._holders.items()}
        self._attached = {driver: counts.copy() for driver, counts in self._attached.items()}
        self._limits = {driver: counts.copy() for driver, counts in self._limits.items()}
        return self

    # -- volumes -------------------------------------------------------------------------------------

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

    # -- limits of nodes -----------------------------------------------------------------------------

    def set_limits(self, row: int, limits: Iterable[tuple[str, int]]) -> None:
        """The most volumes of each CSI driver on a row; of a driver that is not named any number."""
        for counts in self._limits.values():
            counts[row] = NO_LIMIT
        for driver, count in limits:
            if driver not in self._limits:
                self._limits[driver] = np.full(self._rows, NO_LIMIT)
            self._limits[driver][row] = count

    def resemble(self, row: int, other: int) -> None:
        """The limits of a row are those of another one."""
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
