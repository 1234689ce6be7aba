"""Would a real kubelet take this pod? If not: its reason and its words.

Follows pkg/kubelet/lifecycle/predicate.go of v1.36: resources first, then node affinity, node
ports, NoExecute taints; the first failure is the one that is told. Two groups of reasons come out:
`OutOf...` is an over-committed node, the others are a violated constraint.
"""

from dataclasses import dataclass, field

from eclectus_e2e.testbed.kubelet.pods.matching import selects, tolerates_execution
from eclectus_e2e.testbed.kubelet.pods.requests import HostPort, Json, host_ports, ports_collide, requests

OVERCOMMITTED = "OutOf"  # how the reason of a refusal for lack of room begins
_NATIVE = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True)
class Refusal:
    """Why a node does not take a pod, as `status.reason` and `status.message` say it."""

    reason: str
    message: str


@dataclass(frozen=True)
class Demand:
    """What admission looks at: totals and host ports of one pod."""

    resources: dict[str, int]
    ports: set[HostPort]

    @classmethod
    def of(cls, spec: Json) -> "Demand":
        """The demand of a pod spec."""
        return cls(requests(spec), host_ports(spec))


@dataclass
class Room:
    """A node as its kubelet sees it: allocatable, labels, taints, and what the residents hold."""

    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)
    residents: dict[str, Demand] = field(default_factory=dict)  # by pod uid
    used: dict[str, int] = field(default_factory=dict)

    def refusal(self, spec: Json, demand: Demand) -> Refusal | None:
        """Ask whether the pod may run here; None is yes. Changes nothing."""
        return self._no_room(demand) or self._constraint(spec, demand)

    def take(self, uid: str, demand: Demand) -> None:
        """Commit: the pod holds its demand from now on."""
        self.residents[uid] = demand
        for name, value in demand.resources.items():
            self.used[name] = self.used.get(name, 0) + value

    def free(self, uid: str) -> None:
        """Give back what a pod held; nothing when it holds nothing."""
        demand = self.residents.pop(uid, None)
        for name, value in (demand.resources if demand else {}).items():
            self.used[name] -= value

    def _no_room(self, demand: Demand) -> Refusal | None:
        pods, capacity = len(self.residents), self.allocatable.get("pods", 0)
        if pods + 1 > capacity:
            return _out_of("pods", 1, pods, capacity)
        wanted = demand.resources
        for name in [*_NATIVE, *sorted(wanted.keys() - set(_NATIVE))]:
            asked, used = wanted.get(name, 0), self.used.get(name, 0)
            # A real kubelet lets a pod pass whose extended resource the node does not list at all.
            # Ours refuses it: a scheduler that binds so has made a mistake, and this is the detector.
            capacity = self.allocatable.get(name, 0)
            if asked > 0 and asked > capacity - used:
                return _out_of(name, asked, used, capacity)
        return None

    def _constraint(self, spec: Json, demand: Demand) -> Refusal | None:
        if not selects(spec, self.name, self.labels):
            return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        taken = [port for resident in self.residents.values() for port in resident.ports]
        if any(ports_collide(mine, theirs) for mine in demand.ports for theirs in taken):
            return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        if not tolerates_execution(spec, self.taints):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
        return None


def _out_of(resource: str, asked: int, used: int, capacity: int) -> Refusal:
    numbers = f"requested: {asked}, used: {used}, capacity: {capacity}"
    text = f"Node didn't have enough resource: {resource}, {numbers}"
    return Refusal(OVERCOMMITTED + resource, f"Pod was rejected: {text}")


def _failed(predicate: str, text: str) -> Refusal:
    return Refusal(predicate, f"Pod was rejected: Predicate {predicate} failed: {text}")
