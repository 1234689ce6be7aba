"""The certificate of the server, which may be replaced on disk while the process runs."""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.credentials import load_certificate, read_file
from eclectus.kubeclient.serving.server_settings import ServerSettings
from eclectus.kubeclient.timing import TroubleLog

_log = logging.getLogger(__name__)

_FIRST = re.compile(  # of a file with its chain: the server's own
    rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)
REREAD_SECONDS = 10.0  # a rotated certificate is valid for days beside its successor


class ServingCertificate:
    """A TLS context whose certificate is that of `read`, PEM with its key. `where` names it in messages.

    Raises CredentialsError if it cannot be read at first; later the old one stays in use.
    """

    def __init__(self, read: Callable[[], bytes], where: str) -> None:
        self._read = read
        self._where = where
        self._found = read()
        self.context = loaded(self._found, where)
        self._trouble = TroubleLog(_log)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate in use, in hexadecimal digits.

        A client that was given it knows the certificate by it, whatever has signed that.
        """
        pem = _FIRST.search(self._found)
        return sha256(ssl.PEM_cert_to_DER_cert(pem[0].decode())).hexdigest() if pem else ""

    async def follow(self) -> None:
        """Read it again every REREAD_SECONDS, until cancelled. New connections get what was read last."""
        while True:
            await asyncio.sleep(REREAD_SECONDS)
            try:
                found = await asyncio.to_thread(self._changed)
            except CredentialsError as error:
                problem = f"the old certificate of the server stays in use: {error}"
                self._trouble.failed("certificate", problem)
                continue
            self._trouble.succeeded("the certificate of the server can be read again")
            if found:  # replaced in the loop: no connection begins between the certificate and its key
                load_certificate(self.context, found, self._where)
                self._found = found
                _log.info("the certificate of the server was replaced: %s", self._where)

    def _changed(self) -> bytes:
        """What is read now, if it differs from what is in use and is valid; otherwise empty."""
        found = self._read()
        if found == self._found:
            return b""
        loaded(found, self._where)  # a certificate that does not fit its key would damage the context in use
        return found


def check_files(settings: ServerSettings) -> None:
    """Raise CredentialsError if the certificate's files are configured and cannot be used."""
    if settings.tls_cert_file:
        certificate_of(settings)


def certificate_of(settings: ServerSettings) -> ServingCertificate | None:
    """The certificate to serve with; None for plain HTTP. Raises CredentialsError."""
    if settings.tls_cert_file:
        files = Path(settings.tls_cert_file), Path(settings.tls_private_key_file)
        problem = "the certificate of the server cannot be read"
        return ServingCertificate(
            lambda: b"\n".join(read_file(file, problem) for file in files), settings.tls_cert_file
        )
    if settings.authentication == "none":
        return None
    pem = self_signed()
    return ServingCertificate(lambda: pem, "self-signed certificate")


def loaded(pem: bytes, where: str) -> ssl.SSLContext:
    """TLS of a server with this certificate and key. Raises CredentialsError, which names `where`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # whatever OpenSSL's configuration allows
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, pem, where)
    return context


VALID_DAYS = 3650  # no client can verify it; an end would only be found by a process that runs for long


def self_signed(*hosts: str) -> bytes:
    """A new certificate and its key, PEM, for these names, that of this machine and loopback."""
    # The import takes a tenth of a second, and only a process without a certificate of its own needs it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    host, now = socket.gethostname()[:64], datetime.now(UTC)  # X.509 allows no longer name
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host or "localhost")])
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in (*hosts, "localhost")]
    names += [x509.IPAddress(ip_address(at)) for at in ("127.0.0.1", "::1")]
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
