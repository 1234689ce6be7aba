"""Configuration files and arguments of the kubelet of a node, and of the kube-proxy that all nodes share."""

import json
from pathlib import Path

from eclectus_e2e.testbed.realnodes import cgroups
from eclectus_e2e.testbed.realnodes.layout import PLANE_ADDRESS, POD_NETWORK, NodeLayout, NodeSpec

PORT = 10250  # on each node's own address


def arguments(layout: NodeLayout, spec: NodeSpec, kubeconfig: Path, authority: Path) -> list[str]:
    """Write kubelet's configuration into the node's directory; returns its arguments."""
    config = layout.directory / "kubelet.yaml"
    config.write_text(json.dumps(_configuration(layout, authority), indent=2))
    return [
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={layout.name}",
        f"--node-ip={layout.address}",
        f"--node-labels={','.join(f'{key}={value}' for key, value in spec.labels.items())}",
        f"--root-dir={layout.directory / 'kubelet'}",
        f"--cert-dir={layout.directory / 'kubelet-certificates'}",
    ]


def proxy_arguments(directory: Path, kubeconfig: Path) -> list[str]:
    """Write kube-proxy's configuration; returns its arguments."""
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
        # Zero and false: do not change kernel settings, because they apply to the whole machine.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "iptables": {"localhostNodePorts": False},
    }
    config = directory / "kube-proxy.yaml"
    config.write_text(json.dumps(configuration, indent=2))
    return [f"--config={config}"]


def _configuration(layout: NodeLayout, authority: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.address,
        "port": PORT,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(authority)}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.pods_root(layout.name),
        "failCgroupV1": False,
        # The quota is that of the node's cgroup; kubelet, which sees the whole machine, sets none.
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,  # it would need the device of the file system
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "podLogsDir": str(layout.directory / "pod-logs"),
        "volumePluginDir": str(layout.directory / "plugins"),
        "serializeImagePulls": False,
        # Shorter than the defaults, because tests wait for both.
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "imageMaximumGCAge": "0s",
        "evictionHard": {"memory.available": "100Mi"},
    }
