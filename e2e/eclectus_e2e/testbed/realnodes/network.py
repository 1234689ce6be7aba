"""The network of real nodes: a bridge for the pods of each node and one for the API server.

No bridge has a port to the outside. Pods reach the API server by its Service address. All nodes share the
machine's network namespace, so one kube-proxy rewrites Service addresses for all of them.
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
# What kubelet and kube-proxy change and do not restore, and forwarding between the bridges.
_SYSCTLS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def create_bridges(layouts: Iterable[NodeLayout]) -> None:
    """Create the bridges of the API server and the nodes, and enable forwarding."""
    _check_addresses_free()
    _create_bridge(PLANE_BRIDGE, f"{PLANE_ADDRESS}/32")
    for layout in layouts:
        _create_bridge(layout.bridge, f"{layout.address}/24")
    (Path("/proc/sys") / "net/ipv4/ip_forward").write_text("1")


def remove_bridges() -> None:
    """Remove all bridges; the interfaces of pods end with their network namespaces."""
    for link in _ip("link", "show", "type", "bridge"):
        name = link.get("ifname", "")
        if name == PLANE_BRIDGE or name.startswith(_NODE_BRIDGES):
            _ip("link", "delete", name)


def write_cni(layout: NodeLayout) -> None:
    """Write the CNI configuration of a node: its pods get addresses of its subnet, on its bridge."""
    directory = layout.directory / "cni"
    directory.mkdir()
    pods = {
        "type": "bridge",
        "bridge": layout.bridge,
        "isDefaultGateway": True,
        "hairpinMode": True,  # lets a pod reach itself through its Service
        "ipam": {
            "type": "host-local",
            "dataDir": str(directory / "addresses"),
            "ranges": [[{"subnet": layout.subnet, "gateway": layout.address}]],
        },
    }
    content = {"cniVersion": "1.0.0", "name": layout.bridge, "plugins": [pods]}
    (directory / "bridge.conflist").write_text(json.dumps(content, indent=2))


def kernel_settings() -> dict[str, str]:
    """The current values of the kernel settings that real nodes change."""
    files = {name: Path("/proc/sys") / name for name in _SYSCTLS}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def restore_kernel_settings(settings: dict[str, str]) -> None:
    """Restore them."""
    for name, value in settings.items():
        (Path("/proc/sys") / name).write_text(value)


def _create_bridge(name: str, address: str) -> None:
    _ip("link", "add", name, "type", "bridge")
    _ip("address", "add", address, "dev", name)
    _ip("link", "set", name, "up")


def _check_addresses_free() -> None:
    """Raise MachineError when the machine has a route to one of the addresses used here."""
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
