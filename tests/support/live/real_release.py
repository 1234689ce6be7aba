"""The chart installed on real nodes, and pods for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eclectus.api.names import CLASS_LABEL
from eclectus_e2e.testbed.chart import NAMESPACE, Values
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.release import Release

# 1.5 cores in total, so that two cores suffice for the nodes and the control plane.
SHARES = {"real-10": 0.1, "real-20": 0.2, "real-40": 0.4, "real-80": 0.8}
_SYSTEM = {"nodeSelector": {"pool": "system"}}
VALUES: dict[str, Any] = {
    "scheduler": {"image": {"pullPolicy": "Never"}, **_SYSTEM},
    "operator": {"enabled": True, "image": {"pullPolicy": "Never"}, **_SYSTEM},
    # `capacity`: its estimate by the learner is too small at first, and no node would count as too slow.
    "config": {
        "nodeProfiles": {"interval": "1s"},
        "learn": {"policy": "rosella", "capacity": 10},
        "tenancy": {"sharedWorkloads": ["bench", "waiting"]},  # of probes and pods, in two namespaces
    },
}


@contextmanager
def installed(kubeconfig: Path, kubectl: Kubectl, values: Values = VALUES) -> Iterator[Release]:
    """A release in a namespace that enforces the Pod Security Standard `restricted`."""
    kubectl("create", "namespace", NAMESPACE)
    kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    release = Release(kubeconfig)
    release.install(values)
    yield release
    kubectl("delete", "namespace", NAMESPACE)


def pod(name: str, *command: str, cpu: str = "50m", klass: str = "", **spec: Any) -> dict[str, Any]:
    """A pod with Eclectus as its scheduler that runs a busybox command."""
    container = {
        "name": "c",
        "image": "busybox:static",
        "command": list(command) or ["true"],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {CLASS_LABEL: klass} if klass else {}},
        "spec": {
            "schedulerName": "eclectus",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            **spec,
        },
    }
