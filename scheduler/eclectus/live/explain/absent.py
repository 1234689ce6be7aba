"""What is to be said of a pod that the engine does not know, by the object itself."""

from __future__ import annotations

from eclectus.kube.objects import Pod
from eclectus.model.explanation import PodExplanation, PodState

_ENDED = ("Succeeded", "Failed")


def of_absent(pod: Pod) -> PodExplanation:
    """Why the engine does not know the pod."""
    state, summary = _state(pod)
    meta = pod.metadata
    return PodExplanation(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        scheduler_name=pod.spec.scheduler_name,
        state=state,
        summary=summary,
        priority=pod.spec.priority,
    )


def _state(pod: Pod) -> tuple[PodState, str]:
    if pod.status.phase in _ENDED:
        return "unknown", f"it has ended: its phase is {pod.status.phase}"
    if pod.metadata.deletion_timestamp is not None:
        return "deleting", "it is being deleted, so it is not placed any more"
    return "unknown", "the scheduler has not received it yet, or cannot read it: then its log says so"
