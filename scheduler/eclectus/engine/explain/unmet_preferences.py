"""Which preferences of a pod its node does not meet: computed when asked, so that decisions do not pay."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from eclectus.engine.state import State
from eclectus.feasibility.rules.node_affinity import term_holds, term_words
from eclectus.model.objects import Task

MAX_EXAMINED = 32  # the heaviest preferences of a pod, which may state thousands


def unmet_preferences(state: State, uid: str) -> tuple[str, ...]:
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
