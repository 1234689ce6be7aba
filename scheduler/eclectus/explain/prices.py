"""Prices of nodes, as metrics, NodeProfiles and explanations show them. Changes nothing.

The price by scarcity is what others want a node for that may run on few (accounts/node_prices.py). The price
for a workload is by how many times longer a task of it counts as running on a node, because the node is
better used for other work (`Place.class_prices`); of several classes of a workload the highest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from eclectus.accounts.node_prices import PriceSummary
from eclectus.engine.state import State
from eclectus.feasibility.constraint_set import constraint_set
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Place
from eclectus.maths.numbers import Floats
from eclectus.model.learned import ConstraintDemand, LearnedNode, LearnedWork, NodePrice
from eclectus.model.objects import Spec


def summary_of_prices(state: State, label: str, most: int) -> PriceSummary | None:
    """Prices by groups of nodes, at most `most` values of this label; None where none are kept. O(nodes)."""
    pricing = state.accounts.pricing
    if pricing is None:
        return None
    names, groups = state.cluster.groups_by(label, most)
    price = pricing.current.price
    return PriceSummary(
        groups=tuple((name, float(price[groups == at].mean())) for at, name in enumerate(names)),
        sets=tuple(pricing.figures()),
        classes=tuple(
            (name, workload, float(of_work[groups == at].mean()))
            for workload, of_work in _by_workload(state).items()
            for at, name in enumerate(names)
        ),
    )


def priced(state: State, nodes: Iterable[LearnedNode]) -> Iterator[LearnedNode]:
    """The same nodes with their prices; None where no policy asks for any, and of a node that is gone.

    Steps may come between two nodes.
    """
    pricing, by_workload = state.accounts.pricing, _by_workload(state)
    for each in nodes:
        row = state.cluster.rows.get(each.node)
        if pricing is None or row is None:
            yield each
        else:
            work = tuple(_priced_work(of_work, by_workload, row) for of_work in each.work)
            yield replace(each, price=pricing.current.price.item(row), work=work)


def price_of_node(state: State, row: int) -> float | None:
    """By scarcity; None where no policy asks for prices."""
    pricing = state.accounts.pricing
    return None if pricing is None else pricing.current.price.item(row)


def price_for(state: State, place: Place, task_class: TaskClass, row: int) -> NodePrice | None:
    """The prices of a node to a class of tasks; None where no policy asks for prices."""
    pricing = state.accounts.pricing
    if pricing is None:
        return None
    price, rows = pricing.current.price, task_class.waitable_rows
    factor = place.class_prices().get((task_class.spec, task_class.workload))
    return NodePrice(
        scarcity=price.item(row),
        least=float(price[rows].min(initial=price.item(row))),
        work=1.0 if factor is None or row >= len(factor) else factor.item(row),
    )


def demand_of(state: State, spec: Spec) -> ConstraintDemand | None:
    """What pods with the constraints of this one demand; None while nothing is known of it."""
    pricing = state.accounts.pricing
    return None if pricing is None else pricing.figures_of(constraint_set(spec))


def _by_workload(state: State) -> dict[str, Floats]:
    """Price by row, of each workload that has one somewhere; shape [capacity] each."""
    found: dict[str, Floats] = {}
    for profile in state.profiles.values():
        for (_, workload), factor in profile.place.class_prices().items():
            if len(factor) == state.cluster.capacity:  # otherwise rows were added since, and it is made anew
                found[workload] = np.maximum(found.get(workload, 1.0), factor)
    return found


def _priced_work(work: LearnedWork, by_workload: Mapping[str, Floats], row: int) -> LearnedWork:
    price = by_workload.get(work.workload)
    return work if price is None or row >= len(price) else replace(work, price=price.item(row))
