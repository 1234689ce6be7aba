"""Whether a real kubelet would admit a pod; if not, with which reason and message.

Follows pkg/kubelet/lifecycle/predicate.go of Kubernetes v1.37: resources first, then node affinity,
host ports, NoExecute taints; the first failure is reported. A reason `OutOf...` means that the node is
over-committed, any other that a constraint is violated.
"""

from dataclasses import dataclass, field

from eclectus_e2e.testbed.kubelet.pods.matching import matches_node, tolerates_execution
from eclectus_e2e.testbed.kubelet.pods.requests import HostPort, Json, host_ports, ports_collide, requests

OVERCOMMITTED = "OutOf"  # prefix of the reasons for insufficient resources
_NATIVE = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True)
class Rejection:
    """Why a node rejects a pod: its `status.reason` and `status.message`."""

    reason: str
    message: str


@dataclass(frozen=True)
class PodRequests:
    """What admission compares: total resource requests and host ports of one pod."""

    resources: dict[str, int]
    ports: set[HostPort]

    @classmethod
    def of(cls, spec: Json) -> "PodRequests":
        """The requests of a pod spec."""
        return cls(requests(spec), host_ports(spec))


@dataclass
class NodeInfo:
    """A node as its kubelet sees it: allocatable, labels, taints, and what the admitted pods use."""

    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)
    admitted: dict[str, PodRequests] = field(default_factory=dict)  # by pod uid
    used: dict[str, int] = field(default_factory=dict)

    def rejection(self, spec: Json, requested: PodRequests) -> Rejection | None:
        """Why the pod may not run here; None when it may. Changes nothing."""
        return self._insufficient_resource(requested) or self._violated_constraint(spec, requested)

    def admit(self, uid: str, requested: PodRequests) -> None:
        """Count the pod's requests as used."""
        self.admitted[uid] = requested
        for name, value in requested.resources.items():
            self.used[name] = self.used.get(name, 0) + value

    def release(self, uid: str) -> None:
        """Subtract the requests of a pod; does nothing for a pod that is not admitted."""
        requested = self.admitted.pop(uid, None)
        for name, value in (requested.resources if requested else {}).items():
            self.used[name] -= value

    def _insufficient_resource(self, requested: PodRequests) -> Rejection | None:
        pods, capacity = len(self.admitted), self.allocatable.get("pods", 0)
        if pods + 1 > capacity:
            return _out_of("pods", 1, pods, capacity)
        for name in [*_NATIVE, *sorted(requested.resources.keys() - set(_NATIVE))]:
            amount, used = requested.resources.get(name, 0), self.used.get(name, 0)
            # A real kubelet admits a pod that requests an extended resource which the node does not
            # list. This one rejects it, to detect a scheduler that binds such a pod.
            capacity = self.allocatable.get(name, 0)
            if amount > 0 and amount > capacity - used:
                return _out_of(name, amount, used, capacity)
        return None

    def _violated_constraint(self, spec: Json, requested: PodRequests) -> Rejection | None:
        if not matches_node(spec, self.name, self.labels):
            return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        taken = [port for other in self.admitted.values() for port in other.ports]
        if any(ports_collide(mine, theirs) for mine in requested.ports for theirs in taken):
            return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        if not tolerates_execution(spec, self.taints):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
        return None


def _out_of(resource: str, amount: int, used: int, capacity: int) -> Rejection:
    numbers = f"requested: {amount}, used: {used}, capacity: {capacity}"
    text = f"Node didn't have enough resource: {resource}, {numbers}"
    return Rejection(OVERCOMMITTED + resource, f"Pod was rejected: {text}")


def _failed(predicate: str, text: str) -> Rejection:
    return Rejection(predicate, f"Pod was rejected: Predicate {predicate} failed: {text}")
