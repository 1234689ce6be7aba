"""Runs in which engine, world and record must agree on their counts after every step of the engine."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from eclectus.sim.base.machine import InvariantError, TaskRun
from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import build_world, run
from eclectus.sim.scenario import ComparedProfile, Scenario
from eclectus.sim.world.copies import CopyRun
from eclectus.sim.world.world import World


class CheckedWorld(World):
    """Raises InvariantError at the first step after which the counts differ."""

    def _step_engine(self) -> None:
        super()._step_engine()
        if not self._hop:  # with delay, counts differ while messages are under way
            self._check_counts()

    def _check_counts(self) -> None:
        counts, record, waiting = self.engine.queue_counts(), self.record, len(self._waiting)
        queued = counts.active + counts.backoff + counts.unschedulable + counts.node_queues + counts.held_back
        queued += counts.in_gangs
        running = sum(len(machine.running) for machine in self.machines.values())
        surplus = sum(not _counts_as_task(run, self) for run in self._waiting.values())
        is_running = running == record.running + record.surplus
        if not queued == waiting == record.waiting + surplus or not is_running:
            raise InvariantError(
                f"waiting: engine {queued}, world {waiting}, record {record.waiting}; "
                f"running: world {running}, record {record.running}"
            )


def _counts_as_task(run: TaskRun, world: World) -> bool:
    """Whether it is no copy, or one whose original is lost."""
    if not isinstance(run, CopyRun) or world.copies is None:
        return True
    return world.copies._pairs[run.task.copy_of].took_over


def run_checked(scenario: Scenario, profile: ComparedProfile, seed: int, **more: Any) -> RunResult:
    """`run` in such a world."""
    with patch("eclectus.sim.runs.World", CheckedWorld):
        return run(scenario, profile, seed, **more)


def build_checked(scenario: Scenario, profile: ComparedProfile, seed: int) -> World:
    """`build_world` of such a world."""
    with patch("eclectus.sim.runs.World", CheckedWorld):
        return build_world(scenario, profile, seed)
