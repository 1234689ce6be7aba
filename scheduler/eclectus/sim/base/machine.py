"""A machine as it really is: how fast for which work, what runs there, what it has done so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from eclectus.model.objects import DEVICE_MILLI, Amounts, Node, Task
from eclectus.sim.base.errors import InvariantError
from eclectus.sim.base.work import POD_PLACE, Kind

WHOLE = 1000  # thousandths of a device


class Running(Struct, eq=False):
    """A task in a slot. Its end is `due`, unless the machine's speed changes before."""

    task: Task
    kind: Kind
    job: int
    size: float  # seconds at speed 1
    arrived: float
    machine: Machine | None = None  # while it runs
    started: float = 0.0
    due: float = 0.0
    remaining: float = 0.0  # of its size, when its machine's speed last changed
    tries: int = 0  # how often it was lost with its machine
    devices: tuple[int, ...] = ()  # of its machine

    def uses(self) -> list[tuple[int, int]]:
        """What it takes of each of its devices, thousandths: all it asks for, up to whole ones."""
        left, uses = dict(self.task.spec.requests).get(DEVICE_MILLI, 0), []
        for device in self.devices:
            uses.append((device, min(left, WHOLE)))
            left -= min(left, WHOLE)
        if left:
            raise InvariantError(f"{self.task} was given devices {self.devices}, and needs more")
        return uses


class Machine:
    """One node's truth. A slot serves work at `speed(workload)`, whoever runs beside it."""

    __slots__ = (
        "_devices", "_free", "_own", "_since", "_speed", "_total_speed",
        "busy_seconds", "factor", "frozen", "group", "is_up", "node", "running", "work_done",
    )  # fmt: skip

    def __init__(self, node: Node, group: str, speed: float, speeds: Mapping[str, float]) -> None:
        self.node, self.group = node, group
        self.is_up, self.frozen, self.factor = True, False, 1.0
        self.running: dict[str, Running] = {}
        self.busy_seconds = self.work_done = 0.0  # slot-seconds in use, and work done, up to `_since`
        self._speed, self._own = speed, dict(speeds)
        self._free: dict[str, int] = defaultdict(int, node.allocatable)
        milli = self._free.get(DEVICE_MILLI, 0)
        self._devices = [min(WHOLE, milli - first) for first in range(0, milli, WHOLE)]
        self._since = self._total_speed = 0.0

    def speed(self, workload: str) -> float:
        """Work done a second in one slot; 0 while frozen."""
        return 0.0 if self.frozen else self.nominal(workload)

    def nominal(self, workload: str) -> float:
        """The speed when it is not frozen."""
        return self.factor * self._own.get(workload, self._speed)

    @property
    def speeds(self) -> tuple[float, dict[str, float]]:
        """The speed for all work, and for the work that has one of its own."""
        return self._speed, self._own

    @speeds.setter
    def speeds(self, value: tuple[float, dict[str, float]]) -> None:
        self._speed, self._own = value

    def add_place(self) -> None:
        """Room for one more pod, which the node shows."""
        self._free["pods"] += 1
        offered = dict(self.node.allocatable)
        offered["pods"] = offered.get("pods", 0) + 1
        self.node = replace(self.node, allocatable=tuple(sorted(offered.items())))

    def has_room(self, asked: Amounts) -> bool:
        """Whether one more task of these requests fits."""
        fits = all(self._free.get(name, 0) >= amount for name, amount in (POD_PLACE, *asked))
        return fits and (not self._devices or self._has_devices(asked))

    def _has_devices(self, asked: Amounts) -> bool:
        whole, share = divmod(dict(asked).get(DEVICE_MILLI, 0), WHOLE)
        untouched = sum(free >= WHOLE for free in self._devices)
        return untouched >= whole and (not share or sum(free >= share for free in self._devices) > whole)

    def start(self, run: Running, now: float) -> None:
        """The task begins to run; raises InvariantError where there is no room for it."""
        free = self._free
        for name, amount in run.kind.takes:
            free[name] = left = free[name] - amount
            if left < 0:
                raise InvariantError(f"{run.task} was bound to {self.node.name}, which has no room for it")
        if self._devices:
            self._take_devices(run, 1)
        if self.running:
            self.account(now)
        else:
            self._since = now  # an empty machine has nothing to account for
        speed = self.speed(run.kind.name)
        run.machine, run.started, run.remaining = self, now, run.size
        run.due = now + run.size / speed if speed else inf
        self._total_speed += speed if run.size < inf else 0.0  # work without end is no work done
        self.running[run.task.uid] = run

    def end(self, run: Running, now: float) -> None:
        """The task is over, done or lost."""
        self.account(now)
        del self.running[run.task.uid]
        run.machine = None
        free = self._free
        for name, amount in run.kind.takes:
            free[name] += amount
        if self._devices:
            self._take_devices(run, -1)
        self._total_speed = self._total_speed - self._pace(run) if self.running else 0.0

    def account(self, now: float) -> None:
        """Bring the sums up to `now`."""
        passed = now - self._since
        self.busy_seconds += passed * len(self.running)
        self.work_done += passed * self._total_speed
        self._since = now

    def pause(self, now: float) -> None:
        """Before a change of speed: write down what each task still has to do."""
        self.account(now)
        for run in self.running.values():
            speed = self.speed(run.kind.name)
            run.remaining = (run.due - now) * speed if speed else run.remaining

    def resume(self, now: float) -> None:
        """After a change of speed: when each task will now be done."""
        self._total_speed = sum(self._pace(run) for run in self.running.values())
        for run in self.running.values():
            speed = self.speed(run.kind.name)
            run.due = now + run.remaining / speed if speed else inf

    def _pace(self, run: Running) -> float:
        """How fast the task adds to the work done."""
        return self.speed(run.kind.name) if run.size < inf else 0.0

    def _take_devices(self, run: Running, times: int) -> None:
        for device, milli in run.uses():
            if device >= len(self._devices):
                raise InvariantError(
                    f"{run.task} was bound to {self.node.name}, which has no device {device}"
                )
            self._devices[device] -= times * milli
            if self._devices[device] < 0:
                raise InvariantError(
                    f"{run.task} was given device {device} of {self.node.name}, which is full"
                )
