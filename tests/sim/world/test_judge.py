"""The independent check of starts against the engine's rules, with which it shares no code."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import HostPort, Node, Requirement, Spec, Taint, Task, Term, Toleration
from eclectus.sim.base.machine import InvariantError, Machine, TaskRun
from eclectus.sim.base.work import WorkClass
from eclectus.sim.world.judge import Judge, forbidden

ROOM = (("cpu", 4000), ("pods", 10))
VALUES = ("1", "2", "+3", "-4", "x", "1_0", "")
KEYS = ("a", "b")


@dataclass
class Draws:
    """Random nodes and specs from a small vocabulary, so that rules often match."""

    chance: Random

    def node(self) -> Node:
        labels = tuple((key, self._one(VALUES)) for key in KEYS if self.chance.random() < 0.7)
        taints = tuple(
            Taint(self._one(KEYS), self._one(VALUES), self._one(("NoSchedule", "PreferNoSchedule")))
            for _ in range(self.chance.randrange(2))
        )
        return Node(self._one(("n", "m")), ROOM, labels, taints)

    def spec(self) -> Spec:
        terms = tuple(self._term() for _ in range(self.chance.randrange(1, 3)))
        return Spec(
            requests=(("cpu", 1),),
            node_selector=((self._one(KEYS), self._one(VALUES)),) if self.chance.random() < 0.2 else (),
            affinity=terms if self.chance.random() < 0.8 else None,
            tolerations=tuple(
                Toleration(
                    self._one(("", *KEYS)),
                    self._one(("Equal", "Exists", "Lt", "Gt")),
                    self._one(("1", "2", "x")),
                    self._one(("", "NoSchedule")),
                )
                for _ in range(self.chance.randrange(3))
            ),
        )

    def _term(self) -> Term:
        ops = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        labels = tuple(
            Requirement(self._one(KEYS), self._one(ops), self._some(VALUES))
            for _ in range(self.chance.randrange(3))
        )
        named = (Requirement("metadata.name", self._one(("In", "NotIn")), (self._one(("n", "m")),)),)
        return Term(labels, named if self.chance.random() < 0.3 else ())

    def _one(self, words: tuple[Any, ...]) -> Any:
        return self.chance.choice(words)

    def _some(self, words: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.chance.sample(words, self.chance.randrange(1, 3)))


def test_the_judge_and_the_engine_s_rules_agree_on_thousands_of_pairs() -> None:
    draws, seen = Draws(Random(1)), set()
    for _ in range(3000):
        node, spec = draws.node(), draws.spec()
        cluster = Cluster(rows=1)
        cluster.set_node(node)
        may = bool(np.any(TaskClass(cluster, spec, "w").feasible))
        assert (forbidden(spec, node) == "") == may, (node, spec)
        seen.add(may)
    assert seen == {True, False}


def running(port: HostPort, uid: str) -> TaskRun:
    spec = Spec(requests=(("cpu", 1),), host_ports=(port,))
    return TaskRun(Task(uid, "default", uid, spec=spec), WorkClass("w", spec), 0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("other", "clash"),
    [
        (HostPort(80), True),
        (HostPort(80, ip="10.0.0.1"), True),
        (HostPort(80, "UDP"), False),
        (HostPort(81), False),
    ],
)
def test_a_host_port_is_used_once(other: HostPort, clash: bool) -> None:
    machine = Machine(Node("n", ROOM), "g", 1.0, {})
    machine.start(running(HostPort(80), "first"), 0.0)
    if not clash:
        Judge().check_start(running(other, "second"), machine)
    else:
        with pytest.raises(InvariantError, match="default/first has port 80 there"):
            Judge().check_start(running(other, "second"), machine)
