"""Detects changed arrays: whether the arrays of the task classes equal those of newly made classes."""

from __future__ import annotations

import numpy as np

from eclectus.engine.engine import Engine
from eclectus.feasibility.task_class import TaskClass

OF_CLASS = ("feasible", "fits_now", "overflow", "empty_capacity", "service_slots", "preference_score")


def changed_array(engine: Engine) -> str:
    """The first array of a class that differs from one made afresh; empty if none does."""
    view = engine._state.view
    for (spec, workload), kept in list(view.classes._classes.items()):
        kept.refresh()
        fresh = TaskClass(view.cluster, spec, workload)
        for name in OF_CLASS:
            if not np.array_equal(getattr(kept, name), getattr(fresh, name)):
                return f"{name} of {spec}"
    return ""
