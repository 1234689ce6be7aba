"""The pod statuses that a kubelet writes: strategic patches of `/status`, guarded by the pod's uid."""

from dataclasses import dataclass

from eclectus_e2e.testbed.kubelet.objects import Json, Pod, timestamp

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(frozen=True)
class Addresses:
    """Where a pod is: its own address and its node's."""

    pod: str
    host: str


def refused(pod: Pod, reason: str, message: str) -> Json:
    """The pod was not taken: Failed, for good."""
    return _patch(pod, {"phase": "Failed", "reason": reason, "message": message})


def running(pod: Pod, where: Addresses, started: float, restarts: int) -> Json:
    """Every container runs and is ready."""
    state = {"running": {"startedAt": timestamp(started)}}
    conditions = [_condition(kind, True, started) for kind in _CONDITIONS]
    placed = _placed("Running", pod, where, state, restarts)
    return _patch(pod, {**placed, **_since(started, restarts), "conditions": conditions})


def ended(
    pod: Pod, where: Addresses, *, started: float, finished: float, restarts: int, exit_code: int
) -> Json:
    """Every container has ended: 0 is Succeeded, 137 (killed) is Failed."""
    reason = "Completed" if exit_code == 0 else "Error"
    terminated = {
        "exitCode": exit_code,
        "reason": reason,
        "startedAt": timestamp(started),
        "finishedAt": timestamp(finished),
    }
    phase = "Succeeded" if exit_code == 0 else "Failed"
    why = "PodCompleted" if exit_code == 0 else "PodFailed"
    conditions = [_condition(kind, kind == "Initialized", finished, why) for kind in _CONDITIONS]
    placed = _placed(phase, pod, where, {"terminated": terminated}, restarts)
    return _patch(pod, {**placed, **_since(started, restarts), "conditions": conditions})


def _since(started: float, restarts: int) -> Json:
    """The pod's own start, which a restart of its containers leaves as it was."""
    return {} if restarts else {"startTime": timestamp(started)}


def _placed(phase: str, pod: Pod, where: Addresses, state: Json, restarts: int) -> Json:
    ready = phase == "Running"
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "containerID": f"fake://{pod.metadata.uid}/{container['name']}",
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "state": state,
            "lastState": {},
        }
        for container in pod.spec.get("containers", ())
    ]
    return {
        "phase": phase,
        "hostIP": where.host,
        "hostIPs": [{"ip": where.host}],
        "podIP": where.pod,
        "podIPs": [{"ip": where.pod}],
        "containerStatuses": containers,
    }


def _condition(kind: str, holds: bool, now: float, reason: str = "") -> Json:
    condition = {
        "type": kind,
        "status": "True" if holds else "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    return condition if holds else {**condition, "reason": reason}


def _patch(pod: Pod, status: Json) -> Json:
    # With the uid in it, the server refuses to touch another pod that took over the name.
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
