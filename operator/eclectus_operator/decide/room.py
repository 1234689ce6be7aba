"""Room on a node, as Kubernetes counts it, and the pods that would fit there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eclectus.kube import objects as kube
from eclectus.kube.quantity import MOST
from eclectus.kube.requests import FieldError, amounts, held, parsed, requested
from eclectus.model.objects import Amounts

Room = Mapping[str, int]
"""Resource name -> thousandths of a core, bytes, or units."""

_FIELD = "status.allocatable"


def capacities(nodes: Iterable[kube.Node], largest: list[Room]) -> list[Room]:
    """What the largest nodes could give if nothing ran there; `largest`: the same of other nodes.

    A node is left out if another one has as much of everything, or if its allocatable cannot be read.
    """
    for node in nodes:
        try:
            room = dict(_allocatable(node))
        except FieldError:
            continue
        if not any(_fits(room, each) for each in largest):
            largest = [each for each in largest if not _fits(each, room)] + [room]
    return largest


def could_ever_fit(pod: kube.Pod, largest: Iterable[Room]) -> bool:
    """Whether one of these capacities is enough for the pod; never, if its requests cannot be read."""
    wanted = _wanted(pod)
    return bool(wanted) and any(_fits(wanted, each) for each in largest)


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
        wanted = _wanted(waiting) if waiting.spec.node_selector.items() <= self.labels.items() else {}
        without = _add(self.beside, self.held, 1)
        return bool(wanted) and _fits(wanted, without) and not _fits(wanted, self.beside)


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


def lacking(wanted: Amounts, room: Room) -> list[str]:
    """The resources of which less is left than wanted."""
    return [name for name, amount in wanted if amount > room.get(name, 0)]


def _allocatable(node: kube.Node) -> Amounts:
    return amounts(parsed(node.status.allocatable, _FIELD), MOST)


def _has_ended(pod: kube.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _wanted(pod: kube.Pod) -> Room:
    """What a pod requests; empty where that cannot be read, which is its scheduler's to report."""
    try:
        return _with_pod_slot(requested(pod).amounts)
    except FieldError:
        return {}


def _with_pod_slot(held_amounts: Amounts) -> Room:
    """Amounts, and the one of the node's `pods` that every pod takes."""
    return {**dict(held_amounts), "pods": 1}


def _add(one: Room, other: Room, sign: int) -> dict[str, int]:
    return {name: one.get(name, 0) + sign * other.get(name, 0) for name in {**one, **other}}


def _fits(wanted: Room, room: Room) -> bool:
    return not lacking(tuple(wanted.items()), room)
