"""Devices that tasks can share: how much of each is free, and which of them a task gets.

A node's amount of `DEVICE_MILLI` is divided into devices of 1000 each (the last one has the remainder). A
task that requests 300 gets a share of one device; one that requests 2000 gets two unused devices; one that
requests 2300 gets two unused devices and a share of a third. So a node can have enough in total and still no
room, because the free shares are on different devices. A task that waits for a node counts there with its
total, as for every resource; its devices are chosen when it is bound.
"""

from collections.abc import Iterable
from random import Random
from typing import Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.scalars import read_only
from eclectus.model.objects import Amounts, Grant, Task, amount_of

DEVICE_MILLI = "gpu-milli"
"""The one resource that is divided into devices, of 1000 each, which tasks can share."""

WHOLE = 1000  # thousandths of a device


def problem_of(grant: object, devices: "Devices | None", row: int, requests: Amounts) -> str:
    """What is wrong with a grant that a policy has chosen, to be followed by the task; empty if nothing."""
    if not isinstance(grant, Grant):
        return f"{grant!r} is no grant for"
    chosen = grant.devices
    if not isinstance(chosen, tuple) or not all(isinstance(device, int) for device in chosen):
        return f"{chosen!r} are no devices for"
    if chosen and (devices is None or not devices.admits(row, requests, grant)):
        return f"devices {chosen!r} have no room for the {device_milli(requests)} of"
    return ""


class Devices:
    """Free thousandths of every device, and which task holds which."""

    def __init__(self, rows: int) -> None:
        self._free: NDArray[np.float64] = np.zeros((rows, 0))
        # uid -> (row, device, thousandths) of each device it holds.
        self._held: dict[str, tuple[tuple[int, int, int], ...]] = {}

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._free, self._held = self._free.copy(), dict(self._held)
        return self

    @property
    def free(self) -> NDArray[np.float64]:
        """Free thousandths, shape [rows, most devices of any node], read-only; 0 where there is no device.

        Below 0 where the pods that the API server reports hold more than a device has.
        """
        return read_only(self._free)

    def set_devices(self, row: int, before: Amounts, after: Amounts) -> None:
        """The node of this row offered `before` and now offers `after`."""
        for amounts, sign in ((before, -1), (after, 1)):
            parts = _parts(device_milli(amounts))
            self._grow_columns(len(parts))
            self._free[row, : len(parts)] += [sign * part for part in parts]

    def clear_row(self, row: int) -> None:
        """There is no node in this row any more, and nothing is held on it."""
        self._free[row] = 0

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        self._free = np.pad(self._free, ((0, rows - len(self._free)), (0, 0)))

    def has_room(self, rows: Rows, requests: Amounts) -> NDArray[np.bool_]:
        """Whether the devices of each of the rows have room for what is requested, shape [len(rows)]."""
        return _has_room(self._free.take(rows, axis=0), device_milli(requests))

    def has_room_without(self, row: int, requests: Amounts, uids: Iterable[str]) -> bool:
        """The same for one row, without what these tasks hold there."""
        free = self._free[row : row + 1].copy()
        for uid in uids:
            for _, device, part in self._held.get(uid, ()):
                free[0, device] += part
        return bool(_has_room(free, device_milli(requests))[0])

    def admits(self, row: int, requests: Amounts, grant: Grant) -> bool:
        """Whether what is requested needs exactly the devices of this grant and all of them have room."""
        parts, free, devices = _parts(device_milli(requests)), self._free[row].tolist(), grant.devices
        return (
            len(devices) == len(parts) == len(set(devices))
            and all(0 <= device < len(free) for device in devices)
            and all(free[device] >= part for device, part in zip(devices, parts, strict=True))
        )

    def choose(self, row: int, requests: Amounts, rng: Random | None = None) -> Grant:
        """Devices for what is requested: the fullest that have room; with `rng`, a random one that has.

        The fullest device is chosen so that whole devices stay unused. If none has room, because somebody
        else bound the pod, the emptiest is chosen; if there are too few devices, the result is shorter.
        """
        free, chosen = self._free[row].tolist(), list[int]()
        for part in _parts(device_milli(requests)):
            left = [device for device in range(len(free)) if device not in chosen]
            fitting = [device for device in left if free[device] >= part]
            if fitting:
                chosen.append(rng.choice(fitting) if rng else min(fitting, key=free.__getitem__))
            elif left:
                chosen.append(max(left, key=free.__getitem__))
        return Grant(tuple(chosen))

    def with_grant(self, row: int, task: Task, grant: Grant, instead_of: Iterable[Task] = ()) -> Task:
        """The task with its grant on this row: the one given, else of the fullest devices that have room.

        What the task holds already, because it is nominated, counts as free: its devices were chosen before
        any had room. So does what the tasks `instead_of` hold, whose room it takes.
        """
        has_devices = device_milli(task.holding) > 0
        if not has_devices or grant.devices:
            return replace(task, grant=grant) if has_devices else task
        free = [task.uid, *(each.uid for each in instead_of)]
        for uid in free:
            self._add_to_free(uid, 1)
        chosen = self.choose(row, task.holding)
        for uid in free:
            self._add_to_free(uid, -1)
        return replace(task, grant=chosen)

    def hold(self, row: int, task: Task) -> None:
        """A task takes the devices of its grant, or the fullest that have room if it has none."""
        parts = _parts(device_milli(task.holding))
        if not parts:
            return
        devices = task.grant.devices or self.choose(row, task.holding).devices
        self._grow_columns(max(devices, default=-1) + 1)
        self._held[task.uid] = tuple((row, *each) for each in zip(devices, parts, strict=False))
        self._add_to_free(task.uid, -1)

    def release(self, uid: str) -> None:
        """A task gives its devices back; one that holds none changes nothing."""
        self._add_to_free(uid, 1)
        self._held.pop(uid, None)

    def _add_to_free(self, uid: str, sign: int) -> None:
        for row, device, part in self._held.get(uid, ()):
            self._free[row, device] += sign * part

    def _grow_columns(self, devices: int) -> None:
        missing = devices - self._free.shape[1]
        if missing > 0:
            self._free = np.pad(self._free, ((0, 0), (0, missing)))


def _has_room(free: NDArray[np.float64], milli: int) -> NDArray[np.bool_]:
    """Whether devices with these free thousandths [rows, devices] have room, shape [rows]."""
    whole, share = divmod(milli, WHOLE)
    has_room: NDArray[np.bool_] = (free >= WHOLE).sum(axis=1) >= whole
    if share:
        has_room &= (free >= share).sum(axis=1) > whole
    return has_room


def device_milli(amounts: Amounts) -> int:
    """The thousandths of devices among these amounts; 0 if there are none."""
    return amount_of(amounts, DEVICE_MILLI)


def _parts(milli: int) -> list[int]:
    """What is taken of each device: whole devices first, then the share of one."""
    whole, share = divmod(milli, WHOLE)
    return [WHOLE] * whole + [share] * (share > 0)
