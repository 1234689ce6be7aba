"""What must hold of every write, whatever happens; each promise is a method, and `PROMISES` is their table.

They look at the API server's own order of writes: what a process believes does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, has_ended

LEASES = "coordination.k8s.io/leases"
LEASE = "eclectus-system/eclectus"
ON_ITS_WAY_SECONDS = 0.05  # a request and an event, while the network was never slow


class BrokenPromiseError(Exception):
    """A promise does not hold; the message says which, for which object."""


@dataclass
class Oracles:
    """Watches one server. `counts` says how often something happened that promises speak of."""

    server: ApiServer
    counts: Counter[str] = field(default_factory=Counter)
    nodes_of: dict[str, str] = field(default_factory=dict)  # uid of a pod -> the node to which it was bound
    ended: dict[str, str] = field(default_factory=dict)  # uid of a pod -> the phase in which it ended
    waited: list[tuple[float, int]] = field(
        default_factory=list
    )  # (until when, priority) of pods that waited
    on_its_way_seconds: float = ON_ITS_WAY_SECONDS
    broken: str = ""  # the first promise that did not hold

    def __post_init__(self) -> None:
        self.server.watchers.append(self.check)

    def check(self, change: Change) -> None:
        """Hold a write against all promises about its resource; only the first that is broken is kept."""
        if self.broken:
            return
        for resource, promise in PROMISES:
            if change.resource == resource:
                try:
                    promise(self, change)
                except BrokenPromiseError as error:
                    self.broken = f"at revision {change.revision}, written by {change.by}: {error}"
                    return

    # -- promises ----------------------------------------------------------------------------------

    def bound_once(self, change: Change) -> None:
        """A pod is bound to one node for good."""
        pod = change.new
        node = pod["spec"].get("nodeName") if pod else None
        if not pod or not node:
            return
        before = self.nodes_of.setdefault(pod["metadata"]["uid"], node)
        if before != node:
            raise BrokenPromiseError(f"pod {change.key} is on {node}, and was bound to {before}")

    def no_node_over_committed(self, change: Change) -> None:
        """What the pods of a node ask for fits into it, whoever has bound them."""
        if not _is_bind(change):
            return
        self.counts["binds"] += 1
        name = change.new["spec"]["nodeName"] if change.new else ""
        node = self.server.stored("nodes").get(name)
        if node is None:
            self.counts["binds to nodes that are gone"] += 1
            return
        held = pods_on(self.server, name)
        cpu = sum(cpu_of(pod) for pod in held)
        room = node["status"]["allocatable"]
        if cpu > int(room["cpu"]) * 1000 or len(held) > int(room["pods"]):
            raise BrokenPromiseError(
                f"node {name} is over-committed by {change.key}: {cpu}m of {room['cpu']} cores, "
                f"{len(held)} of {room['pods']} pods"
            )

    def ended_for_good(self, change: Change) -> None:
        """A pod that has ended stays as it has ended."""
        if change.new is None:
            return
        uid, phase = change.new["metadata"]["uid"], change.new.get("status", {}).get("phase", "")
        before = self.ended.get(uid)
        if before and phase != before:
            raise BrokenPromiseError(f"pod {change.key} has {before}, and is {phase or 'unset'} again")
        if has_ended(change.new):
            self.ended[uid] = phase

    def evicted_for_something(self, change: Change) -> None:
        """A pod that the scheduler deletes gives way to one of higher priority.

        That one waits, or has waited until a moment ago: a request was on its way.
        """
        if change.old is not None and is_waiting(change.old) and not (change.new and is_waiting(change.new)):
            self.waited.append((self.server.now(), change.old["spec"].get("priority", 0)))
        is_eviction = (
            change.old is not None
            and change.by.startswith("scheduler")
            and "deletionTimestamp" not in change.old["metadata"]
            and (change.new is None or "deletionTimestamp" in change.new["metadata"])
        )
        if not is_eviction or change.old is None:
            return
        self.counts["evictions"] += 1
        priority = change.old["spec"].get("priority", 0)
        waiting = [
            pod["spec"].get("priority", 0) for pod in self.server.stored("pods").values() if is_waiting(pod)
        ]
        lately = [each for until, each in self.waited if until >= self.server.now() - self.on_its_way_seconds]
        if not any(each > priority for each in waiting + lately):
            raise BrokenPromiseError(
                f"pod {change.key} was evicted, and no waiting pod has a higher priority"
            )

    def one_leader(self, change: Change) -> None:
        """Nothing is bound by a process that is not the holder of the Lease at that revision."""
        if not _is_bind(change) or not change.by.startswith("scheduler"):
            return
        lease = self.server.stored(LEASES).get(LEASE)
        holder = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        if not holder.startswith(change.by + "_"):
            raise BrokenPromiseError(f"pod {change.key} was bound by {change.by}; {holder or 'nobody'} leads")


PROMISES: tuple[tuple[str, Callable[[Oracles, Change], None]], ...] = (
    ("pods", Oracles.one_leader),
    ("pods", Oracles.bound_once),
    ("pods", Oracles.no_node_over_committed),
    ("pods", Oracles.ended_for_good),
    ("pods", Oracles.evicted_for_something),
)


def nothing_waits_beside_room(server: ApiServer) -> str:
    """Which pod still waits though a node has room for it; empty if none does."""
    nodes = [node for node in server.stored("nodes").values() if not node["spec"].get("unschedulable")]
    for key, pod in sorted(server.stored("pods").items()):
        if not is_waiting(pod):
            continue
        for node in nodes:
            held = pods_on(server, node["metadata"]["name"])
            free = int(node["status"]["allocatable"]["cpu"]) * 1000 - sum(cpu_of(each) for each in held)
            if cpu_of(pod) <= free and len(held) < int(node["status"]["allocatable"]["pods"]):
                return f"pod {key} waits, and node {node['metadata']['name']} has {free}m cores free"
    return ""


def is_waiting(pod: Object) -> bool:
    """Whether the pod is to be placed by Eclectus."""
    return (
        not pod["spec"].get("nodeName")
        and not has_ended(pod)
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"]["schedulerName"] == "eclectus"
    )


def pods_on(server: ApiServer, node: str) -> list[Object]:
    """The pods that hold room of a node."""
    return [
        pod
        for pod in server.stored("pods").values()
        if pod["spec"].get("nodeName") == node and not has_ended(pod)
    ]


def cpu_of(pod: Object) -> int:
    """Millicores that the pod asks for."""
    return sum(int(each["resources"]["requests"]["cpu"].rstrip("m")) for each in pod["spec"]["containers"])


def _is_bind(change: Change) -> bool:
    was_on = change.old["spec"].get("nodeName") if change.old else None
    return change.new is not None and not was_on and bool(change.new["spec"].get("nodeName"))
