"""Pod templates that a NodeProbe must not have; rejected by the operator and by the admission policy."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Refused:
    """A template, and the field below `template.spec` for which it is rejected."""

    name: str
    path: str
    template: dict[str, Any]


def template(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template of one container."""
    return {"spec": {"containers": [{"name": "c", "image": "i", **(container or {})}], **spec}}


def _of_spec(field: str, value: Any) -> Refused:
    return Refused(field, field, template(**{field: value}))


def _of_container(name: str, path: str, **fields: Any) -> Refused:
    return Refused(name, f"containers[c].{path}", template(container=fields))


REFUSED = [
    _of_spec("nodeName", "n1"),
    _of_spec("nodeSelector", {"a": "b"}),
    _of_spec("affinity", {}),
    _of_spec("schedulerName", "other"),
    _of_spec("priorityClassName", "system-node-critical"),
    _of_spec("priority", 5),
    _of_spec("preemptionPolicy", "PreemptLowerPriority"),
    _of_spec("serviceAccountName", "admin"),
    _of_spec("serviceAccount", "admin"),
    _of_spec("automountServiceAccountToken", True),
    _of_spec("restartPolicy", "Always"),
    _of_spec("terminationGracePeriodSeconds", 3600),
    _of_spec("activeDeadlineSeconds", 5),
    _of_spec("hostNetwork", True),
    _of_spec("hostPID", True),
    _of_spec("hostIPC", True),
    _of_spec("hostUsers", True),
    Refused("hostPath", "volumes[v]", template(volumes=[{"name": "v", "hostPath": {"path": "/"}}])),
    Refused("secret", "volumes[v]", template(volumes=[{"name": "v", "secret": {"secretName": "s"}}])),
    _of_container("hostPort", "ports", ports=[{"containerPort": 1, "hostPort": 1}]),
    _of_container("envFrom", "env", envFrom=[{"secretRef": {"name": "s"}}]),
    _of_container(
        "secretKeyRef", "env", env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    ),
    _of_container(
        "configMapKeyRef",
        "env",
        env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}],
    ),
    _of_container("privileged", "securityContext.privileged", securityContext={"privileged": True}),
    _of_container(
        "escalation",
        "securityContext.allowPrivilegeEscalation",
        securityContext={"allowPrivilegeEscalation": True},
    ),
    _of_container(
        "capabilities",
        "securityContext.capabilities.add",
        securityContext={"capabilities": {"add": ["NET_ADMIN"]}},
    ),
    Refused(
        "in an init container",
        "initContainers[i].securityContext.privileged",
        template(initContainers=[{"name": "i", "image": "i", "securityContext": {"privileged": True}}]),
    ),
]
