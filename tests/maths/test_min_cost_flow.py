"""Each flow is checked by a certificate: it is conserved and within capacities, and no circle is cheaper."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from eclectus.maths.min_cost_flow import COST_MOST, FlowProblem, min_cost_flow, problem_of, routes_of

Arc = tuple[int, int, int, int]


def made(arcs: list[Arc], supplies: list[int]) -> FlowProblem:
    columns = np.array(arcs, dtype=np.int64).reshape(-1, 4).T
    return FlowProblem(*columns, np.array(supplies, dtype=np.int64))


def cost_of(problem: FlowProblem, flows: np.ndarray) -> int:
    return int((problem.costs * flows).sum())


def assert_optimal(problem: FlowProblem, flows: np.ndarray) -> None:
    assert (flows >= 0).all()
    assert (flows <= problem.capacities).all()
    balance = problem.supplies.copy()
    np.subtract.at(balance, problem.tails, flows)
    np.add.at(balance, problem.heads, flows)
    assert not balance.any(), "units are lost"
    assert not has_cheaper_circle(problem, flows)


def has_cheaper_circle(problem: FlowProblem, flows: np.ndarray) -> bool:
    """Bellman and Ford's: distances still fall after as many rounds as there are nodes."""
    arcs = list(zip(*(each.tolist() for each in problem[:4]), flows.tolist(), strict=True))
    ways = [(tail, head, cost) for tail, head, most, cost, flow in arcs if flow < most]
    ways += [(head, tail, -cost) for tail, head, _, cost, flow in arcs if flow]
    distance = [0] * len(problem.supplies)
    for _ in range(len(distance) + 1):
        before = list(distance)
        for tail, head, cost in ways:
            distance[head] = min(distance[head], distance[tail] + cost)
        if distance == before:
            return False
    return True


def random_problem(random: Random) -> FlowProblem:
    """Any arcs, circles, parallel ones and such of negative cost too."""
    nodes = random.randint(2, 12)
    arcs = [
        (random.randrange(nodes), random.randrange(nodes), random.randint(0, 9), random.randint(-20, 40))
        for _ in range(random.randint(0, 50))
    ]
    supplies = [random.randint(-4, 4) for _ in range(nodes)]
    supplies[-1] -= sum(supplies)
    return made(arcs, supplies)


def test_1000_random_flows_have_a_certificate() -> None:
    random, solved = Random(7), 0
    for _ in range(1000):
        problem = random_problem(random)
        flows = min_cost_flow(problem)
        if flows is not None:
            solved += 1
            assert_optimal(problem, flows)
    assert solved > 250


def test_a_flow_that_is_not_the_cheapest_has_no_certificate() -> None:
    problem = made([(0, 1, 5, 3), (0, 1, 5, 1)], [2, -2])
    assert has_cheaper_circle(problem, np.array([2, 0]))
    assert not has_cheaper_circle(problem, np.array([0, 2]))


def test_none_only_where_no_flow_exists() -> None:
    """Against all flows of small problems."""
    random = Random(3)
    for _ in range(300):
        nodes = random.randint(2, 4)
        arcs = [
            (random.randrange(nodes), random.randrange(nodes), random.randint(0, 2), random.randint(-5, 9))
            for _ in range(random.randint(0, 6))
        ]
        supplies = [random.randint(-2, 2) for _ in range(nodes)]
        supplies[-1] -= sum(supplies)
        problem = made(arcs, supplies)
        costs = [cost_of(problem, flows) for flows in every_flow(problem)]
        flows = min_cost_flow(problem)
        assert (flows is None) == (not costs)
        assert flows is None or cost_of(problem, flows) == min(costs)


def every_flow(problem: FlowProblem) -> list[np.ndarray]:
    found = []
    for flows in product(*(range(most + 1) for most in problem.capacities.tolist())):
        balance = problem.supplies.copy()
        for tail, head, flow in zip(problem.tails, problem.heads, flows, strict=True):
            balance[tail] -= flow
            balance[head] += flow
        if not balance.any():
            found.append(np.array(flows, dtype=np.int64))
    return found


def test_equal_problems_get_equal_flows() -> None:
    random = Random(5)
    problem = random_problem(random)
    while (flows := min_cost_flow(problem)) is None:
        problem = random_problem(random)
    copy = FlowProblem(*(each.copy() for each in problem))
    assert problem.digest == copy.digest
    assert np.array_equal(flows, min_cost_flow(copy))


def test_a_digest_tells_problems_apart() -> None:
    one = made([(0, 1, 5, 3)], [2, -2])
    others = [made([(0, 1, 5, 4)], [2, -2]), made([(0, 1, 5, 3)], [1, -1]), made([(1, 0, 5, 3)], [2, -2])]
    assert len({each.digest for each in (one, *others)}) == 4


def test_routes_name_the_last_node_before_the_end() -> None:
    #   0 (3 units) -> 2, 1 (2 units) -> 2; 2 keeps one unit; 2 -> 3 -> 5 and 2 -> 4 -> 5
    arcs = [(0, 2, 9, 0), (1, 2, 9, 0), (2, 3, 2, 0), (2, 4, 9, 1), (3, 5, 9, 0), (4, 5, 9, 0)]
    problem = made(arcs, [3, 2, -1, 0, 0, -4])
    flows = min_cost_flow(problem)
    assert flows is not None
    routes = routes_of(problem, flows)
    assert sum(units for _, _, units in routes) == 5
    assert {by_way for _, by_way, _ in routes} == {0, 3, 4}
    assert sum(units for origin, _, units in routes if origin == 0) == 3
    assert sum(units for _, by_way, units in routes if by_way == 3) == 2


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (made([(0, 1, 1, 0)], [1, 0]), "add up"),
        (made([(0, 2, 1, 0)], [1, -1]), "no node"),
        (made([(-1, 1, 1, 0)], [1, -1]), "no node"),
        (made([(0, 1, -1, 0)], [1, -1]), "capacity"),
        (made([(0, 1, 1, COST_MOST + 1)], [1, -1]), "cost"),
        (made([(0, 1, 1, 0)], [1, -1])._replace(costs=np.array([1.7])), "integers"),
        (made([(0, 1, 1, 0)], [1, -1])._replace(costs=np.array([1, 2])), "length"),
    ],
)
def test_what_a_solver_would_get_wrong_is_said(problem: FlowProblem, words: str) -> None:
    assert words in problem_of(problem)
    assert problem_of(made([(0, 1, 1, 0)], [1, -1])) == ""
