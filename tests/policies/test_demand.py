"""Loads and prices by class from what arrives: specialists keep off each other's nodes, others do not."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.explain.node import summary_of_prices
from eclectus.framework import Speeds
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella import costs as module
from eclectus.policies.rosella.costs import FIRST_STEPS, MAX_FACTOR, ClassDemand, Demand
from worlds import World

GOOD = 1.25**6  # tasks a second on the node that is good at them, and 1 on the other


class Specialists(ExactSpeeds):
    """The node `web` is good at web, the node `sort` at sort; `related`: `web` is good at both."""

    related = False

    def speeds(self, workload: str) -> Speeds:
        rate = self._rate.copy()
        for name, row in self.rows.items():
            rate[row] = GOOD if name == ("web" if self.related else workload) else 1.0
        return Speeds(rate, GOOD, self._epoch)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        self.rows = {**getattr(self, "rows", {}), node: row}
        super().add_node(row, node, capacity)


def arrived(*, related: bool = False, arrivals: int = 100) -> World:
    """Two nodes of four slots; one task of each workload arrives every second, and ends at once."""
    learn = Specialists({})
    learn.related = related
    world = World(make_engine(Rosella(), learn), *(make_node(name, cpu=4) for name in ("web", "sort")))
    for at in range(arrivals):
        world.sleep(0.5)
        kind = "web" if at % 2 else "sort"
        world.add(make_task(f"t{at}", workload=kind))
        world.end(f"t{at}")
    return world


def of_workload(demand: Demand, world: World, workload: str) -> ClassDemand:
    return demand.of(world.engine._state.view.task_class(make_task("more", workload=workload)))


def demand_of(workload: str, *, related: bool = False, arrivals: int = 100) -> ClassDemand:
    """As computed at once."""
    demand, world = Demand(), arrived(related=related, arrivals=arrivals)
    demand.refresh(world.engine._state.view)
    return of_workload(demand, world, workload)


def test_specialists_have_a_price_on_the_nodes_of_the_others() -> None:
    """1/14.5 of the other node's worth is done there: nearly the whole price."""
    web, sort = demand_of("web"), demand_of("sort")
    assert web.factor is not None
    assert sort.factor is not None
    assert web.factor[:2].tolist() == sort.factor[1::-1].tolist()
    assert web.factor[0] == 1.0
    assert 1.0 < web.factor[1] <= MAX_FACTOR * 1.25**0.5


def test_their_load_is_that_of_their_own_node() -> None:
    assert demand_of("web").load == pytest.approx(1 / (4 * GOOD), rel=0.1)


def test_related_nodes_have_no_price_and_both_loads_are_that_of_all() -> None:
    for workload in ("web", "sort"):
        found = demand_of(workload, related=True)
        assert found.factor is None
        assert found.load == pytest.approx(2 / (4 * GOOD + 4), rel=0.1)


def test_a_class_that_has_not_arrived_has_the_load_of_all_work_and_no_price() -> None:
    found = demand_of("unknown", related=True)
    assert (found.factor, found.version) == (None, 0)
    assert found.load == pytest.approx(2 / (4 * GOOD + 4), rel=0.1)


def test_without_arrivals_nothing_is_loaded() -> None:
    assert demand_of("web", arrivals=1).load == 0.0


@pytest.mark.parametrize("related", [False, True])
def test_metrics_have_the_prices_of_specialists_and_none_where_nodes_are_related(related: bool) -> None:
    summary = arrived(related=related).engine.read(summary_of_prices, "kubernetes.io/hostname", 5)
    assert summary is not None
    assert any(price > 1.0 for _, _, price in summary.classes) is not related


def test_in_several_steps_it_becomes_what_it_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes are read in two steps, and each step of the iteration is one more."""
    whole = demand_of("web")
    monkeypatch.setattr(module, "CELLS_A_STEP", 1)
    monkeypatch.setattr(module, "ITERATED_CELLS_A_STEP", 1)
    demand, world = Demand(), arrived()
    for _ in range(FIRST_STEPS):
        view = world.engine._state.view
        assert demand.refresh(view) == demand.refresh(view) == 0  # once in a step
        assert demand.of(view.task_class(make_task("more", workload="web"))) == ClassDemand(0.0, 0.0, None, 0)
        world.step(after=0.01)
    assert demand.refresh(world.engine._state.view) == 1
    found = of_workload(demand, world, "web")
    assert found.factor is not None
    assert whole.factor is not None
    assert (found.load, found.worth) == pytest.approx((whole.load, whole.worth), rel=0.01)  # a little later
    assert found.factor.tolist() == whole.factor.tolist()


def test_new_rows_end_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of another size do not fit to those that were read before."""
    monkeypatch.setattr(module, "CELLS_A_STEP", 1)
    demand, world = Demand(), arrived()
    demand.refresh(world.engine._state.view)
    for at in range(world.engine._state.cluster.capacity):
        world.put_node(make_node(f"n{at}", cpu=4))
    while not demand.refresh(world.engine._state.view):
        world.step(after=0.01)
    found = of_workload(demand, world, "web")
    assert found.factor is not None
    assert len(found.factor) == world.engine._state.cluster.capacity > 64
