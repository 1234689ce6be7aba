"""Fast and slow machines swap speeds: all learned rates are wrong at once (scenario `perturbation`)."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from eclectus.sim.base.results import RunResult
from eclectus.sim.runs import run
from eclectus.sim.scenario import load

SHOCK = Path(__file__).parents[2] / "scenarios" / "perturbation.yaml"
SEEDS = (1, 2)
ENOUGH = 24  # samples: ten to twenty to detect a change, and some to learn the new speed


def in_system(result: RunResult, begins: float, ends: float) -> float:
    """Mean number of tasks in the system over an interval of the run."""
    return fmean(point.in_system for point in result.series if begins <= point.at < ends)


@pytest.mark.slow
def test_after_a_swap_of_speeds_nodes_with_work_are_learned_again_and_queues_recover() -> None:
    asked = load(SHOCK)
    by_name = {each.name: each for each in asked.profiles}
    ours = [run(asked, by_name["eclectus"], seed) for seed in SEEDS]
    known = [run(asked, by_name["oracle"], seed) for seed in SEEDS]
    for each in ours:
        cells = [cell for cell in each.learned if cell.samples >= ENOUGH]
        error = np.log([cell.learned / cell.true for cell in cells])
        assert len(cells) >= 15
        assert np.mean(np.abs(error - np.median(error)) < np.log(1.5)) >= 0.9
    right_after, later = ([in_system(each, *span) for each in ours] for span in ((205, 225), (400, 600)))
    best = [in_system(each, 400, 600) for each in known]
    assert fmean(later) < 0.8 * fmean(right_after)
    assert fmean(later) < 1.5 * fmean(best)
