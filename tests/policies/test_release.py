"""The rate at which tasks end on a node is that of what runs there, each weighted by what it holds."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Speeds
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella import replan as module
from eclectus.policies.rosella.replan import ReleaseRates
from worlds import World

RATES = {"long": 1 / 60, "short": 1 / 5}


class ByWorkload(ExactSpeeds):
    """Rates by workload; all nodes are alike."""

    def speeds(self, workload: str) -> Speeds:
        return Speeds(self._rate * RATES[workload], 1.0, self._epoch)


def release(world: World) -> list[float]:
    """Of the nodes n0 and n1."""
    return ReleaseRates().refresh(world.engine._state.view, 0)[:2].tolist()


def running(*, services: int = 0) -> World:
    """On n0 a long task of two cores and two short ones of one, and perhaps services."""
    world = World(make_engine(Rosella(), ByWorkload({})), make_node("n0", cpu=8), make_node("n1", cpu=8))
    world.add(make_task("long", cpu=2, workload="long", node="n0", phase="Running"))
    for at in range(2):
        world.add(make_task(f"short{at}", workload="short", node="n0", phase="Running"))
    for at in range(services):
        world.add(make_task(f"s{at}", workload="short", node="n0", phase="Running", long_running=True))
    return world


@pytest.mark.parametrize("services", [0, 3])
def test_each_task_counts_by_what_it_holds_and_services_do_not(services: int) -> None:
    assert release(running(services=services)) == pytest.approx([(2 / 60 + 2 / 5) / 4, 0.0])


def test_it_follows_what_begins_and_ends() -> None:
    world, rates = running(), ReleaseRates()
    rates.refresh(world.engine._state.view, 0)
    world.delete("short0")
    world.delete("short1")
    assert rates.refresh(world.engine._state.view, 0)[0] == pytest.approx(1 / 60)


def test_a_changed_node_costs_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    world, rates, reckoned = running(), ReleaseRates(), list[int]()
    rates.refresh(world.engine._state.view, 0)
    monkeypatch.setattr(ReleaseRates, "_update", lambda self, view, rows: reckoned.extend(rows))
    world.put_node(make_node("n1", cpu=8, labels={"a": "b"}))
    rates.refresh(world.engine._state.view, 0)
    assert reckoned == [1]


def test_what_is_only_tentative_costs_nothing_until_speeds_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    world, rates, reckoned = running(), ReleaseRates(), list[int]()
    view = world.engine._state.view
    rates.refresh(view, 0)
    monkeypatch.setattr(module, "_mean_rate", lambda view, row: float(reckoned.append(row) or 0.0))
    monkeypatch.setattr(module, "ROWS_IN_TURN", 0)
    view.cluster.add_tentative(1, (("cpu", 1000),))
    rates.refresh(view, 0)
    assert reckoned == []
    view.cluster.add_tentative(1, (("cpu", 1000),))
    rates.refresh(view, 1)
    assert reckoned == [1]


def test_of_many_changes_the_others_follow_in_later_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MOST", 1)
    monkeypatch.setattr(module, "ROWS_IN_TURN", 1)
    world, rates = running(), ReleaseRates()
    world.add(make_task("other", workload="long", node="n1", phase="Running"))
    for of_n1 in (0.0, 1 / 60):
        for _ in range(2):  # once in a step
            found = rates.refresh(world.engine._state.view, 0)[:2].tolist()
        assert found == pytest.approx([(2 / 60 + 2 / 5) / 4, of_n1])
        world.step(after=0.01)
    assert rates.version == 2
