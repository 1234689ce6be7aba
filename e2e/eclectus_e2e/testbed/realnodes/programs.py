"""What a real node runs: kubelet and kube-proxy, containerd with its shim and its client.

Two Go modules: kubelet's has the very versions of the control plane's, so that most of it is compiled
already, and containerd, which wants newer ones, has its own.
"""

from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.paths import NODE_MODULES
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries

KUBELET = GoPrograms(
    title="kubelet and kube-proxy",
    build_time="about half a minute after the control plane",
    folder="kubelet",
    module=NODE_MODULES / "kubelet",
    programs={name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kubelet", "kube-proxy")},
)
CONTAINERD = GoPrograms(
    title="containerd",
    build_time="about a minute",
    folder="containerd",
    module=NODE_MODULES / "containerd",
    programs={
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
)


@dataclass(frozen=True)
class Programs:
    """Where they are; containerd's in a folder of their own."""

    kubelet: Path
    kube_proxy: Path
    containerd: Path


def node_programs() -> Programs:
    """All of them, built on first use."""
    kubelet = binaries(KUBELET)
    return Programs(kubelet / "kubelet", kubelet / "kube-proxy", binaries(CONTAINERD))
