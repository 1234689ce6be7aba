"""The programs of a real node: kubelet and kube-proxy, containerd with its shim and its client.

Two Go modules: that of kubelet has the versions of the control plane's, so most packages are compiled
already; containerd needs newer ones.
"""

from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.paths import NODE_MODULES
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries

KUBELET = GoPrograms(
    title="kubelet and kube-proxy",
    build_time="about half a minute after the control plane",
    folder="kubelet",
    packages=130,
    module=NODE_MODULES / "kubelet",
    programs={name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kubelet", "kube-proxy")},
)
CONTAINERD = GoPrograms(
    title="containerd",
    build_time="about a minute",
    folder="containerd",
    packages=870,
    module=NODE_MODULES / "containerd",
    programs={
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
)


@dataclass(frozen=True)
class Programs:
    """Paths of kubelet and kube-proxy, and the folder of containerd's programs."""

    kubelet: Path
    kube_proxy: Path
    containerd: Path


def node_programs() -> Programs:
    """All programs, compiled on first use."""
    kubelet = binaries(KUBELET)
    return Programs(kubelet / "kubelet", kubelet / "kube-proxy", binaries(CONTAINERD))
