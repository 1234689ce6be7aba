"""The network of one round: groups of equal pods, jobs, classes, racks and nodes, as arrays.

    group of equal pods ─▶ class ──────────▶ node ─▶ sink
        │   │   └────────▶ rack of a class ─▶ │
        │   └──────────── preferred node ────▶┘
        └─▶ unscheduled, one for each job ────────▶ sink

Pods of one job, class and time of waiting are one source of as many units. Where Quincy has one node X for
the cluster, here each class has one: a pod in Kubernetes may not run everywhere, and the arcs of a class lead
where it has room. The arcs of racks are those of its class too.

A job j of N waiting pods runs at least E and at most F of them: its node takes N - F of them for good, and
the arc from there to the sink has the capacity F - E. `feasible_bounds` makes these numbers possible ones: a
solver only says that they are not.

Arcs of which each further unit costs more are as many arcs of one unit each, the cheapest first (`rising`).

Pods that run and may be ended for others are sources too: each has an arc to its place and one to the
unscheduled pods of its job. The places of all such pods of a node are a node of their own beside it, with as
many slots: a pod that gets one of these ends another.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import COST_MOST, FlowProblem, Ints

STAYING = -1  # what each arc costs that pods take which stay: our own solver begins with negative ones full
STEPS_MOST = 10  # arcs of one unit side by side; the last one takes all that is left (Firmament's multi-arcs)


class Reach(NamedTuple):
    """The nodes where pods of a class have room, ascending, and what it costs there; all of one length.

    `rises`: what each further pod of the class costs more; empty for nothing.
    """

    nodes: Ints  # positions among those of the network
    slots: Ints  # how many pods of the class fit
    costs: Ints
    rises: Ints


class Group(NamedTuple):
    """Equal pods of one job. `waits_at`: what it costs that one of them stays unscheduled.

    `nodes` with `costs`: preferred ones. `racks`: the positions of their nodes, which need not be all of a
    rack, and the cost. `elsewhere`: on any node of the class; None for only there.
    """

    job: int
    reach: int
    pods: int
    waits_at: int
    elsewhere: int | None = 0
    nodes: Sequence[int] = ()
    costs: Sequence[int] = ()
    racks: Sequence[tuple[Hashable, Sequence[int] | Ints, int]] = ()


class Running(NamedTuple):
    """Equal running pods of one job that may be ended. `place`: the position of the node of their places.

    `stays_at`: what it costs that one of them stays; `ends_at`: that it is ended.
    """

    job: int
    place: int
    pods: int
    stays_at: int
    ends_at: int


class Job(NamedTuple):
    """How many of its pods run that wait or may be ended, at least and at most; None for all."""

    least: int = 0
    most: int | None = None


class NodeSlots(NamedTuple):
    """By node of the network: how many pods fit on it, of whatever class, and what the next ones cost more.

    `costs`: of the first further pod; `rise`: of each after it. With a rise of 0 all cost the same.
    `places`: how many nodes, the last ones, are the places of pods that run: there nothing rises.
    """

    slots: Ints
    costs: Ints
    rise: int = 0
    places: int = 0


class Network(NamedTuple):
    """A problem, and where nodes stand in it: node i of the cluster's is `first_node + i`."""

    problem: FlowProblem
    first_node: int

    def placed(self, routes: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """Group, node and pods of each route that ends on a node."""
        nodes = len(self.problem.supplies) - 1 - self.first_node
        return [
            (group, by_way - self.first_node, pods)
            for group, by_way, pods in routes
            if 0 <= by_way - self.first_node < nodes
        ]


def feasible_bounds(jobs: Sequence[Job], waiting: Sequence[int], slots: int) -> list[tuple[int, int]]:
    """The bounds of each job as they can be met: E at most its pods, F at least E, all E within the slots.

    Where there are fewer slots than all E together, these shrink in proportion, rounded down.
    """
    least = [min(job.least, pods) for job, pods in zip(jobs, waiting, strict=True)]
    total = sum(least)
    if total > slots:
        least = [each * slots // total for each in least]
    most = [
        pods if job.most is None else min(job.most, pods) for job, pods in zip(jobs, waiting, strict=True)
    ]
    return [(each, max(each, other)) for each, other in zip(least, most, strict=True)]


class _Arcs:
    """Arcs, piece by piece: each piece is some array operations, so there are few of them."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, tails: object, heads: object, capacities: object, costs: object) -> None:
        """Arcs from numbers or arrays, made equally long; those without capacity are left out."""
        tails, heads, capacities, costs = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(each, dtype=np.int64)) for each in (tails, heads, capacities, costs))
        )
        is_open = capacities > 0
        self._pieces.append((tails[is_open], heads[is_open], capacities[is_open], costs[is_open]))

    def rising(self, tails: Ints, heads: Ints, capacities: Ints, costs: Ints, rises: Ints) -> None:
        """Arcs of which each further unit costs so much more, up to `STEPS_MOST`."""
        is_flat = rises == 0
        self.add(tails[is_flat], heads[is_flat], capacities[is_flat], costs[is_flat])
        tails, heads, capacities = tails[~is_flat], heads[~is_flat], capacities[~is_flat]
        costs, rises = costs[~is_flat], rises[~is_flat]
        for step in range(STEPS_MOST if len(heads) else 0):
            left = capacities - step
            taken = np.minimum(left, 1) if step < STEPS_MOST - 1 else left
            self.add(tails, heads, np.maximum(taken, 0), costs + step * rises)

    def problem(self, supplies: Ints, first_node: int) -> FlowProblem:
        """All of them with these supplies: those of groups, jobs and classes by tail, then those of nodes.

        Of solutions that cost the same the order of arcs says which is found.
        """
        tails, heads, capacities, costs = map(np.concatenate, zip(*self._pieces, strict=True))
        at = np.argsort(np.minimum(tails, first_node), kind="stable")
        return FlowProblem(tails[at], heads[at], capacities[at], costs[at], supplies)


def network(
    groups: Sequence[Group],
    jobs: Sequence[Job],
    reaches: Sequence[Reach],
    crowding: NodeSlots,
    running: Sequence[Running] = (),
) -> Network:
    """The network of a round. Raises ValueError without groups."""
    if not groups:
        raise ValueError("a network needs at least one group of pods")
    sources: Sequence[Group | Running] = (*groups, *running)
    of_job = [0] * len(jobs)
    for source in sources:
        of_job[source.job] += source.pods
    bounds = feasible_bounds(jobs, of_job, int(crowding.slots.sum()))
    racks = {(group.reach, name): nodes for group in groups for name, nodes, _ in group.racks}
    first_job = len(sources)
    first_class = first_job + len(jobs)
    first_rack = first_class + len(reaches)
    first_node = first_rack + len(racks)
    sink = first_node + len(crowding.slots)
    rack_at = {key: first_rack + at for at, key in enumerate(racks)}
    arcs = _Arcs()
    _add_groups(arcs, groups, first_job, first_class)
    for at, group in enumerate(groups):
        if group.racks:
            ends = [rack_at[group.reach, name] for name, _, _ in group.racks]
            arcs.add(at, ends, group.pods, [cost for *_, cost in group.racks])
        if len(group.nodes):
            nodes, slots, costs = _preferred(group, reaches[group.reach])
            arcs.add(at, first_node + nodes, slots, costs)
    _add_running(arcs, running, len(groups), first_job, first_node)
    arcs.add(first_job + np.arange(len(jobs)), sink, [most - least for least, most in bounds], 0)
    of_racks = [_inside(reaches[class_at], members) for (class_at, _), members in racks.items()]
    _add_reaches(arcs, first_class, (*reaches, *of_racks), first_node)
    every = first_node + np.arange(len(crowding.slots))
    rises = np.full(len(every), crowding.rise, dtype=np.int64)
    costs, first_place = crowding.costs.copy(), len(every) - crowding.places
    rises[first_place:], costs[first_place:] = 0, STAYING
    arcs.rising(every, np.full(len(every), sink), crowding.slots, costs, rises)
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[:first_job] = [source.pods for source in sources]
    supplies[first_job:first_class] = [most - pods for (_, most), pods in zip(bounds, of_job, strict=True)]
    supplies[sink] = -supplies.sum()
    return Network(arcs.problem(supplies, first_node), first_node)


def _add_groups(arcs: _Arcs, groups: Sequence[Group], first_job: int, first_class: int) -> None:
    """To the unscheduled pods of their jobs, and to their classes."""
    of_jobs = [(first_job + group.job, group.pods, group.waits_at) for group in groups]
    of_classes = [
        (at, first_class + group.reach, group.pods, group.elsewhere)
        for at, group in enumerate(groups)
        if group.elsewhere is not None
    ]
    arcs.add(np.arange(len(groups)), *zip(*of_jobs, strict=True))
    if of_classes:
        arcs.add(*zip(*of_classes, strict=True))


def _add_running(
    arcs: _Arcs, running: Sequence[Running], first: int, first_job: int, first_node: int
) -> None:
    """To their places and to the unscheduled pods of their jobs; `first`: the number of their first source.

    Each pod takes one of its two arcs, so only the difference of their costs matters: what all stay costs is
    left out. A pod that gets a place has the cost of the arc behind it too, so to end one for no other costs
    1 more.
    """
    if running:
        sources = first + np.arange(len(running))
        pods, apart = [each.pods for each in running], [each.ends_at - each.stays_at for each in running]
        arcs.add(sources, [first_node + each.place for each in running], pods, STAYING)
        bounded = np.clip(np.array(apart) + STAYING, -COST_MOST, COST_MOST)
        arcs.add(sources, [first_job + each.job for each in running], pods, bounded)


def _add_reaches(arcs: _Arcs, first: int, reaches: Sequence[Reach], first_node: int) -> None:
    """From classes and their nodes of racks, which are numbered from `first` on, to nodes with room."""
    tails = np.repeat(first + np.arange(len(reaches)), [len(each.nodes) for each in reaches])
    nodes, slots, costs, rises = map(np.concatenate, zip(*reaches, strict=True))
    arcs.rising(tails, first_node + nodes, slots, costs, rises)


def _inside(reach: Reach, nodes: Sequence[int] | Ints) -> Reach:
    """To those of the nodes alone."""
    inside, _ = _positions(reach, nodes)
    return Reach(*(each[inside] for each in reach))


def least_costs(group: Group, reach: Reach) -> Ints:
    """What it costs a pod of the group on each node of its class, by the cheapest way there."""
    far = COST_MOST if group.elsewhere is None else group.elsewhere
    found: Ints = np.minimum(reach.costs + far, COST_MOST)
    for _, members, cost in group.racks:
        inside, _ = _positions(reach, members)
        found[inside] = np.minimum(found[inside], reach.costs[inside] + cost)
    at, is_in = _positions(reach, group.nodes)
    found[at] = np.minimum(found[at], np.asarray(group.costs, dtype=np.int64)[is_in])
    return found


def _preferred(group: Group, reach: Reach) -> tuple[Ints, Ints, Ints]:
    """Of the preferred nodes those where the class has room; for how many pods, and what each costs."""
    at, is_in = _positions(reach, group.nodes)
    costs = np.asarray(group.costs, dtype=np.int64)[is_in]
    return reach.nodes[at], np.minimum(reach.slots[at], group.pods), costs


def _positions(reach: Reach, nodes: Sequence[int] | Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where those of the nodes that a class reaches stand in its arrays, and which of them these are."""
    wanted = np.asarray(nodes, dtype=np.int64)
    at = np.searchsorted(reach.nodes, wanted)
    is_in = at < len(reach.nodes)
    is_in[is_in] = reach.nodes[at[is_in]] == wanted[is_in]
    return at[is_in], is_in
