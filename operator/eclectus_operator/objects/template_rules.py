"""What the pod template of a NodeProbe may have.

That is what a benchmark needs, and nothing by which its pod leaves the `restricted` Pod Security standard,
reads a Secret, or is taken for a pod of somebody else. The lists say what is allowed, so a field that
Kubernetes adds is refused until it is listed here. The chart's admission policy is made of the same lists.
"""

from __future__ import annotations

from eclectus.api.names import GROUP

POD_FIELDS = (
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "initContainers",
    "resources",
    "runtimeClassName",
    "securityContext",
    "tolerations",
    "volumes",
)
CONTAINER_FIELDS = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "name",
    "ports",
    "resources",
    "restartPolicy",
    "securityContext",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeMounts",
    "workingDir",
)
SHARED_SECURITY_FIELDS = ("runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile")
POD_SECURITY_FIELDS = ("fsGroup", "fsGroupChangePolicy", *SHARED_SECURITY_FIELDS)
CONTAINER_SECURITY_FIELDS = (
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "readOnlyRootFilesystem",
    *SHARED_SECURITY_FIELDS,
)
VOLUME_FIELDS = ("emptyDir", "name")
ENV_SOURCES = ("fieldRef", "resourceFieldRef")  # a probe reads no Secret and no ConfigMap

# Labels and annotations that mean something to Kubernetes, its tools or Eclectus: selectors of Deployments
# and Services choose pods by them, and annotations of a container runtime change what a container may do.
RESERVED_KEY = (
    r"^(([^/]*[.])?(kubernetes|k8s)[.]io/.*|" + GROUP.replace(".", "[.]") + r"/.*|io[.]kubernetes[.].*)$"
)

# Fields of a pod that are refused for a reason of their own.
SET_BY_OPERATOR = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "restartPolicy",
    "schedulerName",
    "serviceAccount",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
)


def for_chart() -> dict[str, object]:
    """The lists as templates/operator/admission.yaml reads them."""
    return {
        "pod": list(POD_FIELDS),
        "container": list(CONTAINER_FIELDS),
        "podSecurity": list(POD_SECURITY_FIELDS),
        "containerSecurity": list(CONTAINER_SECURITY_FIELDS),
        "volume": list(VOLUME_FIELDS),
        "envSources": list(ENV_SOURCES),
        "reservedKey": RESERVED_KEY,
    }
