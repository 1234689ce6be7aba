"""The network of a round by the golden cases: psi 1, omega .5; costs per pod, in whole numbers."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np

from eclectus.maths.min_cost_flow import min_cost_flow, problem_of, routes_of
from eclectus.policies.quincy.graph import Group, Job, NodeSlots, Reach, feasible_bounds, network


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def reach(slots: list[int], costs: list[int] | None = None, rise: int = 0) -> Reach:
    """A class that may run on every node."""
    count = len(slots)
    return Reach(
        np.arange(count),
        ints(*slots),
        np.zeros(count, dtype=np.int64) if costs is None else ints(*costs),
        np.full(count, rise),
    )


def crowding(slots: list[int], costs: list[int] | None = None, rise: int = 0) -> NodeSlots:
    return NodeSlots(ints(*slots), ints(*(costs or [0] * len(slots))), rise)


def placed(groups: list[Group], jobs: list[Job], reaches: list[Reach], of: NodeSlots) -> tuple[int, dict]:
    """The least cost, and (group, node) -> pods."""
    built = network(groups, jobs, reaches, of)
    assert problem_of(built.problem) == ""
    flows = min_cost_flow(built.problem)
    assert flows is not None
    found: dict[tuple[int, int], int] = {}
    for group, node, pods in built.placed(routes_of(built.problem, flows)):
        found[group, node] = found.get((group, node), 0) + pods
    return int((flows * built.problem.costs).sum()), found


# Input 10 GB, all on M1, a copy of 4 on M3; racks {M0, M1}, {M2, M3}; xi 2.
ONE_COPY = Group(0, 0, 1, 10**6, 16, (1, 3), (0, 12), (("r0", (0, 1), 10), ("r1", (2, 3), 16)))


def alone(slots: list[int], group: Group = ONE_COPY) -> tuple[int, dict]:
    return placed([group], [Job()], [reach(slots)], crowding(slots))


def test_q1_the_nearest_node_with_room() -> None:
    assert alone([1, 1, 1, 1]) == (0, {(0, 1): 1})
    assert alone([1, 0, 1, 1]) == (10, {(0, 0): 1})
    assert alone([0, 0, 1, 1]) == (12, {(0, 3): 1})


def test_q2_it_waits_until_waiting_costs_more() -> None:
    only_m2 = [0, 0, 1, 0]
    assert alone(only_m2, ONE_COPY._replace(waits_at=15)) == (15, {})
    assert alone(only_m2, ONE_COPY._replace(waits_at=17)) == (16, {(0, 2): 1})
    assert alone(only_m2, ONE_COPY._replace(waits_at=16))[0] == 16


def test_q5_bounds_of_jobs() -> None:
    groups = [Group(0, 0, 4, 50, 1), Group(1, 0, 4, 10, 1)]
    slots = [1, 1, 1, 1]

    def run(a: Job, b: Job) -> tuple[int, int, int]:
        cost, found = placed(groups, [a, b], [reach(slots)], crowding(slots))
        started = [sum(pods for (group, _), pods in found.items() if group == at) for at in (0, 1)]
        return cost, started[0], started[1]

    assert run(Job(0, 2), Job(0, 2)) == (124, 2, 2)
    assert run(Job(3, 3), Job(1, 4)) == (84, 3, 1)
    assert run(Job(), Job())[1:] == (4, 0)


def test_q6_bounds_that_cannot_be_met_are_made_smaller() -> None:
    assert feasible_bounds([Job(3), Job(2)], [4, 4], 4) == [(2, 4), (1, 4)]
    assert feasible_bounds([Job(2)], [1], 4) == [(1, 1)]
    assert feasible_bounds([Job(2, 1)], [4], 4) == [(2, 2)]
    groups = [Group(0, 0, 4, 50, 1), Group(1, 0, 4, 10, 1)]
    _, found = placed(groups, [Job(3), Job(2)], [reach([4])], crowding([4]))
    assert sum(found.values()) == 4


def test_q8_what_a_pod_loses_is_weighed() -> None:
    a = Group(0, 0, 1, 99, 20, (0,), (0,), (("r0", (0, 1), 2),))
    b = Group(1, 0, 1, 99, 20, (0,), (0,))
    assert placed([a, b], [Job(), Job()], [reach([1, 1, 1])], crowding([1, 1, 1])) == (
        2,
        {(0, 1): 1, (1, 0): 1},
    )


def test_q10_and_q25_pods_are_spread() -> None:
    cost, found = placed([Group(0, 0, 3, 10**6)], [Job()], [reach([3] * 3)], crowding([3] * 3, [0] * 3, 100))
    assert (cost, found) == (0, {(0, 0): 1, (0, 1): 1, (0, 2): 1})
    cost, found = placed(
        [Group(0, 0, 3, 10**6)], [Job()], [reach([4] * 3)], crowding([4] * 3, [20, 0, 10], 10)
    )
    assert (cost, found) == (20, {(0, 1): 2, (0, 2): 1})


def test_q11_bandwidth_bounds_and_spreads() -> None:
    """Requests of 400 on nodes with 1000 and 700 left."""
    base = 1_280_000
    of_class = reach([2, 1], [400 - 1000 + base, 400 - 700 + base], rise=400)
    for pods, wanted in enumerate(((1, 0), (1, 1), (2, 1), (2, 1)), 1):
        _, found = placed([Group(0, 0, pods, 2 * base)], [Job()], [of_class], crowding([9, 9]))
        assert (found.get((0, 0), 0), found.get((0, 1), 0)) == wanted


def test_q21_distances_decide() -> None:
    """Input 12: 8 on M1, 4 on M2, a copy of 6 on M3; racks {M0, M1, M2}, {M3}; omega .4."""
    group = Group(0, 0, 1, 10**6, 18, (0, 1, 2, 3), (12, 4, 8, 18), (("r0", (0, 1, 2), 12), ("r1", (3,), 18)))
    for slots, cost in (([1] * 4, 4), ([1, 0, 1, 1], 8), ([1, 0, 0, 1], 12), ([0, 0, 0, 1], 18)):
        assert alone(slots, group)[0] == cost
    assert alone([0, 0, 0, 1], group._replace(waits_at=17))[1] == {}  # .4 * 44 s
    assert alone([0, 0, 0, 1], group._replace(waits_at=18))[0] == 18  # .4 * 45 s


def test_q23_fair_bounds() -> None:
    """Five slots; A has 4 pods (run 2, wait 9), B 3 (1, 30)."""
    groups = [Group(0, 0, 4, 9, 2), Group(1, 0, 3, 30, 1)]

    def run(a: Job, b: Job) -> tuple[int, int, int]:
        cost, found = placed(groups, [a, b], [reach([5])], crowding([5]))
        return cost, found.get((0, 0), 0), found.get((1, 0), 0)

    assert run(Job(), Job()) == (25, 2, 3)
    assert run(Job(), Job(0, 1)) == (69, 4, 1)
    assert run(Job(3), Job(1)) == (47, 3, 2)
    assert run(Job(4), Job(2)) == (47, 3, 2)  # scaled to 3 and 1


def test_a_class_stays_where_it_may_run() -> None:
    only_second = Reach(ints(1), ints(2), ints(5), ints(0))
    cost, found = placed([Group(0, 0, 3, 100)], [Job()], [only_second], crowding([9, 9]))
    assert (cost, found) == (110, {(0, 1): 2})
    preferred = Group(0, 0, 3, 100, None, (0, 1), (0, 1))
    assert placed([preferred], [Job()], [only_second], crowding([9, 9]))[1] == {(0, 1): 2}


def test_two_classes_share_the_slots_of_a_node() -> None:
    groups = [Group(0, 0, 3, 100), Group(1, 1, 3, 50)]
    _, found = placed(groups, [Job(), Job()], [reach([4]), reach([4])], crowding([4]))
    assert found == {(0, 0): 3, (1, 0): 1}


def test_equal_cost_to_trying_everything_on_1000_graphs() -> None:
    random = Random(11)
    for _ in range(1000):
        nodes, groups_count = random.randint(1, 3), random.randint(1, 3)
        slots = [random.randint(0, 2) for _ in range(nodes)]
        groups = [
            Group(at, at, random.randint(1, 2), random.randint(0, 20), random.randint(0, 5))
            for at in range(groups_count)
        ]
        reaches = [
            Reach(
                np.arange(nodes),
                ints(*slots),
                ints(*(random.randint(0, 20) for _ in slots)),
                ints(*[0] * nodes),
            )
            for _ in groups
        ]
        cost, _ = placed(groups, [Job()] * groups_count, reaches, crowding(slots))
        assert cost == least_cost(groups, reaches, slots)


def least_cost(groups: list[Group], reaches: list[Reach], slots: list[int]) -> int:
    """Of all ways to give each pod a node or none."""
    pods = [at for at, group in enumerate(groups) for _ in range(group.pods)]
    found = []
    for nodes in product(range(-1, len(slots)), repeat=len(pods)):
        if any(nodes.count(node) > most for node, most in enumerate(slots)):
            continue
        found.append(
            sum(
                groups[at].waits_at
                if node < 0
                else int(reaches[at].costs[node]) + (groups[at].elsewhere or 0)
                for at, node in zip(pods, nodes, strict=True)
            )
        )
    return min(found)
