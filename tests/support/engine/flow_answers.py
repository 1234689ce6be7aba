"""Answers to the flow problems of an engine, by our own solver."""

from __future__ import annotations

from eclectus.engine.engine import Engine
from eclectus.maths.min_cost_flow import min_cost_flow, routes_of
from eclectus.model.commands import Solve
from eclectus.model.events import Solved


def answer(engine: Engine, solve: Solve) -> Solved | None:
    """The answer to this command; None where nobody waits for it any more."""
    problem = engine.problem(solve.serial)
    if problem is None:
        return None
    flows = min_cost_flow(problem)
    if flows is None:
        return Solved(solve.serial, "infeasible")
    return Solved(solve.serial, "optimal", routes_of(problem, flows))
