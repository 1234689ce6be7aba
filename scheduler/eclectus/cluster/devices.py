"""Devices that tasks may share: how much of each is free, and which of them a task takes.

A node's amount of `DEVICE_MILLI` comes in devices of 1000 each (the last one takes what is left over). A
task that asks for 300 takes a share of one device, one that asks for 2000 two untouched ones, one that
asks for 2300 two untouched ones and a share of a third. So a node may have enough in all and yet no room:
the shares that are left stand on different devices. Who waits for a node is meant for room in all, as of
every resource, and for no device: it is chosen when the task is bound.
"""

from __future__ import annotations

from random import Random

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.model.objects import DEVICE_MILLI, Amounts, Task, amount_of

WHOLE = 1000  # thousandths of a device


class Devices:
    """Free thousandths of every device, and who holds which.

    `free`: shape [rows, most devices of a node], 0 where a node has no such device. Read it, do not
    write it. It falls below 0 where the API server says that a device holds more than it has.
    """

    def __init__(self, rows: int) -> None:
        self.free: NDArray[np.float64] = np.zeros((rows, 0))
        self._held: dict[str, tuple[tuple[int, int], ...]] = {}  # uid -> device, thousandths

    # -- nodes ---------------------------------------------------------------------------------

    def set_devices(self, row: int, before: int, after: int) -> None:
        """The node of this row offers `after` thousandths, and offered `before`."""
        for milli, sign in ((before, -1), (after, 1)):
            parts = _parts(milli)
            self._grow_columns(len(parts))
            self.free[row, : len(parts)] += [sign * part for part in parts]

    def clear_row(self, row: int) -> None:
        """There is no node in this row any more, and nothing is held on it."""
        self.free[row] = 0

    def grow_rows(self, rows: int) -> None:
        """There are so many rows now."""
        self.free = np.pad(self.free, ((0, rows - len(self.free)), (0, 0)))

    # -- room ----------------------------------------------------------------------------------

    def has_room(self, rows: Rows, milli: int) -> NDArray[np.bool_]:
        """Whether the devices of each of the rows have room for so many thousandths, shape [len(rows)]."""
        whole, share = divmod(milli, WHOLE)
        free = self.free.take(rows, axis=0)
        has_room: NDArray[np.bool_] = (free >= WHOLE).sum(axis=1) >= whole
        if share:
            has_room &= (free >= share).sum(axis=1) > whole
        return has_room

    def admits(self, row: int, milli: int, devices: tuple[int, ...]) -> bool:
        """Whether just these devices have room for just so many thousandths."""
        parts, free = _parts(milli), self.free[row].tolist()
        return (
            len(devices) == len(parts) == len(set(devices))
            and all(0 <= device < len(free) for device in devices)
            and all(free[device] >= part for device, part in zip(devices, parts, strict=True))
        )

    def choose(self, row: int, milli: int, rng: Random | None = None) -> tuple[int, ...]:
        """Devices for so many thousandths: the fullest that have room, or any at random that have.

        The fullest keep whole devices whole. Where none has room, because what is held was never asked
        of us, the emptiest are named; fewer than are needed where there are fewer.
        """
        free, chosen = self.free[row].tolist(), list[int]()
        for part in _parts(milli):
            left = [device for device in range(len(free)) if device not in chosen]
            fitting = [device for device in left if free[device] >= part]
            if fitting:
                chosen.append(rng.choice(fitting) if rng else min(fitting, key=free.__getitem__))
            elif left:
                chosen.append(max(left, key=free.__getitem__))
        return tuple(chosen)

    # -- what is held --------------------------------------------------------------------------

    def with_devices(self, row: int, task: Task, devices: tuple[int, ...] = ()) -> Task:
        """The task with the devices it is to take: those given, else the fullest that have room."""
        milli = _asked(task.holding)
        return replace(task, devices=devices or self.choose(row, milli)) if milli else task

    def hold(self, row: int, task: Task) -> None:
        """A task takes the devices it names, or the fullest that have room where it names none."""
        milli = _asked(task.holding)
        if not milli:
            return
        devices = task.devices or self.choose(row, milli)
        self._grow_columns(max(devices, default=-1) + 1)
        self._held[task.uid] = tuple(zip(devices, _parts(milli), strict=False))
        self._add_to_free(row, task.uid, -1)

    def release(self, row: int, uid: str) -> None:
        """It gives them back."""
        if uid in self._held:
            self._add_to_free(row, uid, 1)
            del self._held[uid]

    # -- within --------------------------------------------------------------------------------

    def _add_to_free(self, row: int, uid: str, sign: int) -> None:
        for device, part in self._held[uid]:
            self.free[row, device] += sign * part

    def _grow_columns(self, devices: int) -> None:
        missing = devices - self.free.shape[1]
        if missing > 0:
            self.free = np.pad(self.free, ((0, 0), (0, missing)))


def _asked(amounts: Amounts) -> int:
    return amount_of(amounts, DEVICE_MILLI)


def _parts(milli: int) -> list[int]:
    """What is taken of each device: whole ones, and last the share of one."""
    whole, share = divmod(milli, WHOLE)
    return [WHOLE] * whole + [share] * (share > 0)
