"""The name, CPU share, addresses and directory of each real node."""

from dataclasses import dataclass, field
from pathlib import Path

NODES_DIRECTORY = Path(
    "/var/lib/eclectus-nodes"
)  # short, because the path of a socket below it may have 107 bytes
POD_NETWORK = "10.213.0.0/16"  # contains a /24 for each node, and the API server's address
PLANE_ADDRESS = "10.213.255.1"


@dataclass(frozen=True)
class NodeSpec:
    """A node: its name, the share of one core that its pods may use, its labels."""

    name: str
    cpu_share: float
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeLayout:
    """The bridge, addresses and directory of a node, derived from its number and name."""

    number: int
    name: str

    @property
    def directory(self) -> Path:
        """The folder of its configuration, sockets, containers and logs."""
        return NODES_DIRECTORY / "nodes" / self.name

    @property
    def socket(self) -> Path:
        """The socket of its containerd."""
        return self.directory / "containerd.sock"

    @property
    def bridge(self) -> str:
        """The network bridge of its pods."""
        return f"ecl-node{self.number}"

    @property
    def address(self) -> str:
        """The node's IP address, which its bridge has."""
        return f"10.213.{self.number}.1"

    @property
    def subnet(self) -> str:
        """The address range of its pods."""
        return f"10.213.{self.number}.0/24"
