"""Machines with their true speeds, and the tasks that run on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.model.errors import EclectusError
from eclectus.model.objects import NO_GRANT, Amounts, Grant, Node, Task
from eclectus.sim.base.work import ONE_POD, WorkClass


class InvariantError(EclectusError):
    """An invariant of the simulation does not hold."""


class StuckError(EclectusError):
    """Tasks wait and no further event can start them."""


WHOLE = 1000  # thousandths of a device: all of it


class TaskRun(Struct, eq=False):
    """A task with its true size and progress. It ends at `due` unless the speed changes first."""

    task: Task
    work_class: WorkClass
    job: int
    size: float  # seconds at speed 1
    arrived: float
    machine: Machine | None = None  # while it runs
    started: float = 0.0
    due: float = 0.0
    remaining: float = 0.0  # seconds at speed 1 that were left when the machine's speed last changed
    restarts: int = 0  # how often it was lost in a machine failure
    grant: Grant = NO_GRANT  # what the bind assigned of the machine
    met: float = 0.0  # share of its preferences, by weight, that the machine meets
    pace: float = 1.0  # of this attempt, beside the machine's speed: below 1 it is a straggler


class Machine:
    """The true state of one node. Each slot works at `speed(workload)`, times the pace of what runs in it.

    With `crowding` c each of n tasks works at 1 / (1 + c (n - 1)) of that.
    """

    __slots__ = (
        "_devices", "_free", "_since", "_total_speed", "busy_seconds", "class_speeds", "crowding", "factor",
        "gains", "group", "is_frozen", "is_up", "node", "own_speed", "part", "running", "work_done",
    )  # fmt: skip

    def __init__(self, node: Node, group: str, speed: float, speeds: Mapping[str, float]) -> None:
        self.node = node
        self.group = group
        self.is_up = True
        self.is_frozen = False
        self.factor = 1.0
        self.crowding = 0.0
        self.part = 1.0  # of its speed that each task gets, beside how many others
        self.running: dict[str, TaskRun] = {}
        self.busy_seconds = self.work_done = 0.0  # slot-seconds in use and work done, up to `_since`
        self.gains: Mapping[str, float] = {}  # factors for classes whose preferences the node meets
        self.own_speed = speed
        self.class_speeds = dict(speeds)  # of classes that have their own
        self._free: dict[str, int] = defaultdict(int, node.allocatable)
        milli = self._free.get(DEVICE_MILLI, 0)
        self._devices = [min(WHOLE, milli - first) for first in range(0, milli, WHOLE)]
        self._since = self._total_speed = 0.0

    def speed(self, workload: str) -> float:
        """Work done per second in one slot; 0 while frozen."""
        return 0.0 if self.is_frozen else self.nominal_speed(workload)

    def nominal_speed(self, workload: str) -> float:
        """The speed while the machine is not frozen."""
        own = self.class_speeds.get(workload, self.own_speed)
        return self.factor * self.part * own * self.gains.get(workload, 1.0)

    def speed_of(self, run: TaskRun) -> float:
        """Work that this task does per second; 0 while frozen."""
        return self.speed(run.work_class.name) * run.pace

    def add_pod_slot(self) -> None:
        """Add one to the node's allocatable pods."""
        self._free["pods"] += 1
        offered = dict(self.node.allocatable)
        offered["pods"] = offered.get("pods", 0) + 1
        self.node = replace(self.node, allocatable=tuple(sorted(offered.items())))

    def has_room(self, requests: Amounts) -> bool:
        """Whether one more task with these requests fits."""
        fits = all(self._free.get(name, 0) >= amount for name, amount in (ONE_POD, *requests))
        return fits and (not self._devices or self._has_devices(requests))

    def _has_devices(self, requests: Amounts) -> bool:
        whole, share = divmod(dict(requests).get(DEVICE_MILLI, 0), WHOLE)
        untouched = sum(free >= WHOLE for free in self._devices)
        return untouched >= whole and (not share or sum(free >= share for free in self._devices) > whole)

    def start(self, run: TaskRun, now: float) -> None:
        """Start the task; raises InvariantError if it does not fit."""
        free = self._free
        for name, amount in run.work_class.demand:
            free[name] = left = free[name] - amount
            if left < 0:
                raise InvariantError(f"{run.task} was bound to {self.node.name}, which has no room for it")
        if self._devices:
            self._take_devices(run, 1)
        if self.running:
            self.account(now)
        else:
            self._since = now  # nothing to account for while the machine was empty
        speed = self.speed_of(run)
        run.machine, run.started, run.remaining = self, now, run.size
        run.due = now + run.size / speed if speed else inf
        self._total_speed += speed if run.size < inf else 0.0  # endless tasks are not counted in work_done
        self.running[run.task.uid] = run

    def end(self, run: TaskRun, now: float) -> None:
        """Remove the task, completed or lost."""
        self.account(now)
        del self.running[run.task.uid]
        run.machine = None
        free = self._free
        for name, amount in run.work_class.demand:
            free[name] += amount
        if self._devices:
            self._take_devices(run, -1)
        self._total_speed = self._total_speed - self._work_rate(run) if self.running else 0.0

    def stop(self, run: TaskRun, now: float) -> None:
        """Remove a task that has not ended; `remaining` is then what it had left."""
        speed = self.speed_of(run)
        if speed and run.due < inf:
            run.remaining = (run.due - now) * speed
        self.end(run, now)

    def account(self, now: float) -> None:
        """Bring the integrals up to `now`."""
        passed = now - self._since
        self.busy_seconds += passed * len(self.running)
        self.work_done += passed * self._total_speed
        self._since = now

    def before_speed_change(self, now: float) -> None:
        """Save the remaining size of each task; call before the speed changes."""
        self.account(now)
        for run in self.running.values():
            speed = self.speed_of(run)
            run.remaining = (run.due - now) * speed if speed else run.remaining

    def after_speed_change(self, now: float) -> None:
        """Compute the new due time of each task; call after the speed has changed."""
        self._total_speed = sum(self._work_rate(run) for run in self.running.values())
        for run in self.running.values():
            speed = self.speed_of(run)
            run.due = now + run.remaining / speed if speed else inf

    def crowd(self, now: float) -> None:
        """A task has come or gone: the others are as much faster or slower."""
        self.before_speed_change(now)
        self.part = 1.0 / (1.0 + self.crowding * max(len(self.running) - 1, 0))
        self.after_speed_change(now)

    def _work_rate(self, run: TaskRun) -> float:
        """How much the task adds to `work_done` per second."""
        return self.speed_of(run) if run.size < inf else 0.0

    def _take_devices(self, run: TaskRun, times: int) -> None:
        """The request fills the devices that were granted, in their order."""
        left, granted = dict(run.task.spec.requests).get(DEVICE_MILLI, 0), run.grant.devices
        if left > WHOLE * len(granted):
            raise InvariantError(f"{run.task} was given devices {granted} and requests more")
        for device in granted:
            milli = min(left, WHOLE)
            left -= milli
            if device >= len(self._devices):
                where = f"{run.task} was bound to {self.node.name}"
                raise InvariantError(f"{where}, which has no device {device}")
            self._devices[device] -= times * milli
            if self._devices[device] < 0:
                which = f"{run.task} was given device {device} of {self.node.name}"
                raise InvariantError(f"{which}, which is full")
