"""Explaining changes nothing: an engine that is asked about everything decides as one that is not.

Hypothesis drives both (tests/support/engine/engine_machine.py); the answers are checked on the way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from eclectus.engine import scheduling_cycle
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn
from engine_machine import EngineMachine
from explained_engine import ExplainedEngine

LEARNED = partial(RosellaLearn, window=8)
WAYS = {
    "deferring": (Rosella, LEARNED, Preemption),
    "lines": (partial(Rosella, view="sample"), LEARNED, NoRelief),
    "random": (PowerOfTwo, LEARNED, Preemption),
    "scores": (LeastAllocated, LEARNED, Preemption),
}


class ExplainedMachine(EngineMachine):
    """The machine with an engine that is asked and one that is not."""

    def make(self) -> Any:
        return ExplainedEngine(super().make(), super().make())


def run_machine(way: str, examples: int) -> None:
    policy, learn, relieve = WAYS[way]
    ways = {"policy": staticmethod(policy), "learn": staticmethod(learn), "relieve": relieve}
    how = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],  # a story is shrunk for as long as a test may take
        print_blob=False,
    )
    run_state_machine_as_test(type(f"ExplainedMachine_{way}", (ExplainedMachine,), ways), settings=how)


@pytest.mark.parametrize("way", WAYS)
def test_an_engine_that_explains_decides_the_same(way: str) -> None:
    run_machine(way, examples=8)


def test_it_does_where_every_cycle_takes_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_cycle, "CLASSES_MOST", 1)
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", 2)
    run_machine("deferring", examples=8)
