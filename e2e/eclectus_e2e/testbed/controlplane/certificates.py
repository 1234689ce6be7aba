"""The certificate authority of a control plane, and the certificates of its servers and clients.

All keys are ECDSA P-256: generating one takes a millisecond, an RSA key a hundred. Certificates are valid
from yesterday (clocks differ) for seven days; these control planes are not meant to run longer.
"""

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=7)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class KeyPair:
    """PEM files of a certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that writes all files into one folder, with mode 0600.

    Server certificates are valid for loopback, the names of the API server and `address`.
    """

    def __init__(self, directory: Path, address: str = "127.0.0.1") -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._addresses = {"127.0.0.1", "10.96.0.1", address}
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("eclectus-e2e-ca", None)
        usage = _key_usage(signs_certificates=True)
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.certificate = directory / "ca.crt"
        _write(self.certificate, _pem(builder.sign(self._key, hashes.SHA256())))

    def issue(
        self, file: str, common_name: str, organisation: str | None = None, *, server: bool = False
    ) -> KeyPair:
        """Issue a client certificate, whose common name is the user and whose organisation is the group.

        With `server` it is valid for a server too.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])
        builder = _builder(_name(common_name, organisation), self._name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if server:
            builder = builder.add_extension(_alternative_names(self._addresses), critical=False)
        pair = KeyPair(self._directory / f"{file}.crt", self._directory / f"{file}.key")
        _write(pair.certificate, _pem(builder.sign(self._key, hashes.SHA256())))
        _write(pair.key, _private_pem(key))
        return pair

    def signing_key(self, file: str) -> Path:
        """Write a private key without certificate, for signing ServiceAccount tokens; returns its path."""
        path = self._directory / f"{file}.key"
        _write(path, _private_pem(ec.generate_private_key(ec.SECP256R1())))
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
    )


def _name(common_name: str, organisation: str | None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organisation:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _alternative_names(texts: Iterable[str]) -> x509.SubjectAlternativeName:
    addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in sorted(texts)]
    return x509.SubjectAlternativeName([*(x509.DNSName(name) for name in _SERVER_NAMES), *addresses])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Traditional format ("EC PRIVATE KEY"): kube-apiserver reads it for TLS and for token signing.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    """Write a file that others can read at no moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
