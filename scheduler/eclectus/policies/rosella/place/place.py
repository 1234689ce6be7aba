"""Place by learned speed.

Q. Wu, Z. Liu, "Rosella", 2020, section on proportional sampling with power of two choices (PPoT).

Two ways, by `view`:

- `sample`, the paper's: draw two nodes with probability in proportion to their learned rate for this
  work, compare them, join the line of the better. For several active schedulers, stale views and
  very large clusters. Which nodes are drawn (`query`, `choices`, `distinct`: query.py) and which of them
  gets the task (`compare`: compare.py) are set apart.
- `full`, the default of a single scheduler, whose view is fresh: all nodes are compared. With
  `replan` (default) tasks stay in one central queue and are planned anew at every event (replan.py).

`mode: paper` is the paper's policy and learner to the letter, as far as there is one. Departures from it:
- by default no sampling: the paper never compares with a central late-bound queue, which is what
  kube-scheduler is; at high load two choices lose to it, replan does not (rosella.md 4.6);
- by default `wait` compares, not the shortest queue;
- waiting tasks are given to other nodes: those of the central queue at every event, those in lines by
  `line: {policy: rosella}` (lines.py). In the paper a task stays where it was sent;
- nodes have many slots and tasks differ in size: queue lengths are counted in slots of the class. Also
  in `mode: paper`: with one slot they are the paper's;
- ties, unspecified there, go to the faster node. Also in `mode: paper`;
- soft preferences of pods, of which the paper knows nothing, make a node seem slower. Also in `mode: paper`;
- rates are per node and workload, not one number per node. What else the learner does otherwise is listed
  in learn.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.class_arrays import NodeScalars
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Enqueue, PendingTasks, PlacePolicy, Profile, Unschedulable, View
from eclectus.maths.numbers import Arithmetic
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.model.settings import Setting, apply_implied
from eclectus.policies.rosella.place.compare import KEYS
from eclectus.policies.rosella.place.query import QUERIES
from eclectus.policies.rosella.place.replan import Replan
from eclectus.policies.rosella.place.sample import Sample

TIE = 1e-9  # weighs the service time just enough to break ties
PAPER = {
    "paper": {
        "view": "sample",
        "replan": False,
        "query": "proportional",
        "choices": 2,
        "distinct": False,
        "compare": "sq",
    }
}


@dataclass(eq=False)
class Rosella(PlacePolicy):
    """Proportional sampling, two choices; or the full view, re-planned."""

    view: Annotated[
        Literal["full", "sample"],
        Setting(
            "compare all nodes, or two sampled in proportion to their speed",
            why="one scheduler sees every node freshly, and a fresh full view wins; sample when several "
            "schedulers are active, or what is seen is older than a fifth of a task's time on a slow node",
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
    query: Annotated[
        Literal["proportional", "uniform"],
        Setting(
            "sampling: draw nodes in proportion to their speed, or all alike",
            why="the paper's; uniform draws lose stability where a few nodes do most of the work",
        ),
    ] = "proportional"
    choices: Annotated[
        int,
        Setting(
            "sampling: nodes drawn for a task, of which the best gets it",
            why="the paper's; one more after two is worth little, one less much",
            unit="nodes",
            least=1,
            most=64,
        ),
    ] = 2
    theta: Annotated[
        float | None,
        Setting(
            "re-planning: how many seconds of running a second of waiting is worth",
            why="unset: by load and slots, as measured in docs/placement.md; 1 is each task's own "
            "best and everybody's loss, 1000 the fastest node with room",
            least=1,
            most=1000,
        ),
    ] = None
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

    mode: Annotated[
        Literal["eclectus", "paper"],
        Setting(
            "paper: two draws in proportion to speed, the shorter queue gets the task, and the paper's "
            "learner; nothing may be said against it",
            why="to the letter the paper loses to a central queue at high load: docs/ablations.md",
            implies=PAPER,
        ),
    ] = "eclectus"

    def __post_init__(self) -> None:
        apply_implied(self)
        if self.view == "sample" and self.replan:
            raise SettingsError(
                "replan", "re-planning needs the full view; leave replan out or set view: full"
            )
        if self.view == "full" and (self.query, self.choices, self.distinct) != ("proportional", 2, False):
            raise SettingsError(
                "view",
                "the full view draws no nodes; leave out query, choices and distinct, or set view: sample",
            )
        self._replan = Replan(self.theta, self.soft_weight)
        self._sample = Sample(QUERIES[self.query], self.choices, self.distinct, self._cost)
        self._key = KEYS[self.compare]

    def check_profile(self, profile: Profile) -> None:
        """The paper's node queues are first come, first served. Raises SettingsError."""
        if self.mode == "paper" and not profile.line.first_come:
            problem = f"contradicts place's mode: {self.mode}, whose node queues are first come, first served"
            raise SettingsError("line", f"{problem}; leave it out")

    @property
    def learner_settings(self) -> Mapping[str, object]:
        """The learner must have the same mode."""
        return {"mode": self.mode}

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        """One task, one answer; re-planning passes some over."""
        if self.view == "full" and self.replan is not False:
            yield from self._replan.place(view, turns)
            return
        answer = self._sample.answer if self.view == "sample" else self._best
        for task in turns:
            yield answer(view, task)

    # -- full view, committing on arrival ----------------------------------------------------------

    def _best(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        if not task_class.feasible_count:
            return Unschedulable(task)
        ranking = view.ranking(task_class, lambda group, rows: self._costs(view, group, rows), self)
        best = ranking.best()
        return Unschedulable(task) if best is None else Enqueue(task, best[0])

    def _costs(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        cost = self._cost(np, task_class, view.speeds(task_class).rate, rows)
        return np.where(task_class.feasible[rows], cost, np.inf)

    # -- either way ------------------------------------------------------------------------------

    def _cost(self, m: Arithmetic, nodes: TaskClass | NodeScalars, rate: Any, at: Any) -> Any:
        """Of one feasible node or of many, as in compare.py."""
        soft = 1.0 + self.soft_weight * (1.0 - nodes.preference_score[at])
        return (self._key(m, nodes, rate, at) + TIE * m.divide(1.0, rate[at])) * soft
