"""Random claims, volumes and pods: nobody gets a volume that another has, and nobody waits who could run."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node
from driven_engine import LIMIT_SECONDS
from eclectus.framework import Place
from eclectus.model.commands import AwaitVolume, Bind, Fault
from eclectus.model.events import (
    AttachLimitsSeen,
    BindConfirmed,
    BindRefused,
    Event,
    NodeSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Task
from eclectus.model.volumes import READ_WRITE_ONCE_POD, AttachLimits, StorageClass, Volume, VolumeClaim
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.rosella import Rosella
from storage_objects import in_term, make_claim, make_volume, named, seen, with_claims

NODES = 4
LIMIT = 3  # volumes of the driver on a node
DRIVER = "csi.example"
STATIC = StorageClass("static", DRIVER, True, (in_term("zone", "none"),))  # it provisions for no node here


class World:
    """A server that binds claims as the steps before binds ask, and refuses some binds."""

    def __init__(self, seed: int, place: Place) -> None:
        self.rng, self.now, self.serial = Random(seed), 0.0, 0
        self.engine = make_engine(place, line=FifoLine())
        self.claims: dict[str, VolumeClaim] = {}
        self.volumes: dict[str, Volume] = {}
        self.pods: dict[str, Task] = {}
        self.binds: list[Bind] = []
        nodes = [make_node(f"n{at}", cpu=8, labels=named(f"n{at}")) for at in range(NODES)]
        limits = [AttachLimits(node.name, ((DRIVER, LIMIT),)) for node in nodes]
        self.step(*map(NodeSeen, nodes), *map(AttachLimitsSeen, limits), *seen(STATIC), Resumed())

    def step(self, *events: Event) -> None:
        """A step, half a second after the last."""
        self.now += 0.5
        commands = self.engine.step(events, self.now)
        assert not [each for each in commands if isinstance(each, Fault)]
        for bind in commands:
            if isinstance(bind, Bind):
                self.check(bind)
                self.binds.append(bind)

    def check(self, bind: Bind) -> None:
        """A bind by the state of the server: its volumes are on its node, and nobody else has them."""
        under_way = [step for each in self.binds for step in each.before if isinstance(step, AwaitVolume)]
        promised = {step.volume: step.claim for step in under_way}
        for used in self.pods[bind.name].claims:
            claim = self.claims[used.name]
            step = next((one for one in bind.before if getattr(one, "claim", "") == claim.name), None)
            volume = self.volumes[claim.volume or getattr(step, "volume", "")]
            assert volume.affinity is None or volume.affinity[0].expressions[0].values == (bind.node,)
            assert volume.claim in ("", claim.key)
            assert promised.get(volume.name, claim.name) == claim.name
            if READ_WRITE_ONCE_POD in claim.access_modes:
                assert not [task for task in self.users(claim) if task.name != bind.name]

    def users(self, claim: VolumeClaim) -> list[Task]:
        """The pods on nodes, or on their way there, that use a claim."""
        placed = {each.name for each in self.binds}
        return [
            task
            for task in self.pods.values()
            if (task.node or task.name in placed) and any(used.name == claim.name for used in task.claims)
        ]

    # -- what happens --------------------------------------------------------------------------------

    def random_step(self) -> None:
        happens = self.rng.choice(
            [
                self.add_claim,
                self.add_volume,
                self.add_pod,
                self.add_pod,
                self.answer,
                self.answer,
                self.end_pod,
            ]
        )
        self.step(*happens())

    def add_claim(self) -> list[Event]:
        self.serial += 1
        modes = self.rng.choice([("ReadWriteOnce",), ("ReadWriteMany",), (READ_WRITE_ONCE_POD,)])
        claim = make_claim(
            f"c{self.serial}", self.rng.randrange(1, 4), storage_class="static", access_modes=modes
        )
        self.claims[claim.name] = claim
        return seen(claim)

    def add_volume(self) -> list[Event]:
        self.serial += 1
        modes = ("ReadWriteMany", "ReadWriteOnce", READ_WRITE_ONCE_POD)
        node = self.rng.choice([*range(NODES), None])
        volume = make_volume(
            f"v{self.serial}",
            self.rng.randrange(1, 5),
            storage_class="static",
            access_modes=modes,
            driver=DRIVER,
            **({} if node is None else {"nodes": [f"n{node}"]}),
        )
        self.volumes[volume.name] = volume
        return seen(volume)

    def add_pod(self) -> list[Event]:
        self.serial += 1
        names = self.rng.sample(sorted(self.claims), min(len(self.claims), self.rng.randrange(1, 3)))
        names = names or [f"c{self.serial + 1}"]
        task = with_claims(f"p{self.serial}", *names, cpu=0.5, created=self.now)
        self.pods[task.name] = task
        return [TaskSeen(task)]

    def answer(self) -> list[Event]:
        """A bind succeeds, and its claims are bound before; or it fails, perhaps after its writes."""
        if not self.binds:
            return []
        bind = self.binds.pop(self.rng.randrange(len(self.binds)))
        if self.rng.random() < 0.3:
            written = self.write(bind, is_bound=False) if self.rng.random() < 0.5 else []
            return [*written, BindRefused(bind.uid, bind.node, "no")]
        task = self.pods[bind.name] = replace(self.pods[bind.name], node=bind.node)
        shown: list[Event] = [BindConfirmed(bind.uid, bind.node), TaskSeen(task)]
        return [*self.write(bind, is_bound=True), *shown]

    def write(self, bind: Bind, *, is_bound: bool) -> list[Event]:
        """The volumes of a bind are reserved, or bound to its claims."""
        events: list[Event] = []
        for step in bind.before:
            if isinstance(step, AwaitVolume) and not self.claims[step.claim].is_bound:
                claim, volume = self.claims[step.claim], self.volumes[step.volume]
                volume = replace(volume, claim=claim.key, claim_uid=claim.uid, is_available=False)
                self.volumes[volume.name] = volume
                events += seen(volume)
                if is_bound:
                    claim = self.claims[claim.name] = replace(claim, volume=volume.name, is_bound=True)
                    events += seen(claim)
        return events

    def end_pod(self) -> list[Event]:
        gone = [task for task in self.pods.values() if task.name not in {each.name for each in self.binds}]
        if not gone:
            return []
        task = self.rng.choice(gone)
        del self.pods[task.name]
        return [TaskGone(task.uid)]

    # -- in the end ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Answer everything, until nothing has happened for longer than a pod may wait at a node."""
        idle_since = self.now
        while self.now < idle_since + LIMIT_SECONDS + 30.0:
            events = self.answer()
            idle_since = self.now if events else idle_since
            self.now += 0.0 if events else 9.5
            self.step(*events)

    def could_run(self, task: Task) -> bool:
        """Whether a pod has a node now, by its claims alone: there is enough of everything else."""
        claims = [self.claims.get(used.name) for used in task.claims]
        if any(claim is None or not claim.is_bound for claim in claims):
            return False  # of unbound claims only the matching knows: test_volume_matching.py
        bound = [claim for claim in claims if claim is not None]
        if any(READ_WRITE_ONCE_POD in claim.access_modes and self.users(claim) for claim in bound):
            return False
        return any(self.takes(node, bound) for node in (f"n{at}" for at in range(NODES)))

    def takes(self, node: str, claims: list[VolumeClaim]) -> bool:
        for claim in claims:
            affinity = self.volumes[claim.volume].affinity
            if affinity is not None and affinity[0].expressions[0].values != (node,):
                return False
        return len(self.attached(node) | {claim.name for claim in claims}) <= LIMIT

    def attached(self, node: str) -> set[str]:
        on_node = {each.name for each in self.binds if each.node == node}
        tasks = [task for task in self.pods.values() if task.node == node or task.name in on_node]
        return {used.name for task in tasks for used in task.claims}


@pytest.mark.parametrize("place", [LeastAllocated, Rosella, Sparrow])
@pytest.mark.parametrize("seed", range(4))
def test_volumes_are_never_given_twice_and_pods_do_not_wait_in_vain(seed: int, place: type[Place]) -> None:
    world = World(seed, place())
    for _ in range(120):
        world.random_step()
    for name in range(NODES):
        assert len(world.attached(f"n{name}")) <= LIMIT
    world.settle()
    waiting = [task for task in world.pods.values() if not task.node]
    assert [task.name for task in waiting if world.could_run(task)] == []
    state = world.engine._state
    assert state.counters.faults == state.counters.missed_activations == 0
    for task in state.pending.values():
        assert state.view.classes.recheck(task.spec, task.workload), "a class differs from one made afresh"
    while world.pods:
        world.step(*world.end_pod(), *world.answer())
    assert (len(state.volumes), state.cluster.volumes.storage.decisions) == (0, {})
