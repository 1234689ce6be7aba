"""One node and the pods on it, as its kubelet remembers them. No I/O and no clock of its own."""

import asyncio
import math
from dataclasses import dataclass, field
from enum import Enum

from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.objects import Json, Pod
from eclectus_e2e.testbed.kubelet.pods.admission import Demand, Room
from eclectus_e2e.testbed.kubelet.pods.status import Addresses
from eclectus_e2e.testbed.kubelet.pods.work import Work
from eclectus_e2e.testbed.kubelet.quantities import amounts

_IDLE = 1e-6  # work-seconds; less than this is a rounding error, and done


class NodeState(Enum):
    """Up; frozen (nothing moves, everything is kept); dead (running pods are lost)."""

    UP = "up"
    FROZEN = "frozen"
    DEAD = "dead"


@dataclass(eq=False)
class Resident:
    """A pod that this node has taken or refused, until its object is gone."""

    pod: Pod
    where: Addresses
    work: Work
    work_seconds: float | None  # the whole of it; None is for ever
    started: float = 0.0  # Unix seconds; of the newest restart, if there was one
    restarts: int = 0
    kill_at: float = math.inf  # loop time at which the grace period ends
    outcome: str = ""  # empty while it runs
    unwritten: Json | None = None  # the newest status that the API server has not been told
    deletion_due: bool = False  # tell the API server that it may forget the pod
    writing: bool = False
    timer: asyncio.TimerHandle | None = None

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def terminating(self) -> bool:
        """Whether somebody asked for its deletion."""
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def restarts_after(self) -> str:
        """The pod's restartPolicy."""
        return str(self.pod.spec.get("restartPolicy", "Always"))

    def next_at(self) -> float:
        """Loop time of the next thing to do for it; infinite when there is none."""
        return math.inf if self.outcome else min(self.work.done_at(), self.kill_at)

    def done(self, now: float) -> bool:
        """Whether its work is done."""
        self.work.settle(now)
        return self.work.remaining <= _IDLE

    def begin_again(self, now: float, unix_now: float) -> None:
        """Its containers restart: all the work is to be done once more."""
        self.restarts += 1
        self.started = unix_now
        self.work.remaining = math.inf if self.work_seconds is None else self.work_seconds
        self.work.since = now

    def disarm(self) -> None:
        """Cancel its timer."""
        if self.timer:
            self.timer.cancel()
            self.timer = None


@dataclass(eq=False)
class Machine:
    """One node: its room, its true speed, its pods."""

    spec: NodeSpec
    number: int
    state: NodeState = NodeState.UP
    uid: str = ""  # of the Node object; empty when there is none
    pods: dict[str, Resident] = field(default_factory=dict)  # by uid
    waiting: dict[str, Pod] = field(default_factory=dict)  # seen while not up; the newest of each
    speed: float = field(init=False)
    class_factors: dict[str, float] = field(init=False)
    room: Room = field(init=False)
    _addresses_given: int = 0

    def __post_init__(self) -> None:
        self.speed, self.class_factors = self.spec.speed, self.spec.class_factors
        labels, taints = dict(self.spec.labels), list[Json](self.spec.taints)
        self.room = Room(self.spec.name, amounts(self.spec.allocatable), labels, taints)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.name

    @property
    def address(self) -> str:
        """The node's address; nobody listens there."""
        return f"10.192.{self.number >> 8 & 255}.{self.number & 255}"

    def speed_for(self, klass: str) -> float:
        """What a pod of this class gets done a second right now: 0 while the node is not up."""
        factor = self.class_factors.get(klass, 1.0)
        return self.speed * factor if self.state is NodeState.UP else 0.0

    def receive(self, pod: Pod, now: float) -> Resident:
        """A record for a new pod, its work not yet begun."""
        self._addresses_given += 1
        host = self._addresses_given % 250 + 2
        address = f"10.{64 + (self.number >> 8 & 63)}.{self.number & 255}.{host}"
        seconds = pod.work_seconds()
        work = Work(math.inf if seconds is None else seconds, self.speed_for(pod.klass), now)
        return Resident(pod, Addresses(address, self.address), work, seconds)

    def take(self, resident: Resident, demand: Demand) -> None:
        """The pod runs here from now on."""
        self.room.take(resident.uid, demand)
        self.pods[resident.uid] = resident

    def running(self) -> list[Resident]:
        """The pods that have not ended."""
        return [resident for resident in self.pods.values() if not resident.outcome]

    def rescale(self, now: float) -> None:
        """Let every running pod go on at the node's speed of now."""
        for resident in self.running():
            resident.work.change_speed(now, self.speed_for(resident.pod.klass))
