"""An engine that detects when a policy writes to arrays that it may only read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eclectus.engine.engine import Engine
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, PlacePolicy, View

OF_CLUSTER = (
    "layers",
    "allocatable",
    "used",
    "tentative",
    "long_running",
    "scored",
    "present",
    "cordoned",
    "taint_set",
)
OF_CLASS = ("feasible", "fits_now", "overflow", "empty_capacity", "service_slots", "preference_score")


class ReadOnly(PlacePolicy):
    """Calls a policy while the cluster's arrays are read-only."""

    def __init__(self, policy: PlacePolicy) -> None:
        self._policy = policy

    def place(self, view: View, pending: Iterator[Any]) -> Iterator[Action]:
        answers = self._policy.place(view, pending)
        while True:
            _lock(view, True)
            try:
                action = next(answers)
            except StopIteration:
                return
            finally:
                _lock(view, False)
            yield action


def _lock(view: View, is_locked: bool) -> None:
    for name in OF_CLUSTER:  # the table first: its layers are views of it
        getattr(view.cluster, name).flags.writeable = not is_locked
    if view.cluster.devices is not None:
        view.cluster.devices.free.flags.writeable = not is_locked


def with_read_only_view(engine: Engine) -> Engine:
    """The same engine, with its Place policies wrapped in ReadOnly."""
    from dataclasses import replace

    state = engine._state
    state.profiles = {
        name: replace(profile, place=ReadOnly(profile.place)) for name, profile in state.profiles.items()
    }
    return engine


def changed_array(engine: Engine) -> str:
    """The array of a task class that differs from a newly computed one; empty if all agree."""
    view = engine._state.view
    for (spec, workload), kept in list(view.classes._classes.items()):
        kept.refresh()
        fresh = TaskClass(view.cluster, spec, workload)
        for name in OF_CLASS:
            if not np.array_equal(getattr(kept, name), getattr(fresh, name)):
                return f"{name} of {spec}"
    return ""
