"""An engine whose policies are watched: whatever a policy writes into what it may only read is found."""

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


class Watched(PlacePolicy):
    """Asks the policy within, with the cluster's arrays shut against writing."""

    def __init__(self, within: PlacePolicy) -> None:
        self._within = within

    def place(self, view: View, pending: Iterator[Any]) -> Iterator[Action]:
        answers = self._within.place(view, pending)
        while True:
            _shut(view, True)
            try:
                action = next(answers)
            except StopIteration:
                return
            finally:
                _shut(view, False)
            yield action


def _shut(view: View, shut: bool) -> None:
    for name in OF_CLUSTER:  # the ledger first: its pages are views of it
        getattr(view.cluster, name).flags.writeable = not shut
    if view.cluster.devices is not None:
        view.cluster.devices.free.flags.writeable = not shut


def watch(engine: Engine) -> Engine:
    """The same engine, its Place policies watched."""
    from dataclasses import replace

    state = engine._state
    state.profiles = {
        name: replace(profile, place=Watched(profile.place)) for name, profile in state.profiles.items()
    }
    return engine


def bent(engine: Engine) -> str:
    """Which array of which class does not say what a fresh look says; empty if all do."""
    view = engine._state.view
    for (spec, workload), kept in list(view.classes._classes.items()):
        kept.refresh()
        fresh = TaskClass(view.cluster, spec, workload)
        for name in OF_CLASS:
            if not np.array_equal(getattr(kept, name), getattr(fresh, name)):
                return f"{name} of {spec}"
    return ""
