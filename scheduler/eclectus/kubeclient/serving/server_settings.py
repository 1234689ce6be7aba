"""Settings of the server that the scheduler and the operator have."""

from dataclasses import dataclass
from typing import Literal

from eclectus.kubeclient.addresses import is_loopback
from eclectus.model.errors import Problems
from eclectus.model.settings import setting


@dataclass(frozen=True)
class ServerSettings:
    """The server of health checks, metrics and further pages. Health checks never need a token."""

    address: str = setting(
        "127.0.0.1",
        "address to listen on",
        "loopback, so that nothing is exposed by default; the chart sets 0.0.0.0",
    )
    port: int = setting(
        10269,
        "TCP port; with 0 a free one is chosen and logged",
        "kube-scheduler's port is 10259",
        least=0,
        most=65535,
    )
    authentication: Literal["none", "delegated"] = setting(
        "none",
        "who may read the pages: with delegated, whoever has a bearer token with which the API server "
        "permits `get` of the path; with none, everybody who reaches the address",
        "who runs it on loopback needs no rights in the cluster for it; the chart sets delegated",
    )
    allow_anonymous: bool = setting(
        False,
        "accept authentication: none on an address that other machines reach",
        "so that nobody publishes the pages by accident",
    )
    tls_cert_file: str = setting(
        "",
        "file of the certificate and its chain, PEM, read again when it changes; if empty, delegated "
        "makes a self-signed certificate at the start, and none serves plain HTTP",
    )
    tls_private_key_file: str = setting("", "file of that certificate's private key, PEM")

    def __post_init__(self) -> None:
        problems = Problems()
        if self.authentication == "none" and not (self.allow_anonymous or is_loopback(self.address)):
            problem = f"none would show the pages to everybody who reaches {self.address}"
            advice = "set it to delegated, or allowAnonymous to true, or address to 127.0.0.1"
            problems.add("authentication", f"{problem}: {advice}")
        if self.tls_private_key_file and not self.tls_cert_file:
            problems.add("tls_cert_file", "is missing: tlsPrivateKeyFile is the key of a certificate")
        if self.tls_cert_file and not self.tls_private_key_file:
            problems.add("tls_private_key_file", "is missing: tlsCertFile needs its private key")
        problems.raise_any()
