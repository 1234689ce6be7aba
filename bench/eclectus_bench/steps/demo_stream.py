"""What the steps of the demo's stream cost: pods of many classes on thirty nodes whose speeds are learned."""

import time
from collections.abc import Sequence

from eclectus.model.commands import Command
from eclectus.model.events import Event
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import load, shipped_scenarios

RATE = 26.36  # pods a second: load .9 (scenarios/demo.yaml)


def step_milliseconds(tasks: int) -> list[float]:
    """CPU time of each step until so many tasks have run, with the default profile."""
    changes = (f"workload.poisson.rate={RATE}", f"measure.tasks={tasks}")
    scenario = load(shipped_scenarios()["demo"], changes)
    world = build_world(scenario, scenario.profiles[0], seed=1)
    step, found = world.engine.step, list[float]()

    def timed(events: Sequence[Event], now: float) -> list[Command]:
        began = time.process_time()
        commands = step(events, now)
        found.append((time.process_time() - began) * 1e3)
        return commands

    world.engine.step = timed  # type: ignore[method-assign]
    world.run(lambda record: True)
    return found
