"""The network of real nodes: a bridge for each node's pods and one that the API server listens on.

All of it is on this machine: no bridge has a port to the outside. Pods reach the API server by its
Service address, which kube-proxy rewrites for the whole machine, because all nodes share its network.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eclectus_e2e.errors import MachineError
from eclectus_e2e.testbed.realnodes.layout import PLANE_ADDRESS, NodeLayout
from eclectus_e2e.testbed.realnodes.requirements import program

PLANE_BRIDGE = "ecl-plane"
_NODE_BRIDGES = "ecl-node"
# What kubelet and kube-proxy would change for good, and forwarding between the bridges.
_SYSCTLS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def create_bridges(places: Iterable[NodeLayout]) -> None:
    """Make the API server's bridge and the nodes', and forward between them."""
    _check_addresses_free()
    _create_bridge(PLANE_BRIDGE, f"{PLANE_ADDRESS}/32")
    for place in places:
        _create_bridge(place.bridge, f"{place.address}/24")
    (Path("/proc/sys") / "net/ipv4/ip_forward").write_text("1")


def remove_bridges() -> None:
    """Remove every bridge of ours; the pods' ends of it go with their network namespaces."""
    for link in _ip("link", "show", "type", "bridge"):
        name = link.get("ifname", "")
        if name == PLANE_BRIDGE or name.startswith(_NODE_BRIDGES):
            _ip("link", "delete", name)


def write_cni(place: NodeLayout) -> None:
    """How containerd connects a pod of a node: bridge and addresses of its own."""
    directory = place.directory / "cni"
    directory.mkdir()
    pods = {
        "type": "bridge",
        "bridge": place.bridge,
        "isDefaultGateway": True,
        "hairpinMode": True,  # a pod may reach itself through its Service
        "ipam": {
            "type": "host-local",
            "dataDir": str(directory / "addresses"),
            "ranges": [[{"subnet": place.subnet, "gateway": place.address}]],
        },
    }
    content = {"cniVersion": "1.0.0", "name": place.bridge, "plugins": [pods]}
    (directory / "bridge.conflist").write_text(json.dumps(content, indent=2))


def kernel_settings() -> dict[str, str]:
    """What of the kernel's settings real nodes change, as it is now."""
    files = {name: Path("/proc/sys") / name for name in _SYSCTLS}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def restore_kernel_settings(settings: dict[str, str]) -> None:
    """Set them back."""
    for name, value in settings.items():
        (Path("/proc/sys") / name).write_text(value)


def _create_bridge(name: str, address: str) -> None:
    _ip("link", "add", name, "type", "bridge")
    _ip("address", "add", address, "dev", name)
    _ip("link", "set", name, "up")


def _check_addresses_free() -> None:
    """Refuse when this machine already speaks with somebody under our addresses."""
    taken = [route["dst"] for route in _ip("route", "show") if route["dst"].startswith(("10.213.", "10.96."))]
    if taken:
        raise MachineError(
            f"real nodes use 10.213.0.0/16 and 10.96.0.0/16, but there is a route to {taken[0]}"
        )


def _ip(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run([program("ip"), "-json", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return json.loads(done.stdout) if done.stdout.strip() else []
