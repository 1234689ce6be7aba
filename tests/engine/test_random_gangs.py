"""Random gangs: none starts in part, and none waits that has room, whatever is refused, deleted or crashes.

Every pod requests one core, so that a gang has room exactly if enough cores are free.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from driven_engine import LIMIT_SECONDS
from eclectus.engine.engine import Engine
from eclectus.framework import Place
from eclectus.model.commands import Bind, Fault
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    GangSeen,
    NodeGone,
    NodeSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Gang, GangKey, Node, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.place.tetris import Tetris
from eclectus.policies.rosella import Rosella
from gangs import group, key, no_group

GROUPS = ("a", "b", "c")


class World:
    """Pods, nodes and PodGroups; events reach the engine at once, answers to binds with the next step."""

    def __init__(self, seed: int, make: Callable[[], Engine]) -> None:
        self.rng, self._make, self.now, self.serial = Random(f"gangs {seed}"), make, 0.0, 0
        self.pods: dict[str, Task] = {}  # by uid
        self.nodes: dict[str, Node] = {}
        self.gangs: dict[GangKey, int] = {}
        self.in_flight: list[Bind] = []
        self.refuses = True
        self.start()

    def start(self) -> None:
        """A new engine, which lists everything."""
        self.engine = self._make()
        groups = [GangSeen(Gang(each, minimum)) for each, minimum in self.gangs.items()]
        pods, nodes = map(TaskSeen, self.pods.values()), map(NodeSeen, self.nodes.values())
        self.step(*pods, *nodes, *groups, Resumed())

    def step(self, *events: Event, after: float = 0.0) -> None:
        """One step; no gang may have begun in part by its binds."""
        self.now += after
        commands = self.engine.step([*self._answers(), *events], self.now)
        assert not [each for each in commands if isinstance(each, Fault)]
        binds = [each for each in commands if isinstance(each, Bind)]
        self.in_flight += binds
        for gang in {self.pods[each.uid].gang for each in binds}:
            if gang is not None:
                assert len(self.placed(gang)) >= self.gangs[gang], f"{gang} starts in part"
        for name, node in self.nodes.items():
            assert self.used(name) <= self.cores(node), f"{name} is overcommitted"

    def _answers(self) -> list[Event]:
        answers: list[Event] = []
        for bind in self.in_flight:
            pod = self.pods.get(bind.uid)
            if pod is None or (self.refuses and self.rng.random() < 0.2):
                answers.append(BindRefused(bind.uid, bind.node, "refused"))
            else:
                self.pods[bind.uid] = replace(pod, node=bind.node)
                answers += [BindConfirmed(bind.uid, bind.node), TaskSeen(self.pods[bind.uid])]
        self.in_flight = []
        return answers

    # -- what is the case ----------------------------------------------------------------------------

    def node_of(self, pod: Task) -> str:
        return pod.node or next((each.node for each in self.in_flight if each.uid == pod.uid), "")

    def placed(self, gang: GangKey) -> list[Task]:
        return [pod for pod in self.pods.values() if pod.gang == gang and self.node_of(pod)]

    def used(self, node: str) -> int:
        return sum(self.node_of(pod) == node for pod in self.pods.values())

    def cores(self, node: Node) -> int:
        return dict(node.allocatable)["cpu"] // 1000

    def free(self) -> int:
        return sum(self.cores(node) - self.used(name) for name, node in self.nodes.items())

    # -- what happens --------------------------------------------------------------------------------

    def happen(self) -> None:
        """Something at random."""
        what = (self.create, self.create, self.create, self.end, self.end, self.add_node, self.drop_node)
        more = (self.change_group, self.change_group, self.crash, self.wait, self.wait)
        self.rng.choice((*what, *more))()

    def create(self) -> None:
        name = self.rng.choice((*GROUPS, ""))
        pods = []
        for _ in range(self.rng.randrange(1, 4)):
            self.serial += 1
            gang = key(name) if name else None
            pods.append(make_task(f"t{self.serial}", created=float(self.serial), gang=gang))
        self.pods |= {pod.uid: pod for pod in pods}
        self.step(*map(TaskSeen, pods))

    def end(self) -> None:
        for uid in self.rng.sample(sorted(self.pods), min(len(self.pods), 2)):
            del self.pods[uid]
            self.step(TaskGone(uid))

    def add_node(self) -> None:
        if len(self.nodes) < 4:
            self.serial += 1
            node = self.nodes[f"n{self.serial}"] = make_node(f"n{self.serial}", cpu=self.rng.randrange(1, 4))
            self.step(NodeSeen(node))

    def drop_node(self) -> None:
        if self.nodes and self.rng.random() < 0.3:
            name = self.rng.choice(sorted(self.nodes))
            del self.nodes[name]
            lost = [uid for uid, pod in self.pods.items() if self.node_of(pod) == name]
            for uid in lost:
                del self.pods[uid]
            self.step(*map(TaskGone, lost), NodeGone(name))

    def change_group(self) -> None:
        name = self.rng.choice(GROUPS)
        if key(name) in self.gangs and self.rng.random() < 0.3:
            del self.gangs[key(name)]
            self.step(no_group(name))
        else:
            self.gangs[key(name)] = self.rng.randrange(1, 6)
            self.step(group(name, self.gangs[key(name)]))

    def crash(self) -> None:
        """Binds that are under way have reached the server, or not."""
        for bind in self.in_flight:
            if bind.uid in self.pods and self.rng.random() < 0.5:
                self.pods[bind.uid] = replace(self.pods[bind.uid], node=bind.node)
        self.in_flight = []
        self.start()

    def wait(self) -> None:
        self.step(after=self.rng.choice((0.5, 3.0, 12.0)))

    def rest(self) -> None:
        """Nothing happens for longer than any pod may wait; no bind is refused any more."""
        self.refuses = False
        end = self.now + 3 * LIMIT_SECONDS
        while self.now < end:
            at = self.engine.next_step_at()
            self.step(after=1.0 if at is None or self.in_flight else min(max(at - self.now, 0.0), 10.0))

    def check_that_none_waits_beside_room(self) -> None:
        for gang, minimum in self.gangs.items():
            pods = [pod for pod in self.pods.values() if pod.gang == gang]
            waiting, placed = len(pods) - len(self.placed(gang)), len(self.placed(gang))
            if waiting and placed >= minimum:
                assert not self.free(), f"{gang} is complete, and {waiting} of its pods wait beside room"
            elif placed < minimum <= len(pods):
                assert self.free() < minimum - placed, f"{gang} waits beside room"
        if any(pod.gang is None and not self.node_of(pod) for pod in self.pods.values()):
            assert not self.free(), "an ordinary pod waits beside room"


@pytest.mark.parametrize("place", [LeastAllocated, PowerOfTwo, Rosella, Sparrow, Tetris])
@pytest.mark.parametrize("seed", range(6))
def test_gangs_start_whole_and_wait_only_without_room(seed: int, place: Callable[[], Place]) -> None:
    world = World(seed, lambda: make_engine(place(), seed=seed))
    for _ in range(150):
        world.happen()
    world.rest()
    world.check_that_none_waits_beside_room()
    assert world.engine._state.gangs._gangs.keys() >= {pod.gang for pod in world.pods.values() if pod.gang}
