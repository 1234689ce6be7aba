"""What a placement was chosen among, and which preferences of the pod its node does not meet.

Both are computed when asked, so that decisions do not pay: right after the step, by `Engine.read`.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from eclectus.engine.state import State
from eclectus.feasibility.rules.nodes import term_holds, term_words
from eclectus.model.objects import Task


@dataclass(frozen=True, slots=True)
class Decision:
    """A pod's placement beside its alternatives, as they are right after the step that has decided it."""

    policy: str  # the Place policy's class
    nodes: int
    feasible: int  # nodes that may run the pod, when they are empty enough
    with_room: int  # of those, nodes that have room for one more such pod
    speed: float  # the learned rate of the chosen node over the mean of the feasible ones
    rank: int  # 1: none of the feasible nodes is faster

    def __str__(self) -> str:
        found = f"{self.feasible} of {self.nodes} nodes are feasible, {self.with_room} have room for another"
        chosen = f"the node of rank {self.rank} by speed ({self.speed:.2f} of the mean)"
        return f"{found}; {self.policy} chose {chosen}"


def decision_about(state: State, uid: str) -> Decision | None:
    """The decision about a pod whose bind is assumed; None for other pods."""
    task, node = state.pending.get(uid), state.placed.assumed.get(uid)
    row = None if node is None else state.cluster.rows.get(node)
    if task is None or row is None:
        return None
    task_class = state.view.task_class(task)
    rates = state.view.speeds(task_class).rate
    of_feasible = rates[: len(task_class.feasible)][task_class.feasible]
    mean = float(of_feasible.mean()) if len(of_feasible) else 0.0
    return Decision(
        policy=str(state.profiles[task.profile].place),
        nodes=len(state.cluster),
        feasible=task_class.feasible_count,
        with_room=task_class.fits_now_count,
        speed=float(rates[row]) / mean if mean else 1.0,
        rank=1 + int(np.count_nonzero(of_feasible > rates[row])),
    )


MAX_EXAMINED = 32  # the heaviest preferences of a pod, which may state thousands


def unmet_by(state: State, uid: str) -> tuple[str, ...]:
    """The preferred node affinity that the node of an assumed pod does not meet, in words, heaviest first.

    Empty for other pods. Of very many preferences the heaviest are examined.
    """
    task = state.pending.get(uid)
    row = state.cluster.rows.get(state.placed.assumed.get(uid, ""))
    return () if task is None or row is None else unmet_on(state, task, row)


def unmet_on(state: State, task: Task, row: int) -> tuple[str, ...]:
    """The same for a pod on a row."""
    rows = np.array([row])
    heaviest = sorted(task.spec.preferences, key=attrgetter("weight"), reverse=True)[:MAX_EXAMINED]
    return tuple(
        f"{term_words(each.term)} (weight {each.weight})"
        for each in heaviest
        if not term_holds(state.cluster, each.term, rows)[0]
    )
