"""The pod statuses that a kubelet writes: strategic merge patches of `/status`, with the pod's uid."""

from dataclasses import dataclass

from eclectus_e2e.testbed.kubelet.objects import Json, Pod, timestamp

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(frozen=True)
class Addresses:
    """The IP address of a pod and of its node."""

    pod: str
    host: str


def rejected(pod: Pod, reason: str, message: str) -> Json:
    """The kubelet rejected the pod: phase Failed, which is final."""
    return _patch(pod, {"phase": "Failed", "reason": reason, "message": message})


def running(pod: Pod, addresses: Addresses, started: float, restarts: int) -> Json:
    """Every container runs and is ready. `started` in Unix seconds."""
    state = {"running": {"startedAt": timestamp(started)}}
    conditions = [_condition(kind, True, started) for kind in _CONDITIONS]
    status = _phase_and_containers("Running", pod, addresses, state, restarts)
    return _patch(pod, {**status, **_start_time(started, restarts), "conditions": conditions})


def ended(
    pod: Pod, addresses: Addresses, *, started: float, finished: float, restarts: int, exit_code: int
) -> Json:
    """Every container has terminated: phase Succeeded for exit code 0, otherwise Failed."""
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
    status = _phase_and_containers(phase, pod, addresses, {"terminated": terminated}, restarts)
    return _patch(pod, {**status, **_start_time(started, restarts), "conditions": conditions})


def _start_time(started: float, restarts: int) -> Json:
    """`startTime` of the pod; a restart of its containers does not change it."""
    return {} if restarts else {"startTime": timestamp(started)}


def _phase_and_containers(phase: str, pod: Pod, addresses: Addresses, state: Json, restarts: int) -> Json:
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
        "hostIP": addresses.host,
        "hostIPs": [{"ip": addresses.host}],
        "podIP": addresses.pod,
        "podIPs": [{"ip": addresses.pod}],
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
    # With the uid the server rejects the patch when another pod has taken over the name.
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
