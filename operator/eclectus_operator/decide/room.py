"""Room on a node, as Kubernetes counts it, and the real pods that wait for it. Pure.

No run starts while any real pod waits for room, on whatever node: where work queues up, it measures the nodes
by itself. A pod that no node could ever hold waits for something else and blocks nothing. The message of its
PodScheduled condition, in kube-scheduler's wording, tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.api.names import RUN_ID_LABEL
from eclectus.kube import objects as kube
from eclectus.kube.quantity import MOST
from eclectus.kube.requests import FieldError, amounts, held, parsed, requested
from eclectus.model.objects import UNSUPPORTED, Amounts
from eclectus_operator.objects.observed import Pod

Room = Mapping[str, int]
"""Resource name -> thousandths of a core, bytes, or units."""

UNBOUND_REAL_PODS: Mapping[str, str] = {
    "fieldSelector": "spec.nodeName=,status.phase=Pending",
    "labelSelector": f"!{RUN_ID_LABEL}",
}
"""The query for real pods that are not bound."""
# How schedulers describe a node that would be feasible but for what runs there now.
SHORTAGES = ("Insufficient ", "Too many pods", "didn't have free ports")
_FIELD = "status.allocatable"


def first_waiting(pods: Iterable[Pod]) -> Pod | None:
    """Of unbound pods, a real one that waits for room; None if none does."""
    return next((pod for pod in pods if _waits_for_room(pod)), None)


def is_short_of_room(pod: Pod) -> bool:
    """Whether a scheduler has already said that the pod waits for room: a new pod may still find some."""
    return pod.condition("PodScheduled") is not None and _waits_for_room(pod)


def blocks_any(
    probe_uid: str, node: kube.Node, on_it: Iterable[kube.Pod], waiting: Iterable[kube.Pod]
) -> bool:
    """Whether a waiting pod would fit on the node without the probe, and does not fit beside it.

    Of the pod's constraints only the node selector is checked. Raises FieldError where the node or a pod on
    it cannot be read.
    """
    holders = {pod.metadata.uid: pod for pod in on_it if not _has_ended(pod)}
    if probe_uid not in holders:
        return False
    beside = left(node, holders.values())
    without = _add(beside, _with_pod_slot(held(holders[probe_uid])), 1)
    labels = node.metadata.labels.items()
    wanted = [_wanted(pod) for pod in waiting if pod.spec.node_selector.items() <= labels]
    return any(each and _fits(each, without) and not _fits(each, beside) for each in wanted)


def left(node: kube.Node, on_it: Iterable[kube.Pod]) -> Room:
    """What the pods leave of a node's allocatable; negative where it is overcommitted. Raises FieldError."""
    room: Room = dict(amounts(parsed(node.status.allocatable, _FIELD), MOST))
    for pod in on_it:
        if not _has_ended(pod):
            room = _add(room, _with_pod_slot(held(pod)), -1)
    return room


def lacking(wanted: Amounts, room: Room) -> list[str]:
    """The resources of which less is left than wanted."""
    return [name for name, amount in wanted if amount > room.get(name, 0)]


def _waits_for_room(pod: Pod) -> bool:
    if not pod.is_real or pod.spec.scheduling_gates:
        return False
    scheduled = pod.condition("PodScheduled")
    if scheduled is None:
        return True  # new
    if scheduled.reason == "SchedulerError":  # such a pod is tried again, unless it waits for a feature
        return UNSUPPORTED not in scheduled.message
    if scheduled.reason != "Unschedulable":
        return True  # deferred until a node is expected to be free
    return any(shortage in scheduled.message for shortage in SHORTAGES)


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
