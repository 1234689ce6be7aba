"""Room on a node, as Kubernetes counts it, the pods that would fit there, and real pods that wait. Pure.

No run of a probe starts while a real pod waits for room, on whatever node: where work queues up, it measures
the nodes by itself. A pod that waits for something else blocks nothing. The message of its PodScheduled
condition, in kube-scheduler's wording, tells the two apart.

No pod blocks probes for ever, whatever it says: no scheduler ever says anything of a pod with a mistyped
schedulerName, and one that fits the largest node but for its DaemonSets is short of room for ever.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eclectus.api.names import RUN_ID_LABEL
from eclectus.kube import objects as kube
from eclectus.kube.requests import MOST, FieldError, amounts, held, parsed, requested
from eclectus.model.objects import UNSUPPORTED, Amounts

Room = Mapping[str, int]
"""Resource name -> thousandths of a core, bytes, or units."""

_FIELD = "status.allocatable"

UNBOUND_REAL_PODS: Mapping[str, str] = {
    "fieldSelector": "spec.nodeName=,status.phase=Pending",
    "labelSelector": f"!{RUN_ID_LABEL}",
}
"""The query for real pods that are not bound."""
# How schedulers describe a node that would be feasible but for what runs there now.
SHORTAGES = ("Insufficient ", "Too many pods", "didn't have free ports")
# Longer than a scheduler takes to report each pod of a large backlog: no scheduler knows a pod that is older.
UNREPORTED_SECONDS = 300.0
WAITING_SECONDS = 3600.0  # a pod that is older does not block probes: these take no room from it


def capacities(nodes: Iterable[kube.Node], largest: list[Room]) -> list[Room]:
    """What the largest nodes could give if nothing ran there; `largest`: the same of other nodes.

    A node is left out if another one has as much of everything, or if its allocatable cannot be read.
    """
    for node in nodes:
        try:
            room = dict(_allocatable(node))
        except FieldError:
            continue
        if not any(not lacking(room, each) for each in largest):
            largest = [each for each in largest if lacking(each, room)] + [room]
    return largest


def could_ever_fit(pod: kube.Pod, largest: Iterable[Room]) -> bool:
    """Whether one of these capacities is enough for the pod; never, if its requests cannot be read."""
    found = wanted(pod)
    return bool(found) and any(not lacking(found, each) for each in largest)


def wanted(pod: kube.Pod) -> Room:
    """What a pod requests; empty where that cannot be read, which is its scheduler's to report."""
    try:
        return _with_pod_slot(requested(pod).amounts)
    except FieldError:
        return {}


@dataclass(frozen=True)
class ProbeRoom:
    """What a probe holds on its node, what is left beside it, and the node's labels."""

    held: Room
    beside: Room
    labels: Mapping[str, str]

    def may_block(self) -> bool:
        """Whether some pod could need what the probe holds. If not, the pods that wait need not be listed.

        What every pod needs is one of the node's `pods`; of anything else a pod may need any amount.
        """
        return self.held.keys() != {"pods"} or self.beside.get("pods", 0) < self.held["pods"]

    def blocks(self, waiting: kube.Pod) -> bool:
        """Whether a pod would fit on the node without the probe, and does not fit beside it.

        Of the pod's constraints only the node selector is checked.
        """
        needs = wanted(waiting) if waiting.spec.node_selector.items() <= self.labels.items() else {}
        without = _add(self.beside, self.held, 1)
        return bool(needs and lacking(needs, self.beside)) and not lacking(needs, without)


def probe_room(uid: str, node: kube.Node, on_it: Iterable[kube.Pod]) -> ProbeRoom | None:
    """The room of the probe with this uid; None if it is not on the node or has ended.

    Raises FieldError where the node or a pod on it cannot be read.
    """
    holders = {pod.metadata.uid: pod for pod in on_it if not _has_ended(pod)}
    if uid not in holders:
        return None
    return ProbeRoom(_with_pod_slot(held(holders[uid])), left(node, holders.values()), node.metadata.labels)


def left(node: kube.Node, on_it: Iterable[kube.Pod]) -> Room:
    """What the pods leave of a node's allocatable; negative where it is overcommitted. Raises FieldError."""
    room: Room = dict(_allocatable(node))
    for pod in on_it:
        if not _has_ended(pod):
            room = _add(room, _with_pod_slot(held(pod)), -1)
    return room


def lacking(wanted: Room, room: Room) -> list[str]:
    """The resources of which less is left than wanted."""
    return [name for name, amount in wanted.items() if amount > room.get(name, 0)]


def blocks_probes(pod: kube.Pod, now: float) -> bool:
    """Whether a real, unbound pod waits for room, and not yet for too long."""
    most = UNREPORTED_SECONDS if _scheduled(pod) is None else WAITING_SECONDS
    created = kube.seconds(pod.metadata.creation_timestamp)
    return _waits_for_room(pod) and (created is None or now - created < most)


def is_short_of_room(pod: kube.Pod) -> bool:
    """Whether a scheduler has already said that the pod waits for room: a new pod may still find some."""
    return _scheduled(pod) is not None and _waits_for_room(pod)


def _allocatable(node: kube.Node) -> Amounts:
    return amounts(parsed(node.status.allocatable, _FIELD), MOST)


def _has_ended(pod: kube.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _with_pod_slot(held_amounts: Amounts) -> Room:
    """Amounts, and the one of the node's `pods` that every pod takes."""
    return {**dict(held_amounts), "pods": 1}


def _add(one: Room, other: Room, sign: int) -> dict[str, int]:
    return {name: one.get(name, 0) + sign * other.get(name, 0) for name in {**one, **other}}


def _waits_for_room(pod: kube.Pod) -> bool:
    if pod.metadata.deletion_timestamp is not None or pod.spec.scheduling_gates:
        return False
    scheduled = _scheduled(pod)
    if scheduled is None:
        return True  # new
    if scheduled.reason == "SchedulerError":  # such a pod is tried again, unless it waits for a feature
        return UNSUPPORTED not in scheduled.message
    if scheduled.reason != "Unschedulable":
        return True  # deferred until a node is expected to be free
    return any(shortage in scheduled.message for shortage in SHORTAGES)


def _scheduled(pod: kube.Pod) -> kube.Condition | None:
    return next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
