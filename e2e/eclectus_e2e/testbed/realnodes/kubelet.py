"""kubelet of one node, and the one kube-proxy of all: configuration files and arguments."""

import json
from pathlib import Path

from eclectus_e2e.testbed.realnodes import cgroups
from eclectus_e2e.testbed.realnodes.layout import PLANE_ADDRESS, POD_NETWORK, NodeLayout, NodeSpec

PORT = 10250  # on every node's own address


def arguments(place: NodeLayout, spec: NodeSpec, kubeconfig: Path, authority: Path) -> list[str]:
    """Write kubelet's configuration into the node's directory; its arguments."""
    config = place.directory / "kubelet.yaml"
    config.write_text(json.dumps(_configuration(place, authority), indent=2))
    return [
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={place.name}",
        f"--node-ip={place.address}",
        f"--node-labels={','.join(f'{key}={value}' for key, value in spec.labels.items())}",
        f"--root-dir={place.directory / 'kubelet'}",
        f"--cert-dir={place.directory / 'kubelet-certificates'}",
    ]


def proxy_arguments(directory: Path, kubeconfig: Path) -> list[str]:
    """Write kube-proxy's configuration; its arguments."""
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "bindAddress": PLANE_ADDRESS,
        "hostnameOverride": "eclectus-e2e",
        "healthzBindAddress": f"{PLANE_ADDRESS}:10256",
        "metricsBindAddress": f"{PLANE_ADDRESS}:10249",
        "clusterCIDR": POD_NETWORK,
        # Zero and false: leave the kernel's settings alone, they are the whole machine's.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"localhostNodePorts": False},
    }
    config = directory / "kube-proxy.yaml"
    config.write_text(json.dumps(configuration, indent=2))
    return [f"--config={config}"]


def _configuration(place: NodeLayout, authority: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.address,
        "port": PORT,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(authority)}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{place.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.pods_root(place.name),
        "failCgroupV1": False,
        # The quota of the node is its directory's; kubelet, which sees the whole machine, sets no other.
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,  # it would look for the device of the file system
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "podLogsDir": str(place.directory / "pod-logs"),
        "volumePluginDir": str(place.directory / "plugins"),
        "serializeImagePulls": False,
        # Both are seconds of every test; several nodes do not make an API server of our own sweat.
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "imageMaximumGCAge": "0s",
        "evictionHard": {"memory.available": "100Mi"},
    }
