"""Reports beside binds in the short demo at load 0.9, where the API server takes a time to answer.

On streams that nothing was tuned on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eclectus.model.commands import Bind, Command, Report
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import parse

SCENARIO = Path(__file__).parents[2] / "scenarios" / "short-demo.yaml"
ARRIVALS_SECONDS = 100.0  # after which few binds go on


@pytest.mark.parametrize("seed", [201, pytest.param(202, marks=pytest.mark.slow)])
@pytest.mark.parametrize("answer", [0.0, 0.1, 0.3, 1.0])
def test_while_binds_go_on_there_is_at_most_one_report_for_ten(answer: float, seed: int) -> None:
    changes = (f"cluster.networkDelay={answer / 2}s",)  # to the machine and back
    asked = parse(SCENARIO.read_text(), SCENARIO.parent, changes)
    world = build_world(asked, asked.profiles[0], seed)
    counts = {Bind: 0, Report: 0}

    def count(now: float, _events: object, commands: list[Command]) -> None:
        for command in commands if now < ARRIVALS_SECONDS else ():
            if type(command) in counts:
                counts[type(command)] += 1

    world.on_step = count
    world.run()
    assert counts[Report] <= 0.1 * counts[Bind]
