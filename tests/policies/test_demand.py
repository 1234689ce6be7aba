"""Loads and prices by class from what arrives: specialists keep off each other's nodes, others do not."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Speeds
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.place.demand import MAX_FACTOR, ClassDemand, Demand
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


def demand_of(workload: str, *, related: bool = False, arrivals: int = 100) -> ClassDemand:
    """Two nodes of four slots; one task of each workload arrives every second, and ends at once."""
    learn = Specialists({})
    learn.related = related
    world = World(make_engine(Rosella(), learn), *(make_node(name, cpu=4) for name in ("web", "sort")))
    for at in range(arrivals):
        world.sleep(0.5)
        kind = "web" if at % 2 else "sort"
        world.add(make_task(f"t{at}", workload=kind))
        world.end(f"t{at}")
    demand, view = Demand(), world.engine._state.view
    demand.refresh(view)
    return demand.of(view.task_class(make_task("more", workload=workload)))


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
