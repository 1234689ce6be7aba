"""The solver itself: OR-Tools where it is installed, otherwise our own."""

from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Final

import numpy as np

from eclectus.maths.min_cost_flow import FlowProblem, Ints, min_cost_flow, routes_of
from eclectus.model.events import Solved

IS_INSTALLED: Final = find_spec("ortools") is not None


def solved(serial: int, problem: FlowProblem) -> Solved:
    """The answer to a problem."""
    began = perf_counter()
    flows = _by_cost_scaling(problem) if IS_INSTALLED else min_cost_flow(problem)
    if flows is None:
        return Solved(serial, "infeasible", (), perf_counter() - began)
    return Solved(serial, "optimal", routes_of(problem, flows), perf_counter() - began)


def _by_cost_scaling(problem: FlowProblem) -> Ints | None:
    """The flow of each arc, by OR-Tools; None if not all units can be sent."""
    module: Any = import_module("ortools.graph.python.min_cost_flow")
    network = module.SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(
        problem.tails.astype(np.int32), problem.heads.astype(np.int32), problem.capacities, problem.costs
    )
    network.set_nodes_supplies(np.arange(len(problem.supplies), dtype=np.int32), problem.supplies)
    status = network.solve()
    if status == network.INFEASIBLE:
        return None
    if status != network.OPTIMAL:
        raise ValueError(f"the solver says {status}")
    flows: Ints = np.asarray(network.flows(arcs), dtype=np.int64)
    return flows
