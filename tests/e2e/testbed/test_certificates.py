"""Certificates: signed by the authority, for the right names; files that others cannot read."""

import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eclectus_e2e.testbed.controlplane.certificates import Authority


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def test_a_client_certificate_names_user_and_group_and_is_signed_by_the_authority(
    authority: Authority,
) -> None:
    certificate = read(authority.issue("admin", "some-user", "system:masters").certificate)
    certificate.verify_directly_issued_by(read(authority.certificate))
    subject = certificate.subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "some-user"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"


def test_only_a_server_certificate_is_valid_for_servers_and_it_names_loopback(authority: Authority) -> None:
    server = read(authority.issue("server", "server", server=True).certificate)
    client = read(authority.issue("client", "client").certificate)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("127.0.0.1") in names.get_values_for_type(x509.IPAddress)
    usage = x509.ExtendedKeyUsage
    assert ExtendedKeyUsageOID.SERVER_AUTH in server.extensions.get_extension_for_class(usage).value
    assert ExtendedKeyUsageOID.SERVER_AUTH not in client.extensions.get_extension_for_class(usage).value


def test_certificates_of_another_authority_are_invalid(tmp_path: Path, authority: Authority) -> None:
    other = Authority(tmp_path / "other")
    certificate = read(authority.issue("client", "client").certificate)
    with pytest.raises(InvalidSignature):
        certificate.verify_directly_issued_by(read(other.certificate))


def test_other_users_cannot_read_the_files(authority: Authority) -> None:
    pair = authority.issue("client", "client")
    for path in (pair.key, pair.certificate, authority.signing_key("tokens")):
        assert path.stat().st_mode & 0o077 == 0
