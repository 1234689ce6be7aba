"""Invariants under random events: no pod bound twice or lost, no node overcommitted (C9), correct arrays.

Hypothesis drives an engine (engine_machine.py in tests/support), once for each way to place, learn and evict,
and with DAG jobs (dag_engine_machine.py) for each way to order them.
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from builders import ExactSpeeds
from dag_engine_machine import DagEngineMachine
from driven_engine import reclaim_first
from eclectus.engine import scheduling_cycle
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn
from engine_machine import EngineMachine, PoolMachine, TwoProfilesMachine

UNEQUAL = {f"n{serial}": 1.0 if serial % 2 else 0.125 for serial in range(1000)}  # rates, tasks a second
DEAD = {name: 0.0 if at % 3 else rate for at, (name, rate) in enumerate(UNEQUAL.items())}
EXACT = partial(ExactSpeeds, UNEQUAL, otherwise=0.125)
LEARNED = partial(RosellaLearn, window=8)
WAYS = {
    "replan": (Rosella, EXACT, Preemption),
    "replan-learned": (Rosella, LEARNED, NoRelief),
    "replan-dead": (Rosella, partial(ExactSpeeds, DEAD, otherwise=0.0), NoRelief),
    "replan-selfish": (partial(Rosella, theta=1), EXACT, Preemption),
    "sampled-lines": (partial(Rosella, view="sample"), LEARNED, Preemption),
    "committed-lines": (partial(Rosella, replan=False, compare="sed"), EXACT, NoRelief),
    "least-allocated": (LeastAllocated, LEARNED, Preemption),
    "two-choices": (PowerOfTwo, LEARNED, Preemption),
    "pools": (BestFit, LEARNED, reclaim_first),
    "two-profiles": (BestFit, LEARNED, reclaim_first),
    "carbyne": (BestFit, LEARNED, Preemption),
    "carbyne-bounded": (Rosella, EXACT, NoRelief),
}
ORDERS = {
    "pools": FairPools,
    "carbyne": partial(Carbyne, altruism=0.5, reserve_after=5.0),
    "carbyne-bounded": partial(Carbyne, overhang="bounded", reserve_after=1.0),
}
MACHINES: dict[str, type[EngineMachine]] = {
    "carbyne": DagEngineMachine,
    "pools": PoolMachine,
    "two": TwoProfilesMachine,
}


def run_machine(way: str, examples: int, steps: int, derandomize: bool) -> None:
    policy, learn, relieve = WAYS[way]
    ways = {
        "policy": staticmethod(policy),
        "learn": staticmethod(learn),
        "relieve": staticmethod(relieve),
        "order": staticmethod(ORDERS.get(way, FifoOrder)),
    }
    machine = MACHINES.get(way.partition("-")[0], EngineMachine)
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=derandomize,
        # A story is shrunk for up to five minutes: the limit of a test, which would hide what has failed.
        phases=[Phase.generate] if derandomize else [Phase.generate, Phase.shrink],
        print_blob=False,
    )
    run_state_machine_as_test(type(f"EngineMachine_{way}", (machine,), ways), settings=how)


@pytest.mark.parametrize("way", WAYS)
def test_invariants_hold(way: str) -> None:
    run_machine(way, examples=16, steps=40, derandomize=True)


@pytest.mark.parametrize("way", WAYS)
def test_they_hold_where_every_cycle_takes_several_steps(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_cycle, "CLASSES_MOST", 1)
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", 2)
    run_machine(way, examples=7, steps=40, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
def test_invariants_hold_in_many_more_runs(way: str) -> None:
    run_machine(way, examples=300, steps=60, derandomize=False)
