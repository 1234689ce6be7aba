"""A node believed dead gets no real work from Rosella's policies, and is found dead where it really is."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import PlacePolicy
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.rosella import Rosella
from eclectus.sim.base.random_streams import engine_seed
from eclectus.sim.run import build_world
from simulated import poisson, scenario
from worlds import World, numbered

WAYS = {
    "replanned": {},
    **{f"full {rule}": {"replan": False, "compare": rule} for rule in ("sq", "wait", "sed")},
    **{f"sample {rule}": {"view": "sample", "compare": rule} for rule in ("sq", "wait", "sed")},
    "sample distinct": {"view": "sample", "distinct": True},
}


def world(policy: PlacePolicy, **rates: float) -> World:
    return World(make_engine(policy, ExactSpeeds(rates)), *(make_node(name, cpu=2) for name in rates))


@pytest.mark.parametrize("way", WAYS)
def test_a_dead_node_gets_nothing_even_when_all_others_are_full(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0, one=1.0, two=0.5)  # type: ignore[arg-type]
    there.add(*numbered(12))
    for _ in range(4):
        there.sleep(100.0)
        for name in there.placed():
            there.end(name)
    assert {bind.node for bind in there.binds} == {"one", "two"}
    assert there.faults == []


@pytest.mark.parametrize("way", WAYS)
def test_who_could_only_run_there_waits_and_is_told(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0)  # type: ignore[arg-type]
    there.add(make_task("a"))
    there.sleep(60.0)
    assert there.binds == []
    assert there.words("a")


@pytest.mark.parametrize("way", WAYS)
def test_a_probe_goes_there_all_the_same(way: str) -> None:
    there = world(Rosella(**WAYS[way]), dead=0.0, one=1.0)  # type: ignore[arg-type]
    there.add(make_task("probe", node_name="dead", probe=True))
    there.sleep(60.0)
    assert [bind.node for bind in there.binds] == ["dead"]


def test_policies_that_do_not_go_by_speed_are_not_concerned() -> None:
    there = world(LeastAllocated(), dead=0.0, one=1.0)
    there.add(*numbered(4))
    assert {bind.node for bind in there.binds} == {"dead", "one"}


def frozen(policy: dict[str, Any]) -> list[tuple[float, str, int]]:
    """One of four machines stands still from 60 s to 300 s; its state and its line, when anything befalls.

    To freeze a machine that is frozen, or recover one that is well, changes nothing: it is there to look.
    """
    asked = scenario(
        cluster={"groups": [{"name": "a", "count": 3, "slots": 4}, {"name": "b", "count": 1, "slots": 4}]},
        workload=poisson(0.6, {"mean": "1s"}),
        profiles=[{"schedulerName": "it", "place": policy, "learn": {"policy": "rosella"}}],
        events=[{"at": at, "action": "freeze", "group": "b"} for at in (60, 80, 260, 299)]
        + [{"at": at, "action": "recover", "group": "b"} for at in (300, 399)],
        measure={"horizon": "400s"},
    )
    sim, _ = build_world(asked, asked.profiles[0], engine_seed(1))
    engine, seen = sim.engine, []

    def look() -> None:
        states = {cell.node: cell.state for cell in engine.learned_cells()}
        row = engine._state.cluster.rows["b-0"]
        seen.append((sim.now, states["b-0"], len(engine._state.node_queues.by_row.get(row, ()))))
        assert {states[name] for name in states if name != "b-0"} == {"live"}

    sim.on_perturbation = look
    sim.run()
    return seen


def test_a_frozen_machine_is_found_dead_its_line_ends_and_it_comes_back_by_its_own_work() -> None:
    seen = {at: (state, line) for at, state, line in frozen({"policy": "rosella", "view": "sample"})}
    assert [seen[at][0] for at in (60.0, 80.0, 260.0, 299.0, 399.0)] == [
        "live",
        "suspect",
        "dead",
        "dead",
        "live",
    ]
    assert seen[260.0][1] == seen[299.0][1]
