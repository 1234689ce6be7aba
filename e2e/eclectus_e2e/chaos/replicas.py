"""Replicas: processes that are killed, paused and cut off, and are started again when they end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.virtual_time import Process, VirtualLoop, run_in

RESTART_SECONDS = 2.0  # of a process that has ended, until it runs again


@dataclass(eq=False)
class Replica(ABC):
    """One replica, restarted for ever. `crashes` are exceptions that ended it."""

    name: str
    loop: VirtualLoop
    network: Network
    rng: Random
    crashes: list[BaseException] = field(default_factory=list)

    loops: ClassVar[int] = 1  # each has a process of its own, so that one that is busy keeps no other alone
    # The ends of the paths of writes before which it can be paused.
    write_paths: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self.step_seconds = 0.0  # that each step takes
        self.wall_step_seconds = 0.0  # by which its machine's wall clock differs
        self.parts = self._new_parts()
        # Kept, so that killed ones are not collected with a warning.
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def main(self) -> Process:
        """The process of the main loop."""
        return self.parts[0]

    def start(self) -> None:
        """Start a new process."""
        self.parts = self._new_parts()
        self._tasks.append(run_in(self.main, self.loop.create_task, self._run()))

    def kill(self) -> None:
        """SIGKILL; it is started again after a while. Nothing happens to one that does not run."""
        if self.main.is_killed or not self._tasks:
            return
        for process in self.parts:
            process.is_killed = True
            self.network.break_watches(process)
        self.network.later(RESTART_SECONDS, self.start)

    def terminate(self) -> None:
        """SIGTERM: it gives the Lease back, and is started again."""
        if self.main.on_signal is None:
            self.kill()
        else:
            run_in(self.main, self.main.on_signal)

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        for process in self.parts:
            process.is_paused = True
        for process in self.parts:
            self.network.later(seconds, self.loop.go_on, process)

    def pause_in_write(self, seconds: float) -> None:
        """SIGSTOP between the check of the Lease and the next write, which is sent after SIGCONT."""
        self.network.before_write[self.main] = self.rng.choice(self.write_paths), lambda: self.pause(seconds)

    def cut(self, seconds: float) -> None:
        """No packet passes for a while."""
        parts = self.parts
        self.network.cut.update(parts)
        self.network.later(seconds, self.network.connect, parts)

    def step_clock(self, seconds: float) -> None:
        """Its machine's wall clock jumps; processes that are started later see it too."""
        self.wall_step_seconds += seconds
        for process in self.parts:
            process.wall_step_seconds = self.wall_step_seconds

    @abstractmethod
    async def _serve(self) -> None:
        """Run until the process ends. Raises what has crashed it."""

    async def _run(self) -> None:
        parts = self.parts
        try:
            await self._serve()
        except Exception as error:
            self.crashes.append(error)
        if not parts[0].is_killed:
            for each in parts:
                self.crashes += each.failures
                each.is_killed = True
            self.network.later(RESTART_SECONDS, self.start)

    def _new_parts(self) -> tuple[Process, ...]:
        return tuple(Process(self.name, wall_step_seconds=self.wall_step_seconds) for _ in range(self.loops))
