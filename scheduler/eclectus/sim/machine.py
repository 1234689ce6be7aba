"""A machine as it really is: how fast for which work, what runs there, what it has done so far."""

from __future__ import annotations

from collections.abc import Mapping

from eclectus.core.model import Amounts, Node, Task
from eclectus.sim.errors import InvariantError
from eclectus.sim.work import Kind


class Running:
    """A task in a slot. Its end is `due`, unless the machine's speed changes before."""

    __slots__ = ("arrived", "due", "job", "kind", "machine", "remaining", "size", "started", "task", "tries")

    def __init__(self, task: Task, kind: Kind, job: int, size: float, arrived: float) -> None:
        self.task, self.kind, self.job, self.size, self.arrived = task, kind, job, size, arrived
        self.machine: Machine | None = None
        self.remaining = size  # seconds at speed 1
        self.started = self.due = 0.0
        self.tries = 0  # how often it was lost with its machine


class Machine:
    """One node's truth. A slot serves work at `speed(workload)`, whoever runs beside it."""

    __slots__ = (
        "_free", "_own", "_since", "_speed", "_total_speed",
        "busy_seconds", "factor", "frozen", "group", "is_up", "node", "running", "work_done",
    )  # fmt: skip

    def __init__(self, node: Node, group: str, speed: float, speeds: Mapping[str, float]) -> None:
        self.node, self.group = node, group
        self.is_up, self.frozen, self.factor = True, False, 1.0
        self.running: dict[str, Running] = {}
        self.busy_seconds = self.work_done = 0.0  # slot-seconds in use, and work done, up to `_since`
        self._speed, self._own = speed, dict(speeds)
        self._free = dict(node.allocatable)
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

    def has_room(self, asked: Amounts) -> bool:
        """Whether one more task of these requests fits."""
        free = self._free
        return free.get("pods", 0) >= 1 and all(free.get(name, 0) >= amount for name, amount in asked)

    def start(self, run: Running, now: float) -> None:
        """The task begins to run; raises InvariantError where there is no room for it."""
        asked = run.task.spec.requests
        if not self.has_room(asked):
            raise InvariantError(f"{run.task} was bound to {self.node.name}, which has no room for it")
        self._take(asked, 1)
        self.account(now)
        speed = self.speed(run.kind.name)
        self._total_speed += speed
        self.running[run.task.uid] = run
        run.machine, run.started = self, now
        run.due = now + run.size / speed if speed else float("inf")

    def end(self, run: Running, now: float) -> None:
        """The task is over, done or lost."""
        self.account(now)
        del self.running[run.task.uid]
        self._take(run.task.spec.requests, -1)
        self._total_speed = self._total_speed - self.speed(run.kind.name) if self.running else 0.0

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
        self._total_speed = sum(self.speed(run.kind.name) for run in self.running.values())
        for run in self.running.values():
            speed = self.speed(run.kind.name)
            run.due = now + run.remaining / speed if speed else float("inf")

    def _take(self, asked: Amounts, times: int) -> None:
        self._free["pods"] -= times
        for name, amount in asked:
            self._free[name] -= times * amount
