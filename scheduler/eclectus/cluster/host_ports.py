"""The host ports in use: on which rows, and by how many pods.

Two ports conflict if number and protocol are equal and the addresses overlap. What is asked of one port is
answered without a search: a pod may have tens of thousands of ports, on as many addresses.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Self

from eclectus.model.objects import HostPort

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 — Kubernetes' word for any address, nothing is bound to it
_EVERY = ""  # stands for the ports of one number and protocol, whatever their address

Pods = Mapping[int, int]
"""Row -> how many ports of pods are held there."""


class HostPorts:
    """The ports that pods hold."""

    def __init__(self) -> None:
        self._pods: dict[HostPort, dict[int, int]] = defaultdict(dict)

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._pods = defaultdict(dict, {port: dict(pods) for port, pods in self._pods.items()})
        return self

    def hold(self, port: HostPort, row: int) -> None:
        """A pod with this port has come to the row."""
        for key in (port, _on_every_address(port)):
            pods = self._pods[key]
            pods[row] = pods.get(row, 0) + 1

    def release(self, port: HostPort, row: int) -> None:
        """A pod with this port has left the row."""
        for key in (port, _on_every_address(port)):
            pods = self._pods[key]
            pods[row] -= 1
            if not pods[row]:
                del pods[row]
            if not pods:
                del self._pods[key]

    def conflicting(self, wanted: HostPort) -> list[Pods]:
        """Where ports are held that conflict with this one; each held port is in one of them."""
        if wanted.ip == ANY_ADDRESS:
            keys = [_on_every_address(wanted)]
        else:
            keys = [wanted, HostPort(wanted.port, wanted.protocol, ANY_ADDRESS)]
        return [self._pods[key] for key in keys if key in self._pods]

    def count(self, wanted: HostPort, row: int) -> int:
        """How many held ports conflict with this one on a row."""
        return sum(pods.get(row, 0) for pods in self.conflicting(wanted))


def _on_every_address(port: HostPort) -> HostPort:
    return HostPort(port.port, port.protocol, _EVERY)
