"""A pending pod moves between places as the table says: every move of it is walked, and no other."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine.places import MOVES
from eclectus.engine.pod_specs import late_pods
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    NodeGone,
    NodeSeen,
    PoolGone,
    PoolSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import PodAffinityTerm, Requirement, Task
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.power_of_two import Uniform
from gangs import group, key, no_group
from walked_moves import walked_moves

PODS, STEPS = 4, 2_000


class Moody(FifoOrder):
    """Fails while `fails` says so."""

    fails = False

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        if self.fails:
            raise ValueError("not today")
        return super().key(task, serial)


def limited(pods: int) -> Pool:
    """The pool of all these pods, which may hold so many."""
    return Pool("default", max_share=PoolAmounts((("pods", pods),)))


def _walk(seed: int) -> None:
    order, rng, now = Moody(), Random(seed), 0.0

    def late() -> dict[str, Any]:
        """One of two terms, of which only one may wait."""
        selector = (Requirement("app", "In", (rng.choice("ab"),)),)
        return {"anti_affinity_terms": (PodAffinityTerm(HOSTNAME, selector, ("default",)),)}

    engine = make_engine(Uniform(queue="lines"), ExactSpeeds({}), order=order, wait_limit=None)
    uids: dict[int, int] = dict.fromkeys(range(PODS), 0)  # how many pods have had a name: no uid comes twice

    def seen(at: int) -> Event:
        fields = rng.choice(
            (
                {},
                {"gang": key(), "cpu": 2},
                {"gang": key(), "cpu": 3},
                {"gates": ("a",)},
                {"deleting": True},
                {"nominated": "n1"},
                late(),
                {**late(), "gang": key(), "cpu": 3},
                {**late(), "gates": ("a",)},
            )
        )
        task = make_task(f"p{at}-{uids[at]}", **{"cpu": rng.choice((1, 2)), **fields})
        known = engine._state.pending.get(task.uid)  # a pod that is being deleted stays so
        return TaskSeen(replace(task, deleting=task.deleting or (known is not None and known.deleting)))

    def gone(at: int) -> Event:
        uids[at] += 1
        return TaskGone(f"uid-p{at}-{uids[at] - 1}")

    def any_event() -> Event:
        at = rng.randrange(PODS)
        uid = f"uid-p{at}-{uids[at]}"
        node = engine._state.placed.assumed.get(uid, "n1")
        return rng.choice(
            (
                *(lambda: seen(at),) * 8,
                lambda: gone(at),
                lambda: BindRefused(uid, node, "conflict"),
                lambda: BindConfirmed(uid, node),
                lambda: NodeSeen(make_node("n1", cpu=rng.choice((1, 1, 4)))),
                lambda: NodeGone("n1"),
                *(lambda: PoolSeen(limited(rng.choice((0, 0, 9)))),) * 4,
                lambda: PoolGone("default"),
                lambda: group(minimum=rng.choice((1, 2, 2))),
                no_group,
            )
        )()

    engine.step([Resumed()], now)
    for _ in range(STEPS):
        order.fails = rng.random() < 0.2
        now += rng.choice((0.0, 0.1, 1.0, 12.0))
        engine.step([any_event()], now)


def test_every_move_of_the_table_is_walked_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_pods, "TERMS_MOST", 1)
    table = {(before, after) for before, afters in MOVES.items() for after in afters}
    with walked_moves() as walked:
        for seed in range(1, 33):
            _walk(seed)
            if walked == table:
                break
    assert (sorted(walked - table, key=str), sorted(table - walked, key=str)) == ([], [])
