"""Server certificates with one fault each, which a real control plane does not have."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Certificates:
    """PEM bytes: the authorities alone; the others with their keys. All but `strange` are of `authority`."""

    def __init__(self) -> None:
        key, self.authority = _authority("authority")
        strange_key, self.another_authority = _authority("authority")
        self.good = _issue(key)
        self.expired = _issue(key, days=-1)
        self.misnamed = _issue(key, names=[x509.DNSName("elsewhere")])
        self.strange = _issue(strange_key)


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key, 7).add_extension(x509.BasicConstraints(True, 0), critical=True)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    signed = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    return key, signed.public_bytes(serialization.Encoding.PEM)


def _issue(signing_key: ec.EllipticCurvePrivateKey, *, names: object = None, days: int = 7) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    names = names or [x509.IPAddress(ip_address("127.0.0.1"))]
    builder = _builder("server", "authority", key, days)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(signing_key, hashes.SHA256())
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return signed.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, form, plain
    )


def _builder(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    named = {each: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, issuer)}
    builder = x509.CertificateBuilder(
        named[issuer], named[name], key.public_key(), x509.random_serial_number()
    )
    return builder.not_valid_before(now - 9 * DAY).not_valid_after(now + days * DAY)


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates()
