"""The state of one fake node and of the pods on it. No I/O and no clock."""

import asyncio
import math
from dataclasses import dataclass, field
from enum import Enum

from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.objects import Json, Pod
from eclectus_e2e.testbed.kubelet.pods.admission import NodeInfo, PodRequests
from eclectus_e2e.testbed.kubelet.pods.status import Addresses
from eclectus_e2e.testbed.kubelet.pods.work import Work
from eclectus_e2e.testbed.kubelet.quantities import amounts

_NEGLIGIBLE_WORK = 1e-6  # work-seconds; less than this counts as done, because of rounding


class NodeState(Enum):
    """`FROZEN`: pods make no progress but keep their state. `DEAD`: running pods are lost."""

    UP = "up"
    FROZEN = "frozen"
    DEAD = "dead"


@dataclass(eq=False)
class PlacedPod:
    """A pod that was bound to this node and admitted or rejected, until its object is deleted."""

    pod: Pod
    addresses: Addresses
    work: Work
    work_seconds: float | None  # total; None: the pod never ends by itself
    started: float = 0.0  # Unix seconds; of the latest restart, if any
    restarts: int = 0
    kill_at: float = math.inf  # loop time at which the grace period ends
    outcome: str = ""  # empty while the pod runs
    pending_status: Json | None = None  # newest status that is not sent yet
    deletion_due: bool = False  # the API server may remove the object
    is_writing: bool = False
    timer: asyncio.TimerHandle | None = None

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion was requested."""
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def restart_policy(self) -> str:
        """The pod's restartPolicy."""
        return str(self.pod.spec.get("restartPolicy", "Always"))

    def next_event_at(self) -> float:
        """Loop time at which its work is done or its grace period ends; infinite when neither comes."""
        return math.inf if self.outcome else min(self.work.done_at(), self.kill_at)

    def is_done(self, now: float) -> bool:
        """Whether its work is done."""
        self.work.settle(now)
        return self.work.remaining <= _NEGLIGIBLE_WORK

    def restart(self, now: float, unix_now: float) -> None:
        """Restart its containers: all work starts again."""
        self.restarts += 1
        self.started = unix_now
        self.work.remaining = math.inf if self.work_seconds is None else self.work_seconds
        self.work.since = now

    def cancel_timer(self) -> None:
        """Cancel its timer."""
        if self.timer:
            self.timer.cancel()
            self.timer = None


@dataclass(eq=False)
class Machine:
    """One fake node: its true speed, what it can admit, its pods."""

    spec: NodeSpec
    number: int
    state: NodeState = NodeState.UP
    uid: str = ""  # of the Node object; empty when it does not exist
    pods: dict[str, PlacedPod] = field(default_factory=dict)  # by uid
    deferred_pods: dict[str, Pod] = field(
        default_factory=dict
    )  # observed while the node was not up, by uid; newest version of each
    speed: float = field(init=False)
    class_factors: dict[str, float] = field(init=False)
    info: NodeInfo = field(init=False)
    _addresses_given: int = 0

    def __post_init__(self) -> None:
        self.speed, self.class_factors = self.spec.speed, self.spec.class_factors
        labels, taints = dict(self.spec.labels), list[Json](self.spec.taints)
        self.info = NodeInfo(self.spec.name, amounts(self.spec.allocatable), labels, taints)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.name

    @property
    def address(self) -> str:
        """The node's IP address; nothing listens there."""
        return f"10.192.{self.number >> 8 & 255}.{self.number & 255}"

    def speed_for(self, klass: str) -> float:
        """Work-seconds per second of a pod of this class now; 0 while the node is not up."""
        factor = self.class_factors.get(klass, 1.0)
        return self.speed * factor if self.state is NodeState.UP else 0.0

    def new_pod(self, pod: Pod, now: float) -> PlacedPod:
        """The state of a new pod, with an IP address and all its work remaining."""
        self._addresses_given += 1
        host = self._addresses_given % 250 + 2
        address = f"10.{64 + (self.number >> 8 & 63)}.{self.number & 255}.{host}"
        seconds = pod.work_seconds()
        work = Work(math.inf if seconds is None else seconds, self.speed_for(pod.klass), now)
        return PlacedPod(pod, Addresses(address, self.address), work, seconds)

    def admit(self, placed: PlacedPod, requested: PodRequests) -> None:
        """Count the pod among those of this node."""
        self.info.admit(placed.uid, requested)
        self.pods[placed.uid] = placed

    def running(self) -> list[PlacedPod]:
        """The pods that have not ended."""
        return [placed for placed in self.pods.values() if not placed.outcome]

    def update_speeds(self, now: float) -> None:
        """Let every running pod continue at the node's current speed."""
        for placed in self.running():
            placed.work.change_speed(now, self.speed_for(placed.pod.klass))
