"""Whatever is believed of nodes, a feasible pod is placed within `waitLimit`, and reports say what is so.

Every policy of the table, alone and in pairs (policy_choices.py), on nodes of which one is full. What is
believed of them: that all are dead, that rates differ by 18 orders of magnitude, that the full node is the
only good one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from builders import make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import (
    Action,
    Completion,
    Learn,
    LearnedCell,
    PendingTasks,
    Place,
    Reason,
    Speeds,
    Unschedulable,
    View,
)
from eclectus.model.commands import Report
from eclectus.model.objects import Node
from judge import refusal, unfit
from policy_choices import Way, every_way
from worlds import World

LIMIT = make_profile().settings.wait_limit or 0.0
FULL = make_node("full", cpu=4, labels={"zone": "full"})
NODES = (FULL, *(make_node(f"free{at}", cpu=8, labels={"zone": f"z{at}"}) for at in range(2)))
ANYWHERE = [make_task(f"t{at}") for at in range(3)]
PINNED = make_task("pinned", node_selector=(("zone", "z1"),))
FEASIBLE = [*ANYWHERE, PINNED]
CROWDED = make_task("crowded", node_selector=(("zone", "full"),))
IMPOSSIBLE = make_task("impossible", cpu=99)
WORDS = {
    "crowded": "0/3 nodes are available: 1 Insufficient cpu, "
    "2 node(s) didn't match Pod's node affinity/selector.",
    "impossible": "0/3 nodes are available: 3 Insufficient cpu.",
}

Rates = Mapping[str, float]
BELIEFS: dict[str, Rates] = {
    "all are dead": {"full": 0.0, "free0": 0.0, "free1": 0.0},
    "those with room are dead": {"full": 1.0, "free0": 0.0, "free1": 0.0},
    "all are extremely slow": {"full": 1e-9, "free0": 1e-9, "free1": 1e-9},
    "all are extremely fast": {"full": 1e9, "free0": 1e9, "free1": 1e9},
    "the full one is extremely fast": {"full": 1e9, "free0": 1e-9, "free1": 1e-9},
    "one with room is extremely fast": {"full": 1.0, "free0": 1e9, "free1": 1e-9},
}


class Believed(Learn):
    """These rates, tasks a second, whatever ends."""

    def __init__(self, rates: Rates) -> None:
        self._rates, self._by_row = rates, np.zeros(0)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        self._by_row = np.pad(self._by_row, (0, capacity - len(self._by_row)))
        self._by_row[row] = self._rates[node]

    def remove_node(self, row: int) -> None:
        self._by_row[row] = 0.0

    def observe(self, done: Completion) -> None:
        """Nothing is learned."""

    def speeds(self, workload: str) -> Speeds:
        return Speeds(self._by_row, float(self._by_row.max(initial=1.0)), 0)

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        return iter(())


class TruthfulWorld(World):
    """Compares every report with the cluster at that moment."""

    def _take(self, command: object) -> None:
        super()._take(command)  # type: ignore[arg-type]
        if isinstance(command, Report):
            self._check(command)

    def _check(self, report: Report) -> None:
        task = self.tasks[report.name]
        is_beside_room = not all(refusal(task, node, self._on(node)) for node in NODES)
        assert report.reason == ("WaitingForNode" if is_beside_room else "Unschedulable"), report
        if not is_beside_room:
            assert report.message.startswith(WORDS[task.name]), report

    def _on(self, node: Node) -> Iterator[object]:
        binding = {bind.uid for bind in self.binds if bind.node == node.name}
        return (task for task in self.tasks.values() if task.node == node.name or task.uid in binding)


def filled(engine: Engine) -> TruthfulWorld:
    """A cluster of which one node is full of services, and pods of all kinds that wait."""
    world = TruthfulWorld(engine, *NODES)
    running = [make_task(f"service{at}", profile="other", node="full", long_running=True) for at in range(4)]
    world.add(*running)
    world.add(*FEASIBLE, CROWDED, IMPOSSIBLE)
    return world


def places_all_in_time(engine: Engine) -> None:
    """Every feasible pod is placed within the limit, and the others have reports in the known words."""
    world = filled(engine)
    world.sleep(LIMIT)
    for task in FEASIBLE:
        assert not unfit(task.spec, next(each for each in NODES if each.name == world.node_of(task.name)))
    for name in WORDS:
        assert not world.node_of(name)
        assert world.messages(name), f"{name} has no report"
    assert world.faults == []


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("way", every_way(), ids=str)
def test_every_feasible_pod_is_placed_in_time_and_reports_are_true(way: Way, belief: str) -> None:
    places_all_in_time(way.engine(learner=Believed(BELIEFS[belief])))


class Refusing(Place):
    """Refuses every task, with a reason of its own or without."""

    def __init__(self, reason: Reason) -> None:
        self._reason = reason

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Unschedulable(task, self._reason)


@pytest.mark.parametrize("reason", [Reason(), Reason("no node is good enough")])
def test_so_it_is_with_a_policy_that_refuses_whatever_comes(reason: Reason | None) -> None:
    places_all_in_time(make_engine(Refusing(reason)))


def test_without_the_limit_such_a_policy_is_found() -> None:
    with pytest.raises(StopIteration):
        places_all_in_time(make_engine(Refusing(Reason()), wait_limit=None))
