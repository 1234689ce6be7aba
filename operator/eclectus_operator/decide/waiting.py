"""Whether real pods wait, so that a probe must not take what they need.

A probe is held back while any real pod waits for room, wherever: where work queues up, the nodes are being
measured by it. A pod that no node could ever take waits for something else, and holds nothing back; the
words of its condition, which are kube-scheduler's, tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from eclectus.api.names import RUN_ID_LABEL
from eclectus_operator.objects.observed import Pod

# What schedulers say of a node that would do but for what runs there now.
SHORTAGES = ("Insufficient ", "Too many pods", "didn't have free ports")
PODS = "/api/v1/pods"


def pending() -> dict[str, str]:
    """The query for real pods that are bound to no node."""
    return {"fieldSelector": "spec.nodeName=,status.phase=Pending", "labelSelector": f"!{RUN_ID_LABEL}"}


def first_waiting(pods: Iterable[Pod]) -> Pod | None:
    """A real pod among those without a node that waits for room; None if none does."""
    return next((pod for pod in pods if _waits_for_room(pod)), None)


def first_real(pods: Iterable[Pod]) -> Pod | None:
    """A real pod among those that are bound to a node and have not started; None if there is none."""
    return next((pod for pod in pods if not pod.is_probe and not pod.metadata.deletion_timestamp), None)


def lacks_room(pod: Pod) -> bool:
    """Whether it waits for room, and has been told so: one that has just come may find it."""
    return pod.condition("PodScheduled") is not None and _waits_for_room(pod)


def _waits_for_room(pod: Pod) -> bool:
    if pod.is_probe or pod.metadata.deletion_timestamp or pod.spec.scheduling_gates:
        return False
    told = pod.condition("PodScheduled")
    if told is None or told.reason != "Unschedulable":
        return True  # just come, or told to wait for a node that is expected to be free
    return any(shortage in told.message for shortage in SHORTAGES)
