"""Why no node has room for a pod, in one message: FitError, the outcome of preemption, what never fits."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.state import State
from eclectus.feasibility.fit_error import (
    NO_NODES,
    counted,
    fit_error,
    is_blocked_by_claims,
    left_over,
    never_feasible,
)
from eclectus.feasibility.funnel import NO_ROWS, StaticRefusals
from eclectus.feasibility.room_without import without_outranked
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec, Task
from eclectus.model.outranking import may_outrank

PREEMPTION_ROWS_MOST = 50  # nodes that are looked at for pods of lower priority, for each message
NO_RELIEF = (
    " preemption: this profile evicts no pods, although without pods of lower priority this pod would fit."
)
NEVER = " preemption: not eligible due to preemptionPolicy=Never."
IN_GANG = " preemption: not eligible: a pod group that is not complete evicts no pods."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_EXAMINED = "not examined for preemption victims"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class FitErrors:
    """The messages of one step for pods that fit nowhere; what they have in common is evaluated once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.refusals = StaticRefusals(state.cluster)
        # By spec, workload, priority, whether the pod may preempt, is nominated, and waits for its gang.
        self._made: dict[tuple[Spec, str, int, bool, bool, bool], str] = {}
        self.pods_examined = 0  # on nodes, for the outcome of preemption; a microsecond each

    def __len__(self) -> int:
        """Messages made so far."""
        return len(self._made)

    def message(self, task: Task, task_class: TaskClass) -> str:
        """Why no node has room, the outcome of preemption, and why no node ever will."""
        problem = self._state.volumes.problem(task.uid)
        if problem and is_blocked_by_claims(
            task.spec
        ):  # it may name a claim, and pods of the class have others
            return self._blocked(task, task_class, problem)
        is_nominated = self._state.placed.is_nominated(task.uid)
        in_gang = self._state.places.of(task.uid) in IN_A_GANG
        key = (task.spec, task.workload, task.priority, task.preempts, is_nominated, in_gang)
        if key not in self._made:
            cluster = self._state.cluster
            refused = fit_error(task_class, cluster, self.refusals)
            preemption = self._preemption(task, task_class, refused.resolvable)
            self._made[key] = refused.message + preemption + never_feasible(task_class, cluster)
        return self._made[key]

    def _blocked(self, task: Task, task_class: TaskClass, problem: str) -> str:
        nodes = len(self._state.cluster)
        if not nodes:
            return NO_NODES
        return f"0/{nodes} nodes are available: {problem}.{self._preemption(task, task_class, NO_ROWS)}"

    def _preemption(self, task: Task, task_class: TaskClass, resolvable: Rows) -> str:
        """The outcome of preemption, as kube-scheduler appends it; empty while pods make room for it.

        `resolvable`: rows of the nodes on which the eviction of pods might help.
        """
        state = self._state
        if not len(state.cluster) or state.placed.is_nominated(task.uid):
            return ""
        if not state.profiles[task.profile].relieve.traits.evicts:
            return NO_RELIEF if self._fits_without_outranked(task, task_class) else ""
        if state.places.of(task.uid) in IN_A_GANG:
            return IN_GANG
        if not task.preempts:
            return NEVER
        nodes = len(state.cluster)
        counts = Counter({NOT_HELPFUL: nodes - len(resolvable)})
        if not may_outrank(task.priority, state.placed.lowest_priority):
            counts[NO_VICTIMS] = len(resolvable)
        else:
            for row in resolvable[:PREEMPTION_ROWS_MOST].tolist():
                there = list(state.placed.on_row(row))
                self.pods_examined += len(there)
                counts.update(left_over(task_class, row, there, task, NO_VICTIMS))
            counts[NOT_EXAMINED] = max(len(resolvable) - PREEMPTION_ROWS_MOST, 0)
        return f" preemption: 0/{nodes} nodes are available: {counted(counts)}."

    def _fits_without_outranked(self, task: Task, task_class: TaskClass) -> bool:
        """Whether some node would have room without its pods of lower priority; a few nodes are looked at."""
        state = self._state
        if not may_outrank(task.priority, state.placed.lowest_priority):
            return False
        rows = np.flatnonzero(task_class.feasible[: len(state.cluster.names)])[:PREEMPTION_ROWS_MOST]
        on_row = state.placed.on_row
        found = (without_outranked(task_class, row, on_row(row), task) for row in rows.tolist())
        return any(room is not None and room.fits for room in found)
