"""What the Lease says of this process' server, so that clients find it and know its certificate."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from eclectus.api.leader_server import LeaderServer, annotations_of
from eclectus.kubeclient.credentials import SERVICE_ACCOUNT
from eclectus.kubeclient.serving.certificate import ServingCertificate


class AdvertisedServer:
    """Unknown until the server has its certificate. `folder` is where a pod finds its namespace."""

    def __init__(self, folder: Path = SERVICE_ACCOUNT) -> None:
        self._namespace_file = folder / "namespace"
        self._address = ""
        self._certificate: ServingCertificate | None = None

    def serves(self, address: str, certificate: ServingCertificate | None) -> None:
        """The server answers at this `host:port`; in plain HTTP without a certificate."""
        self._address, self._certificate = address, certificate

    def annotations(self) -> Mapping[str, str]:
        """For the Lease: with the certificate of now, which may be replaced while the process runs."""
        if not self._address:
            return {}
        certificate = "" if self._certificate is None else self._certificate.fingerprint
        return annotations_of(LeaderServer(self._address, certificate, *self._pod()))

    def _pod(self) -> tuple[str, str]:
        """Namespace and name of the pod; empty outside of one."""
        try:
            return self._namespace_file.read_text().strip(), socket.gethostname()  # which is the pod's name
        except FileNotFoundError:
            return "", ""
