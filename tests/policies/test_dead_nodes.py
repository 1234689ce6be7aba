"""A dead node is the last choice of Rosella's policies, and a frozen machine is found dead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Place, Speeds
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.pss import Proportional
from eclectus.policies.rosella import Rosella
from eclectus.sim.base.random_draws import engine_seed
from eclectus.sim.runs import build_world
from short_scenarios import poisson, scenario
from worlds import World, numbered

WAYS = {
    "replanned": {},
    **{f"full {rule}": {"replan": False, "compare": rule} for rule in ("sq", "wait", "sed")},
    **{f"sample {rule}": {"view": "sample", "compare": rule} for rule in ("sq", "wait", "sed")},
    "sample distinct": {"view": "sample", "distinct": True},
}


def world(policy: Place, **rates: float) -> World:
    return World(make_engine(policy, ExactSpeeds(rates)), *(make_node(name, cpu=2) for name in rates))


@pytest.mark.parametrize("way", WAYS)
def test_a_dead_node_gets_no_task_even_when_all_others_are_full(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0, one=1.0, two=0.5)  # type: ignore[arg-type]
    there.add(*numbered(12))
    for _ in range(4):
        there.sleep(30.0)
        for name in there.placed():
            there.end(name)
    assert {bind.node for bind in there.binds} == {"one", "two"}
    assert there.faults == []


@pytest.mark.parametrize("long_running", [False, True], ids=["task", "service"])
@pytest.mark.parametrize("way", WAYS)
def test_a_pod_that_may_run_only_on_dead_nodes_is_placed_there(way: str, long_running: bool) -> None:
    """Whoever makes them count as dead: two sleeping pods of its namespace suffice."""
    there = world(Rosella(**WAYS[way]), dead=0.0, live=1.0)  # type: ignore[arg-type]
    there.add(make_task("a", node_name="dead", long_running=long_running))
    assert there.placed() == {"a": "dead"}


def test_so_does_proportional_sampling() -> None:
    there = world(Proportional(), dead=0.0, live=1.0)
    there.add(make_task("a", node_name="dead"))
    assert there.placed() == {"a": "dead"}


@pytest.mark.parametrize("way", WAYS)
def test_a_dead_node_is_the_last_choice_and_no_task_waits_for_ever_beside_it(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0, live=1.0)  # type: ignore[arg-type]
    there.add(*numbered(5))
    there.sleep(149.0)
    assert set(there.placed().values()) == {"live"}
    there.sleep(151.0)
    assert sorted(there.placed().values()) == ["dead", "dead", "live", "live"]


class Alike(ExactSpeeds):
    """Nodes are not known to differ; `silent`: rates below 1 are because nodes are silent, not by chance."""

    def __init__(self, rates: dict[str, float], *, silent: bool) -> None:
        super().__init__(rates)
        self._silent = silent

    def speeds(self, workload: str) -> Speeds:
        share = self._rate if self._silent else np.ones_like(self._rate)
        return replace(super().speeds(workload), differ=False, share=share)


@pytest.mark.parametrize(
    ("learn", "is_used"),
    [
        (ExactSpeeds({"fast": 1.0, "slow": 0.2}), False),
        (Alike({"fast": 1.0, "slow": 0.2}, silent=True), False),
        (Alike({"fast": 1.0, "slow": 0.2}, silent=False), True),
    ],
    ids=["a slow node", "a silent node", "one that looks slow by chance"],
)
def test_nodes_are_waited_for_that_are_faster_but_not_by_chance(learn: ExactSpeeds, is_used: bool) -> None:
    there = World(make_engine(Rosella(), learn), *(make_node(name, cpu=2) for name in ("fast", "slow")))
    there.add(*numbered(3))
    assert ("slow" in there.placed().values()) == is_used


@pytest.mark.parametrize("way", WAYS)
def test_a_probe_goes_to_a_dead_node(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0, one=1.0)  # type: ignore[arg-type]
    there.add(make_task("probe", node_name="dead", probe=True))
    there.sleep(60.0)
    assert [bind.node for bind in there.binds] == ["dead"]


def test_policies_that_do_not_use_speeds_still_use_a_dead_node() -> None:
    there = world(LeastAllocated(), dead=0.0, one=1.0)
    there.add(*numbered(4))
    assert {bind.node for bind in there.binds} == {"dead", "one"}


def frozen(policy: dict[str, Any]) -> list[tuple[float, str, int]]:
    """One of four machines is frozen from 60 s to 300 s; (time, state, length of its queue) at each event.

    Events that freeze a frozen machine or recover a working one change nothing; they are there to read the
    state.
    """
    asked = scenario(
        cluster={"groups": [{"name": "a", "count": 3, "slots": 4}, {"name": "b", "count": 1, "slots": 4}]},
        workload=poisson(0.6, {"mean": "1s"}),
        profiles=[{"schedulerName": "it", "place": policy, "learn": {"policy": "rosella"}}],
        events=[{"at": at, "action": "freeze", "group": "b"} for at in (60, 80, 260, 299)]
        + [{"at": at, "action": "recover", "group": "b"} for at in (300, 399)],
        measure={"horizon": "400s"},
    )
    sim = build_world(asked, asked.profiles[0], engine_seed(1))
    engine, seen = sim.engine, []

    def observe() -> None:
        states = {cell.node: cell.state for cell in engine.learn.learned_cells()}
        row = engine._state.cluster.rows["b-0"]
        seen.append((sim.now, states["b-0"], len(engine._state.node_queues.by_row.get(row, ()))))
        assert {states[name] for name in states if name != "b-0"} == {"live"}

    sim.on_perturbation = observe
    sim.run()
    return seen


def test_a_frozen_machine_gets_no_more_tasks_and_becomes_live_by_its_own_tasks() -> None:
    """Whether it counts as dead depends on how many of its slots were in use when it froze."""
    seen = {at: (state, queued) for at, state, queued in frozen({"policy": "rosella", "view": "sample"})}
    assert [seen[at][0] for at in (60.0, 80.0, 399.0)] == ["live", "suspect", "live"]
    assert {seen[at][0] for at in (260.0, 299.0)} <= {"suspect", "dead"}
    assert seen[260.0][1] <= seen[80.0][1] + 1  # of some 1,700 tasks that come meanwhile
    assert seen[260.0][1] >= seen[299.0][1]  # tasks may leave it: those that wait beside room for too long
