"""Who a real node is, and where everything of it lies."""

from dataclasses import dataclass, field
from pathlib import Path

NODES_DIRECTORY = Path(
    "/var/lib/eclectus-nodes"
)  # short: sockets lie below it, and a socket's path has 107 bytes
POD_NETWORK = "10.213.0.0/16"  # every node's /24, and the API server's address
PLANE_ADDRESS = "10.213.255.1"


@dataclass(frozen=True)
class NodeSpec:
    """A node: its name, the share of one core that its pods get, its labels."""

    name: str
    cpu_share: float
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeLayout:
    """The node's name, and what follows from its number: bridge, addresses, directory."""

    number: int
    name: str

    @property
    def directory(self) -> Path:
        """Its configuration, sockets, containers and logs."""
        return NODES_DIRECTORY / "nodes" / self.name

    @property
    def socket(self) -> Path:
        """Where its containerd listens."""
        return self.directory / "containerd.sock"

    @property
    def bridge(self) -> str:
        """The bridge of its pods."""
        return f"ecl-node{self.number}"

    @property
    def address(self) -> str:
        """Its own address, its bridge's."""
        return f"10.213.{self.number}.1"

    @property
    def subnet(self) -> str:
        """Its pods' addresses."""
        return f"10.213.{self.number}.0/24"
