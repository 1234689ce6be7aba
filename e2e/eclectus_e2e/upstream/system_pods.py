"""Pods that upstream's framework expects on every node: without them each preemption spec waits a minute."""

from collections.abc import Iterable
from typing import Any

from eclectus_e2e.testbed.kubectl import Kubectl

# requiredPerNodePods in test/e2e/framework/node/wait.go; they are found by name.
_NAMES = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")


def create_system_pods(kubectl: Kubectl, nodes: Iterable[str]) -> None:
    """Create pods with these names, without requests, on every node."""
    pods = [_pod(f"{name}-{node}", node) for node in nodes for name in _NAMES]
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": pods})


def _pod(name: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "nodeSelector": {
                "kubernetes.io/hostname": node
            },  # not nodeName: specs look for the condition PodScheduled
            "priorityClassName": "system-node-critical",  # no spec may preempt them
            "containers": [{"name": "c", "image": "none"}],
        },
    }
