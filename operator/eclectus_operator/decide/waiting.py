"""Which real pods wait for room. Pure.

No run starts while a real pod waits for room, on whatever node: where work queues up, it measures the nodes
by itself. A pod that waits for something else blocks nothing. The message of its PodScheduled condition, in
kube-scheduler's wording, tells the two apart.

No pod blocks probes for ever, whatever it says: of a pod with a mistyped schedulerName nobody ever says
anything, and one that fits the largest node but for its DaemonSets is short of room as long as it exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from eclectus.api.names import RUN_ID_LABEL
from eclectus.kube import objects as kube
from eclectus.model.objects import UNSUPPORTED

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


def blocks_probes(pod: kube.Pod, now: float) -> bool:
    """Whether a real, unbound pod waits for room, and not yet for too long."""
    most = UNREPORTED_SECONDS if _scheduled(pod) is None else WAITING_SECONDS
    return _waits_for_room(pod) and _age(pod, now) < most


def is_short_of_room(pod: kube.Pod) -> bool:
    """Whether a scheduler has already said that the pod waits for room: a new pod may still find some."""
    return _scheduled(pod) is not None and _waits_for_room(pod)


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


def _age(pod: kube.Pod, now: float) -> float:
    created = kube.seconds(pod.metadata.creation_timestamp)
    return 0.0 if created is None else now - created
