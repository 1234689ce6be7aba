"""Place by learned speed.

Q. Wu, Z. Liu, "Rosella", 2020, section on proportional sampling with power of two choices (PPoT).

Two ways, by `view`:

- `sample`, the paper's: draw two nodes with probability in proportion to their learned rate for this
  work, compare them, join the line of the better. For several active schedulers, stale views and
  very large clusters. With `compare: sq` it is the paper's policy to the letter.
- `full`, the default of a single scheduler, whose view is fresh: all nodes are compared. With
  `replan` (default) tasks stay in one central queue and are planned anew at every event (replan.py).

Departures from the paper:
- it never compares with a central late-bound queue, which is what kube-scheduler is; at high load two
  choices lose to it, replan does not (measured: rosella.md 4.6). Hence the default.
- nodes have many slots and tasks differ in size: queue lengths are counted in slots of the class.
- ties, unspecified there, go to the faster node; draws are with replacement as there, or distinct.
- rates are per node and workload, not one number per node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from eclectus.core.cells import cells
from eclectus.core.errors import SettingsError
from eclectus.core.journal import Rows
from eclectus.core.model import Task
from eclectus.core.seam import Action, Join, PlacePolicy, Refuse, Turns, View
from eclectus.core.settings import Setting
from eclectus.feasibility.classes import Floats, Numbers, TaskClass
from eclectus.maths import numbers
from eclectus.maths.numbers import Arithmetic
from eclectus.maths.sampling import draw_proportional
from eclectus.policies.rosella.compare import KEYS
from eclectus.policies.rosella.replan import Replan

TIE = 1e-9  # weighs the service time just enough to break ties


@dataclass(eq=False)
class Rosella(PlacePolicy):
    """Proportional sampling, two choices; or the full view, re-planned."""

    view: Annotated[
        Literal["full", "sample"],
        Setting(
            "compare all nodes, or two sampled in proportion to their speed",
            why="one scheduler sees every node freshly, and a fresh full view wins; "
            "sample when several schedulers are active or views are stale",
        ),
    ] = "full"
    replan: Annotated[
        bool | None,
        Setting(
            "keep tasks in one queue and plan them anew at every event, instead of committing on arrival",
            why="unset: with the full view yes, when sampling no",
        ),
    ] = None
    compare: Annotated[
        Literal["sq", "wait", "sed"],
        Setting(
            "what makes a node better when tasks commit on arrival: fewer tasks a slot, "
            "a shorter wait, or an earlier end",
            why="wait with the tie to the faster node had the best mean of the three at moderate load",
        ),
    ] = "wait"
    theta: Annotated[
        float,
        Setting(
            "re-planning: how many seconds of running a second of waiting is worth",
            why="1 is each task's own best and everybody's loss; with speeds being learned, 3 gave the best "
            "tail, 6 the best mean, and 4 nearly both",
            least=1,
            most=1000,
        ),
    ] = 4.0
    distinct: Annotated[
        bool,
        Setting("sampling: never draw the same node twice", why="the paper draws with replacement"),
    ] = False
    soft_weight: Annotated[
        float,
        Setting(
            "how much slower a node seems that meets none of a pod's soft preferences",
            why="1: such a node must be twice as fast to be chosen",
            least=0,
            most=100,
        ),
    ] = 1.0

    def __post_init__(self) -> None:
        if self.view == "sample" and self.replan:
            raise SettingsError(
                "replan", "re-planning needs the full view; leave replan out or set view: full"
            )
        self._replan = Replan(self.theta, self.soft_weight)
        self._key = KEYS[self.compare]

    def place(self, view: View, turns: Turns) -> Iterator[Action]:
        """One task, one answer; re-planning passes some over."""
        if self.view == "full" and self.replan is not False:
            yield from self._replan.place(view, turns)
            return
        answer = self._sampled if self.view == "sample" else self._best
        for task in turns:
            yield answer(view, task)

    # -- sampling --------------------------------------------------------------------------------

    def _sampled(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        speeds, rows = view.speeds(task_class), task_class.waitable_rows
        first = draw_proportional(view.rng, rows, speeds.rate, speeds.most)
        if first is None:
            return Refuse(task)
        if self.distinct and len(rows) > 1:
            rows = rows[rows != first]
        second = draw_proportional(view.rng, rows, speeds.rate, speeds.most)
        if second is None or second == first:
            return Join(task, first)
        nodes, rate = task_class.numbers, cells(speeds.rate)
        one = self._cost(numbers, nodes, rate, first)
        other = self._cost(numbers, nodes, rate, second)
        return Join(task, second if other < one else first)

    # -- full view, committing on arrival ----------------------------------------------------------

    def _best(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        if not task_class.feasible_count:
            return Refuse(task)
        ranking = view.ranking(task_class, lambda group, rows: self._costs(view, group, rows), self)
        best = ranking.best()
        return Refuse(task) if best is None else Join(task, best[0])

    def _costs(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        cost = self._cost(np, task_class, view.speeds(task_class).rate, rows)
        return np.where(task_class.feasible[rows], cost, np.inf)

    # -- either way ------------------------------------------------------------------------------

    def _cost(self, m: Arithmetic, nodes: TaskClass | Numbers, rate: Any, at: Any) -> Any:
        """Of one feasible node or of many, as in compare.py."""
        service = m.divide(1.0, rate[at])
        soft = 1.0 + self.soft_weight * (1.0 - nodes.soft[at])
        return self._key(m, nodes, rate, at) * soft + TIE * service * soft
