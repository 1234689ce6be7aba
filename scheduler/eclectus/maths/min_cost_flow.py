"""Minimum-cost flow: a problem as arrays, a solver for small ones, and which way the units of a flow take.

Every arc has a capacity and a cost for each unit, both whole numbers; every node a supply, negative where
units are wanted. Supplies add up to 0. A solution sends all units to where they are wanted, at the least sum
of costs.

The solver sends units along shortest paths one after the other (Busacker and Gowen 1961), which stays optimal
at each step: no circle of the residual network then has a negative cost. Distances come from Bellman and
Ford's algorithm, all arcs in one numpy operation, because networks of schedulers are a few arcs deep. It is
meant for the simulator, for tests, and for networks of some thousand arcs; larger ones are for a cost-scaling
solver in a process of its own (solver/).
"""

from collections import defaultdict
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

COST_MOST: Final = 10**9
"""Of an arc, either sign: solvers multiply costs by the number of nodes in 64 bits."""

_FAR: Final = np.iinfo(np.int64).max // 4


class FlowProblem(NamedTuple):
    """Arcs and supplies: node numbers are those of `supplies`."""

    tails: Ints
    heads: Ints
    capacities: Ints
    costs: Ints
    supplies: Ints

    @property
    def digest(self) -> str:
        """Equal for equal problems, on any machine."""
        found = blake2b(digest_size=16)
        for each in self:
            found.update(len(each).to_bytes(8, "little"))
            found.update(np.ascontiguousarray(each, dtype="<i8").tobytes())
        return found.hexdigest()


Route = tuple[int, int, int]
"""Units go from this node, which supplies them, by way of this one, the last before their end: how many."""


def problem_of(problem: FlowProblem) -> str:
    """What is wrong with a problem, in words; empty if nothing is. O(arcs)."""
    arcs, nodes = len(problem.tails), len(problem.supplies)
    if any(each.dtype != np.int64 or each.ndim != 1 for each in problem):
        return "its arrays are not of 64-bit integers"  # a solver would cut off fractions and say nothing
    if any(len(each) != arcs for each in problem[:4]):
        return "its arrays of arcs differ in length"
    ends = np.concatenate((problem.tails, problem.heads))
    is_wrong = {
        "an arc begins or ends at no node": bool(((ends < 0) | (ends >= nodes)).any()),
        "a capacity is negative": bool((problem.capacities < 0).any()),
        f"a cost is beyond {COST_MOST}": bool((np.abs(problem.costs) > COST_MOST).any()),
        "its supplies do not add up to 0": bool(problem.supplies.sum()),
    }
    return next((words for words, is_so in is_wrong.items() if is_so), "")


def min_cost_flow(problem: FlowProblem) -> Ints | None:
    """The flow of each arc; None if not all units can be sent."""
    nodes, arcs = len(problem.supplies), len(problem.tails)
    # Arcs of negative cost are full from the beginning, so that no circle has a negative cost.
    filled = np.where(problem.costs < 0, problem.capacities, 0)
    excess = problem.supplies.copy()
    np.subtract.at(excess, problem.tails, filled)
    np.add.at(excess, problem.heads, filled)
    gives, wants = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    source, sink = nodes, nodes + 1
    tails = np.concatenate((problem.tails, np.full(len(gives), source), wants))
    heads = np.concatenate((problem.heads, gives, np.full(len(wants), sink)))
    residual = np.concatenate((problem.capacities - filled, excess[gives], -excess[wants]))
    costs = np.concatenate((problem.costs, np.zeros(len(gives) + len(wants), dtype=np.int64)))
    back = np.concatenate((filled, np.zeros(len(gives) + len(wants), dtype=np.int64)))
    network = _Residual(
        np.concatenate((tails, heads)),
        np.concatenate((heads, tails)),
        np.concatenate((residual, back)),
        np.concatenate((costs, -costs)),
    )
    if not network.send(int(excess[gives].sum()), source, sink):
        return None
    found: Ints = network.residual[len(tails) : len(tails) + arcs].copy()
    return found


