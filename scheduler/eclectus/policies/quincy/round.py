"""What was asked in a round, what was answered, and how both are explained."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from eclectus.framework import Floats, FlowArc, FlowPart, Ints, Rows
from eclectus.policies.quincy.costs.cost_model import Nearness
from eclectus.policies.quincy.graph import Group, Network, Reach, Running, least_costs
from eclectus.policies.quincy.running import Placed

ARCS_SHOWN = 20  # to people, of a group
Answer = Literal["awaited", "optimal", "infeasible", "failed"]


class Round(NamedTuple):
    """What was asked. `rows`, `racks`: of the nodes then; `racks` is empty where data cost nothing.

    `ends`: the sources of running pods that may be ended, numbered behind the groups; `tasks`: these pods.
    From `first_place` on nodes are their places.
    """

    network: Network
    nodes: Sequence[str]  # names, by position in the network
    rows: Rows
    racks: Ints
    groups: Sequence[Group]
    nearness: Sequence[Nearness]  # by group
    reaches: Sequence[Reach]
    group_of: Mapping[str, int]  # uid -> group
    at: float  # when it was asked, seconds
    until: float  # when it is given up, seconds
    first_place: int
    ends: Sequence[Running]
    tasks: Sequence[Sequence[Placed]]

    def costs(self, group: int) -> Ints:
        """What it costs a pod of the group on each node of its class."""
        return least_costs(self.groups[group], self.reaches[self.groups[group].reach])

    def explained(
        self, at: int, flows: Mapping[tuple[int, int], int], answer: Answer, now: float
    ) -> FlowPart:
        """The part of a group. `flows`: pods by group and node."""
        if at >= len(self.groups):
            return self._explained_running(at, flows, answer, now)
        group, held = self.groups[at], self.nearness[at].held
        arcs = [*self._arcs(at, flows)]
        arcs.sort(key=lambda arc: (not arc.flow, arc.cost))
        stay = group.pods - sum(arc.flow for arc in arcs) if answer == "optimal" else 0
        return replace(
            self._part(group.pods, group.waits_at, stay, answer, now),
            nodes=tuple(arcs[:ARCS_SHOWN]),
            not_listed=max(len(arcs) - ARCS_SHOWN, 0),
            data=held.total if held is not None and held.total else None,
            why=self._why(at, arcs, stay) if answer == "optimal" else "",
            is_beyond=held is None and bool(group.elsewhere),
        )

    def _explained_running(
        self, at: int, flows: Mapping[tuple[int, int], int], answer: Answer, now: float
    ) -> FlowPart:
        """The part of running pods that may be ended."""
        group = self.ends[at - len(self.groups)]
        staying = flows.get((at, group.place), 0)
        ended = group.pods - staying if answer == "optimal" else 0
        kept = "they lose more if they end than others by waiting"
        return replace(
            self._part(group.pods, group.ends_at, ended, answer, now),
            nodes=(FlowArc(self.nodes[group.place], group.stays_at, group.pods, staying),),
            why=("others get their places" if ended else kept) if answer == "optimal" else "",
            is_running=True,
        )

    def _part(self, pods: int, staying: int, stay: int, answer: Answer, now: float) -> FlowPart:
        """What every group has, with the problem that it is a part of."""
        arcs = len(self.network.problem.tails)
        return FlowPart(now - self.at, answer, len(self.groups), arcs, pods, staying, stay)

    def _arcs(self, at: int, flows: Mapping[tuple[int, int], int]) -> list[FlowArc]:
        of_class, held = self.reaches[self.groups[at].reach], self.nearness[at].held
        in_rack: Sequence[int | None] = [None] * len(of_class.nodes)
        across = in_rack
        if held is not None and held.total:
            rows, first, back = np.unique(self.rows[of_class.nodes], return_index=True, return_inverse=True)
            moved = held.moved(rows, self.racks[of_class.nodes][first])
            in_rack, across = (_whole(sizes[back]) for sizes in moved)
        columns = (of_class.nodes.tolist(), of_class.slots.tolist(), self.costs(at).tolist())
        return [
            FlowArc(self._name(node), cost, slots, flows.get((at, node), 0), near, far)
            for node, slots, cost, near, far in zip(*columns, in_rack, across, strict=True)
        ]

    def _name(self, node: int) -> str:
        return f"{self.nodes[node]}{' (ends a pod)' if node >= self.first_place else ''}"

    def _why(self, at: int, arcs: Sequence[FlowArc], stay: int) -> str:
        """Why pods of the group were sent where they were, in words; `arcs`: those with flow first."""
        least = min(arc.cost for arc in arcs)
        dearest = max((arc.cost for arc in arcs if arc.flow), default=least)
        if stay and least >= self.groups[at].waits_at:
            return "no node with room costs less than to wait"
        if stay or dearest > least:
            return "cheaper nodes were given to pods that lose more without them, or had no room for all"
        return "of the nodes with room none costs less"


def _whole(sizes: Floats) -> list[int]:
    return [int(each) for each in np.rint(sizes).tolist()]
