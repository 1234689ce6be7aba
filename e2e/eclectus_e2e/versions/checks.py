"""What the smoke run tries on a cluster of three nodes with 4 cores each: a table of names and functions.

Each uses kubectl as a user does, and raises UsageError with kubectl's words when something is not as it
should be.
"""

from collections.abc import Callable
from typing import Any

from eclectus.api.names import WORK_SECONDS
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import MANIFESTS
from eclectus_e2e.testbed.kubectl import Kubectl

Object = dict[str, Any]
_WITHIN = "--timeout=120s"
_PODS = 20
_SCHEDULED = '{.status.conditions[?(@.type=="PodScheduled")].reason}'
_FULL = "0/3 nodes are available: 3 Insufficient cpu."


def _pods_run(kubectl: Kubectl) -> None:
    _create(kubectl, *(_pod(f"plain-{at}", labels={"check": "plain"}) for at in range(_PODS)))
    kubectl("wait", "pod", "--selector=check=plain", "--for=jsonpath={.status.phase}=Succeeded", _WITHIN)


def _message(kubectl: Kubectl) -> None:
    _create(kubectl, _pod("large", cpu="64"))
    kubectl("wait", "pod/large", f"--for=jsonpath={_SCHEDULED}=Unschedulable", _WITHIN)
    conditions = kubectl.get("pod", "large")["status"]["conditions"]
    (message,) = (each["message"] for each in conditions if each["type"] == "PodScheduled")
    if not message.startswith(_FULL):
        raise UsageError(f"the message of a pod that fits nowhere is {message!r} and not {_FULL!r}")


def _preemption(kubectl: Kubectl) -> None:
    high = {"metadata": {"name": "high"}, "value": 1000}
    _create(kubectl, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **high})
    names = [f"low-{at}" for at in range(3)]
    low: Object = {"labels": {"check": "low"}, "terminationGracePeriodSeconds": 1}
    _create(kubectl, *(_pod(name, cpu="3", work="", **low) for name in names))
    kubectl("wait", "pod", "--selector=check=low", "--for=jsonpath={.status.phase}=Running", _WITHIN)
    _create(kubectl, _pod("urgent", cpu="3", priorityClassName="high"))
    kubectl("wait", "pod/urgent", "--for=jsonpath={.status.phase}=Succeeded", _WITHIN)
    left = kubectl.get("pods", "--selector=check=low")
    if len(left) != len(names) - 1:
        raise UsageError(f"of {len(names)} pods one should have been evicted, and {len(left)} are left")
    kubectl("delete", "pod", "--selector=check=low", "--force")


def _volume(kubectl: Kubectl) -> None:
    """A free local volume for a claim that waits for its first pod."""
    spec = {"storageClassName": "here", "accessModes": ["ReadWriteOnce"]}
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    reached = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    volume = {"capacity": {"storage": "1Gi"}, "local": {"path": "/data"}, "nodeAffinity": reached}
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    _create(
        kubectl,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "here"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        _core("PersistentVolume", "data", spec | volume),
        _core("PersistentVolumeClaim", "data", spec | claim),
        _pod("with-volume", volumes=[mounted]),
    )
    kubectl("wait", "pod/with-volume", "--for=jsonpath={.spec.nodeName}=node-1", _WITHIN)
    kubectl("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", _WITHIN)


def _dag_job(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(MANIFESTS / "examples" / "dagjob-diamond.yaml"))
    kubectl("wait", "dagjob/diamond", "--for=condition=Succeeded", _WITHIN)


CHECKS: dict[str, Callable[[Kubectl], None]] = {
    f"{_PODS} pods run": _pods_run,
    "a pod that fits nowhere says why": _message,
    "a pod of higher priority evicts one": _preemption,
    "a claim gets its volume": _volume,
    "a DagJob succeeds": _dag_job,
}


def _create(kubectl: Kubectl, *objects: Object) -> None:
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _core(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _pod(
    name: str, cpu: str = "100m", work: str = "0.2", labels: Object | None = None, **spec: Any
) -> Object:
    """A pod that works for so many seconds; without `work` until it is deleted."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    pod = _core(
        "Pod", name, {"schedulerName": "eclectus", "restartPolicy": "Never", "containers": [container]}
    )
    pod["metadata"]["labels"] = labels or {}
    pod["metadata"]["annotations"] = {WORK_SECONDS: work} if work else {}
    pod["spec"] |= spec
    return pod
