"""Answers to problems that policies have asked to have solved, where nothing else goes on meanwhile."""

from eclectus.engine.engine import Engine
from eclectus.maths.min_cost_flow import min_cost_flow, routes_of
from eclectus.model.commands import Solve
from eclectus.model.events import Solved


def solved(engine: Engine, command: Solve) -> Solved:
    """The answer to the problem of the command, by our own solver; infeasible if there is none."""
    problem = engine.problem(command.serial)
    flows = None if problem is None else min_cost_flow(problem)
    if problem is None or flows is None:
        return Solved(command.serial, "infeasible")
    return Solved(command.serial, "optimal", routes_of(problem, flows))
