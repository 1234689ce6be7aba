"""A certificate for a server that was given none, as kube-scheduler makes one: it proves nothing."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

VALID_DAYS = 3650  # nobody can verify it, so that an end would only be found by a process that runs for long


def self_signed() -> bytes:
    """A new certificate and its key, PEM, for the name of this machine and for loopback."""
    # The import takes a tenth of a second, and only a process without a certificate of its own needs it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    host, now = socket.gethostname()[:64], datetime.now(UTC)  # X.509 allows no longer name
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host or "localhost")])
    names = [x509.DNSName("localhost"), *(x509.IPAddress(ip_address(at)) for at in ("127.0.0.1", "::1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM) + private
