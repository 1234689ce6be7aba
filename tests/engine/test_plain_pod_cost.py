"""What a pod without rules costs the engine from its arrival to its end, in bytecodes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.policies.rosella import Rosella, RosellaLearn
from operation_counts import operations

NODES, RUNNING = 500, 20
LIFE_MOST = 12_600  # 15,700 before steps in which nothing waits and sources without news were passed over
QUIET_STEP_MOST = 260


class Cluster:
    """An engine with pods that run; counts what its steps cost."""

    def __init__(self) -> None:
        self.engine: Engine = make_engine(Rosella(), learn=RosellaLearn())
        self.now, self.cost, self._count = 0.0, 0, 0
        self.step(Resumed(), *(NodeSeen(make_node(f"n{at}")) for at in range(NODES)))
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
        task = make_task(f"t{self._count}", created=self.now)
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


def test_the_life_of_a_plain_pod_is_bounded() -> None:
    cluster = Cluster()
    for _ in range(30):
        cluster.replace_eldest()
    cluster.cost, pods = 0, 16
    for _ in range(pods):
        cluster.replace_eldest()
    assert cluster.cost / pods < LIFE_MOST


def test_a_step_without_news_in_which_nothing_waits_asks_nobody() -> None:
    cluster = Cluster()
    cluster.cost = 0
    cluster.step()
    assert cluster.cost < QUIET_STEP_MOST
