"""What a pod costs the engine from its arrival to its end, in bytecodes: one without rules, and a replica."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import Requirement, SpreadConstraint, Task
from eclectus.policies.rosella import Rosella, RosellaLearn
from operation_counts import operations

NODES, RUNNING = 500, 20
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
LIFE_MOST = 12_100  # 15,700 before steps in which nothing waits and sources without news were passed over
OVER_PLAIN_MOST = 1.35  # of a pod with kube-scheduler's default topology spread
QUIET_STEP_MOST = 260


def plain(name: str, created: float) -> Task:
    return make_task(name, created=created)


def replica(name: str, created: float) -> Task:
    web = (Requirement("app", "In", ("web",)),)
    spread = (
        SpreadConstraint(HOSTNAME, "default", web, True, 3, needs_all_keys=False),
        SpreadConstraint(ZONE, "default", web, True, 5, needs_all_keys=False),
    )
    task = make_task(name, created=created, labels=(("app", "web"),))
    return replace(task, spec=replace(task.spec, preferred_spread=spread))


class Cluster:
    """An engine with pods that run; counts what its steps cost."""

    def __init__(self, make: Callable[[str, float], Task] = plain) -> None:
        self._make = make
        self.engine: Engine = make_engine(Rosella(), learn=RosellaLearn())
        self.now, self.cost, self._count = 0.0, 0, 0
        places = ({HOSTNAME: f"n{at}", ZONE: f"z{at % 3}"} for at in range(NODES))
        nodes = (make_node(labels[HOSTNAME], labels=labels) for labels in places)
        self.step(Resumed(), *map(NodeSeen, nodes))
        self._lives = [self._life() for _ in range(RUNNING)]
        for life in self._lives:
            next(life)

    def step(self, *events: Event) -> list[Bind]:
        self.now += 0.01
        commands = list[object]()
        self.cost += operations(lambda: commands.extend(self.engine.step(events, self.now)))
        return [each for each in commands if isinstance(each, Bind)]

    def _life(self) -> Iterator[None]:
        self._count += 1
        task = self._make(f"t{self._count}", self.now)
        (bind,) = self.step(TaskSeen(task))
        self.step(BindConfirmed(task.uid, bind.node))
        task = replace(task, node=bind.node)
        self.step(TaskSeen(task))
        task = replace(task, phase="Running", started=self.now)
        self.step(TaskSeen(task))
        yield
        self.step(TaskSeen(replace(task, phase="Succeeded", finished=self.now)))
        self.step(TaskGone(task.uid))

    def replace_eldest(self) -> None:
        """A pod comes, and the eldest ends and is deleted: six steps, one pod's life."""
        life = self._life()
        next(life)
        self._lives.append(life)
        next(self._lives.pop(0), None)


def life_of(make: Callable[[str, float], Task]) -> float:
    """What one pod costs in the mean, once some have ended."""
    cluster = Cluster(make)
    for _ in range(30):
        cluster.replace_eldest()
    cluster.cost, pods = 0, 16
    for _ in range(pods):
        cluster.replace_eldest()
    return cluster.cost / pods


def test_the_life_of_a_plain_pod_is_bounded() -> None:
    assert life_of(plain) < LIFE_MOST


def test_the_life_of_a_replica_costs_little_more() -> None:
    assert life_of(replica) < OVER_PLAIN_MOST * life_of(plain)


def test_what_other_tests_left_to_be_collected_is_not_counted() -> None:
    def call() -> object:
        return [[] for _ in range(10_000)]

    alone = operations(call)
    gc.callbacks.append(_on_collection)
    try:
        assert operations(call) == alone
    finally:
        gc.callbacks.remove(_on_collection)
    assert gc.isenabled()


def _on_collection(_phase: str, _info: object) -> None:
    sum(range(9))


def test_a_step_without_news_in_which_nothing_waits_asks_nobody() -> None:
    cluster = Cluster()
    cluster.cost = 0
    cluster.step()
    assert cluster.cost < QUIET_STEP_MOST
