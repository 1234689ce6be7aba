"""Problems that policies have asked to have solved, and the answers that have come.

Nothing of them is written anywhere: a new leader's policies ask anew.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eclectus.framework import Ask, FlowProblem, Policy, Solution
from eclectus.model.commands import Solve
from eclectus.model.events import Solved

ARCS_MOST = 1_000_000  # in one problem: 40 MB, and some seconds for a solver of cost scaling


class _Asked(NamedTuple):
    policy: int
    problem: FlowProblem


class Solves:
    """One problem for each policy at most, by serial number until it is answered."""

    def __init__(self) -> None:
        self._serial = 0
        self._asked: dict[int, _Asked] = {}
        self._solutions: dict[int, Solution] = {}
        self.solutions: Mapping[int, Solution] = self._solutions  # by the identity of the policy

    def ask(self, policy: Policy, profile: str, ask: Ask) -> Solve:
        """A policy asks; what it has asked before is void."""
        self._solutions.pop(id(policy), None)
        self._asked = {serial: each for serial, each in self._asked.items() if each.policy != id(policy)}
        self._serial += 1
        self._asked[self._serial] = _Asked(id(policy), ask.problem)
        problem = ask.problem
        return Solve(self._serial, profile, len(problem.tails), problem.digest, ask.within)

    def answer(self, solved: Solved) -> None:
        """An answer has come; no effect where nobody waits for it any more."""
        asked = self._asked.pop(solved.serial, None)
        if asked is not None:
            self._solutions[asked.policy] = Solution(solved.status, solved.routes)

    def problem(self, serial: int) -> FlowProblem | None:
        """The problem of a command; None once it is answered or void."""
        asked = self._asked.get(serial)
        return None if asked is None else asked.problem
