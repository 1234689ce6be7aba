"""How long learning takes, by load and by the number of machines, with the paper's windows and with ours.

A machine is learned when its window is full: L tasks have ended on it. The paper has L = 2 ln(n) (1 + C^2) /
(.3 (1 - a))^2 (maths/load.py); ours is the same, but at most `window`. One choice in proportion to speed
keeps every machine busy for the share a of the time, so a window is full after about L / a times of a task.
Of two choices a tie goes to the faster machine, so that slow ones get less than that at low loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from statistics import fmean, linear_regression
from typing import Any

from eclectus.maths.load import error_aimed, window_length
from eclectus.model.errors import EclectusError
from eclectus.model.events import Event, TaskSeen
from eclectus.policies.rosella.learn import NO_CAP, RosellaLearn
from eclectus.sim.world.run_record import RunRecord
from eclectus.sim.world.world import World
from eclectus_bench.rosella.machines import MEAN_SPEED, TASK_SECONDS, world

LOADS, NODES_AT_LOADS = (0.3, 0.5, 0.7), 10
NODES, LOAD_AT_NODES = (10, 30, 90), 0.3
VARIATION = 1.0  # C^2 of exponential times


@dataclass(frozen=True)
class Learner:
    """Its settings, and the longest window that it keeps."""

    settings: Mapping[str, Any]
    most: int


LEARNERS = {
    "paper": Learner({"mode": "paper"}, NO_CAP),
    "eclectus": Learner({}, RosellaLearn().window),
}


@dataclass(frozen=True)
class LearningCase:
    """One run from nothing, until all windows are full."""

    learner: str
    nodes: int
    load: float
    seed: int

    @property
    def window(self) -> int:
        """L, samples."""
        aimed = error_aimed(self.load)
        return window_length(self.nodes, aimed, VARIATION, most=LEARNERS[self.learner].most)

    @property
    def tasks(self) -> int:
        """More than arrive until then: the last machine takes longer than the mean one."""
        return ceil(3.0 * self.window * MEAN_SPEED * self.nodes)


@dataclass(frozen=True)
class Learned:
    """When all windows were full, and the largest relative error of a machine's rate then."""

    times: float  # mean times of a task on a slow machine
    error: float


def learn(case: LearningCase) -> Learned:
    """Run until all windows are full. Raises EclectusError if they never are."""
    capacity = MEAN_SPEED * case.nodes / TASK_SECONDS
    learner = {"policy": "rosella", "capacity": capacity, **LEARNERS[case.learner].settings}
    profile = {"place": {"policy": "pss"}, "learn": learner}
    it = world(case.nodes, case.load, profile, {"tasks": case.tasks}, case.seed)
    ended, found = Counter[str](), list[Learned]()

    def look(now: float, events: Sequence[Event], commands: object) -> None:
        for event in events:
            if type(event) is TaskSeen and event.task.phase == "Succeeded":
                ended[event.task.node] += 1
                if not found and ended[event.task.node] == case.window and _are_full(ended, case):
                    found.append(Learned(now / TASK_SECONDS, _largest_error(it)))

    def go_on(record: RunRecord) -> bool:
        return not found

    it.on_step = look
    it.run(go_on)
    if not found:
        raise EclectusError(f"{case}: some machine has ended less than {case.window} tasks")
    return found[0]


def _are_full(ended: Counter[str], case: LearningCase) -> bool:
    return len(ended) == case.nodes and min(ended.values()) >= case.window


def _largest_error(it: World) -> float:
    """Only ratios of rates count, so they are scaled to a geometric mean of 1 over the truth."""
    cells = it.engine.learn.learned_cells()
    ratios = [log(each.rate / it.machines[each.node].nominal_speed("")) for each in cells]
    middle = fmean(ratios)
    return max(abs(exp(each - middle) - 1.0) for each in ratios)


def exponent_of_load(times: Sequence[float], loads: Sequence[float] = LOADS) -> float:
    """b of times * a = c (1 - a)^-b: 2 by the paper's window, 0 if it does not depend on the load."""
    spare = [-log(1.0 - load) for load in loads]
    work = [log(each * load) for each, load in zip(times, loads, strict=True)]
    return linear_regression(spare, work).slope


def exponent_of_nodes(times: Sequence[float], nodes: Sequence[int] = NODES) -> float:
    """b of times = c (ln n)^b: 1 by the paper's window."""
    return linear_regression([log(log(each)) for each in nodes], list(map(log, times))).slope