class _Residual:
    """What each arc can still take; arc i + n goes the way back of arc i, of n."""

    def __init__(self, tails: Ints, heads: Ints, residual: Ints, costs: Ints) -> None:
        self.residual = residual
        self._tails, self._heads = tails, heads
        self._order = np.argsort(heads, kind="stable")
        self._sorted_tails, self._sorted_costs = tails[self._order], costs[self._order]
        ends = heads[self._order]
        self._starts = np.flatnonzero(np.r_[True, ends[1:] != ends[:-1]]) if len(ends) else ends
        self._reached = ends[self._starts]
        self._lengths = np.diff(np.r_[self._starts, len(ends)])
        self._nodes = int(max(tails.max(), heads.max())) + 1 if len(tails) else 0

    def send(self, units: int, source: int, sink: int) -> bool:
        """Send all units, each along a shortest path; whether that was possible."""
        half = len(self._tails) // 2
        while units:
            arc_to = self._shortest(source)
            if sink >= self._nodes or arc_to[sink] < 0:
                return False
            units -= self._fill(arc_to, source, sink, half)
        return True

    def _shortest(self, source: int) -> Ints:
        """By node the last arc of a shortest path from the source; -1 where there is none."""
        distance = np.full(self._nodes, _FAR, dtype=np.int64)
        arc_to = np.full(self._nodes, -1, dtype=np.int64)
        if source >= self._nodes:
            return arc_to
        distance[source] = 0
        is_open = self.residual[self._order] > 0
        while True:
            by_way = np.where(is_open, distance[self._sorted_tails], _FAR)
            by_way = np.where(by_way < _FAR, by_way + self._sorted_costs, _FAR)
            least = np.minimum.reduceat(by_way, self._starts)
            is_nearer = least < distance[self._reached]
            if not is_nearer.any():
                self._distance = distance
                return arc_to
            distance[self._reached[is_nearer]] = least[is_nearer]
            is_best = np.repeat(is_nearer, self._lengths) & (by_way == np.repeat(least, self._lengths))
            best = self._order[is_best][::-1]  # of equal ones the first counts
            arc_to[self._heads[best]] = best

    def _fill(self, arc_to: Ints, source: int, sink: int, half: int) -> int:
        """Send what shortest paths can take, one for each last arc of equal length; how many units."""
        sent, length = 0, self._distance[sink]
        last = np.flatnonzero((self._heads[:half] == sink) & (self.residual[:half] > 0))
        for arc in last[self._distance[self._tails[last]] == length].tolist():
            path, node = [arc], int(self._tails[arc])
            while node != source:
                path.append(int(arc_to[node]))
                node = int(self._tails[path[-1]])
            units = int(self.residual[path].min())
            self.residual[path] -= units
            back = [each + half if each < half else each - half for each in path]
            self.residual[back] += units
            sent += units
        return sent


def routes_of(problem: FlowProblem, flows: Ints) -> tuple[Route, ...]:
    """Where the units of a flow go, by their origins; of equal units any. The arcs with flow have no circle.

    Units that end where they are supplied are left out.
    """
    ways: dict[int, list[list[int]]] = defaultdict(list)  # tail -> [head, units], the last arc first
    for arc in np.flatnonzero(flows)[::-1].tolist():
        ways[int(problem.tails[arc])].append([int(problem.heads[arc]), int(flows[arc])])
    wanted = {int(node): -int(problem.supplies[node]) for node in np.flatnonzero(problem.supplies < 0)}
    found: dict[tuple[int, int], int] = {}
    for node in np.flatnonzero(problem.supplies > 0).tolist():
        left = int(problem.supplies[node])
        while left:
            by_way, units = _next_route(node, left, ways, wanted)
            left -= units
            found[node, by_way] = found.get((node, by_way), 0) + units
    return tuple((node, by_way, units) for (node, by_way), units in found.items())


def _next_route(
    node: int, most: int, ways: dict[int, list[list[int]]], wanted: dict[int, int]
) -> tuple[int, int]:
    """The last node before the end of one route from this node, and its units, which are taken away."""
    path, at = list[tuple[int, list[int]]](), node
    while not wanted.get(at):
        path.append((at, ways[at][-1]))
        at = path[-1][1][0]
    units = min(most, wanted[at], *(step[1] for _, step in path))
    for tail, step in path:
        step[1] -= units
        if not step[1]:
            ways[tail].pop()
    wanted[at] -= units
    return path[-1][0], units
