"""Where the leader's server is, and by what its certificate is known: an annotation of its Lease.

Whoever may read the Lease can so reach the leader and verify its certificate, whatever has signed that.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from eclectus.api.common import NOT_JSON
from eclectus.api.names import SERVER
from eclectus.model.errors import MalformedError


class LeaderServer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The server of a scheduler that leads."""

    address: str  # host:port on which it listens, an IPv6 address in brackets
    certificate: str = ""  # SHA-256 of its certificate, hexadecimal; empty: plain HTTP
    namespace: str = ""  # of its pod
    pod: str = ""  # name of its pod; empty: it does not run in a pod

    @property
    def host(self) -> str:
        """The host of the address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])


def annotations_of(server: LeaderServer) -> dict[str, str]:
    """The annotation for the Lease."""
    return {SERVER: msgspec.json.encode(server).decode()}


def leader_server(lease: str, annotations: Mapping[str, str]) -> LeaderServer | None:
    """What the annotations of a Lease of this name say; None if they do not say it. Raises MalformedError."""
    if SERVER not in annotations:
        return None
    try:
        found = msgspec.json.decode(annotations[SERVER], type=LeaderServer)
        _check = found.port
    except (*NOT_JSON, ValueError) as error:
        raise MalformedError("Lease", lease, f"annotation {SERVER}", str(error)) from error
    return found
