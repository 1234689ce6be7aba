"""Pod templates that a NodeProbe must not have; rejected by the operator and by the admission policy."""

from dataclasses import dataclass
from typing import Any

from eclectus.api.names import CLASS_LABEL, NIC_GBPS_LABEL, ROOM_ANNOTATION


@dataclass(frozen=True)
class Refused:
    """A template, and the field for which it is rejected."""

    name: str
    field: str  # below template.spec, or with `metadata` below template
    template: dict[str, Any]

    @property
    def path(self) -> str:
        """The field's path in the class of the NodeProbe."""
        return f"template.{'' if self.field.startswith('metadata') else 'spec.'}{self.field}"


def template(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod template of one container."""
    return {"spec": {"containers": [{"name": "c", "image": "i", **(container or {})}], **spec}}


def _of_spec(field: str, value: Any) -> Refused:
    return Refused(field, field, template(**{field: value}))


def _of_container(name: str, path: str, **fields: Any) -> Refused:
    return Refused(name, f"containers[c].{path}", template(container=fields))


def _of_metadata(kind: str, key: str) -> Refused:
    return Refused(f"{kind} {key}", f"metadata.{kind}[{key}]", {**template(), "metadata": {kind: {key: "x"}}})


def _of_pod_security(field: str, value: Any) -> Refused:
    return Refused(f"pod {field}", f"securityContext.{field}", template(securityContext={field: value}))


def _of_security(field: str, value: Any) -> Refused:
    return _of_container(field, f"securityContext.{field}", securityContext={field: value})


UNCONFINED = {"type": "Unconfined"}
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
    _of_spec("hostAliases", [{"ip": "10.0.0.1", "hostnames": ["kubernetes"]}]),
    _of_spec("imagePullSecrets", [{"name": "somebody-elses-registry"}]),
    _of_spec("schedulingGates", [{"name": "x/y"}]),
    _of_spec("shareProcessNamespace", True),
    _of_spec("ephemeralContainers", []),
    _of_spec("aFieldOfTheFuture", True),
    Refused("emptyDir and more", "volumes[v]", template(volumes=[{"name": "v", "emptyDir": {}, "nfs": {}}])),
    _of_container("hostIP", "ports", ports=[{"containerPort": 1, "hostIP": "127.0.0.1"}]),
    _of_container("fileKeyRef", "env", env=[{"name": "A", "valueFrom": {"fileKeyRef": {"key": "k"}}}]),
    _of_container("livenessProbe", "livenessProbe", livenessProbe={"httpGet": {"host": "169.254.169.254"}}),
    _of_container("lifecycle", "lifecycle", lifecycle={"preStop": {"httpGet": {"host": "169.254.169.254"}}}),
    _of_container("volumeDevices", "volumeDevices", volumeDevices=[]),
    _of_metadata("labels", "app.kubernetes.io/component"),
    _of_metadata("labels", "kubernetes.io/x"),
    _of_metadata("labels", CLASS_LABEL),
    _of_metadata("labels", NIC_GBPS_LABEL),
    _of_metadata("annotations", "container.apparmor.security.beta.kubernetes.io/c"),
    _of_metadata("annotations", "io.kubernetes.cri-o.Devices"),
    _of_metadata("annotations", ROOM_ANNOTATION),
    _of_pod_security("seLinuxOptions", {"type": "spc_t"}),
    _of_pod_security("appArmorProfile", UNCONFINED),
    _of_pod_security("seccompProfile", UNCONFINED),
    _of_pod_security("sysctls", [{"name": "kernel.msgmax", "value": "1"}]),
    _of_pod_security("supplementalGroups", [0]),
    _of_pod_security("runAsUser", 0),
    _of_pod_security("runAsNonRoot", False),
    _of_security("runAsUser", 0),
    _of_security("runAsNonRoot", False),
    _of_security("seccompProfile", UNCONFINED),
    _of_security("seccompProfile", {"type": "Localhost", "localhostProfile": "x"}),
    _of_security("appArmorProfile", UNCONFINED),
    _of_security("seLinuxOptions", {"type": "spc_t"}),
    _of_security("procMount", "Unmasked"),
    _of_security("privileged", True),
    _of_security("allowPrivilegeEscalation", True),
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
