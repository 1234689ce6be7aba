"""Fast and slow machines trade speeds, so that all learned speeds are wrong (scenario `perturbation`)."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from eclectus.sim.base.results import RunResult
from eclectus.sim.run import run
from eclectus.sim.scenario.reading import load

SHOCK = Path(__file__).parents[2] / "scenarios" / "perturbation.yaml"
SEEDS = (1, 2)
ENOUGH = 24  # samples: more than the ten to twenty that a change takes to be found and some to learn from


def in_system(told: RunResult, begins: float, ends: float) -> float:
    """Mean number of tasks in the system over a stretch of the run."""
    return fmean(point.in_system for point in told.series if begins <= point.at < ends)


@pytest.mark.slow
def test_after_a_shock_nodes_that_get_work_are_learned_anew_and_queues_recover() -> None:
    asked = load(SHOCK)
    by_name = {each.name: each for each in asked.profiles}
    ours = [run(asked, by_name["eclectus"], seed) for seed in SEEDS]
    told = [run(asked, by_name["oracle"], seed) for seed in SEEDS]
    for each in ours:
        cells = [cell for cell in each.learned if cell.samples >= ENOUGH]
        error = np.log([cell.learned / cell.true for cell in cells])
        assert len(cells) >= 15
        assert np.mean(np.abs(error - np.median(error)) < np.log(1.5)) >= 0.9
    right_after, later = ([in_system(each, *span) for each in ours] for span in ((205, 225), (400, 600)))
    best = [in_system(each, 400, 600) for each in told]
    assert fmean(later) < 0.8 * fmean(right_after)
    assert fmean(later) < 1.5 * fmean(best)
