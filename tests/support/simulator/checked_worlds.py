"""Runs in which engine, world and record must agree on their counts after every step of the engine."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from eclectus.sim.base.machine import InvariantError
from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import build_world, run
from eclectus.sim.scenario import ComparedProfile, Scenario
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
        if not queued == waiting == record.waiting or running != record.running:
            raise InvariantError(
                f"waiting: engine {queued}, world {waiting}, record {record.waiting}; "
                f"running: world {running}, record {record.running}"
            )


def run_checked(scenario: Scenario, profile: ComparedProfile, seed: int, **more: Any) -> RunResult:
    """`run` in such a world."""
    with patch("eclectus.sim.runs.World", CheckedWorld):
        return run(scenario, profile, seed, **more)


def build_checked(scenario: Scenario, profile: ComparedProfile, seed: int) -> World:
    """`build_world` of such a world."""
    with patch("eclectus.sim.runs.World", CheckedWorld):
        return build_world(scenario, profile, seed)
