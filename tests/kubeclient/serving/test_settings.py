"""Which settings of the server are refused."""

import pytest

from eclectus.kubeclient.serving.server_settings import ServerSettings
from eclectus.model.errors import SettingsError


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_on_loopback_no_authentication_is_needed(address):
    assert ServerSettings(address=address).authentication == "none"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.7", "scheduler.internal", ""])  # noqa: S104
def test_elsewhere_it_is_needed_unless_somebody_says_that_it_is_not(address):
    with pytest.raises(SettingsError, match="authentication: none would show the pages to everybody"):
        ServerSettings(address=address)
    assert ServerSettings(address=address, allow_anonymous=True)
    assert ServerSettings(address=address, authentication="delegated")


@pytest.mark.parametrize(
    ("given", "missing"),
    [({"tls_cert_file": "a"}, "tls_private_key_file"), ({"tls_private_key_file": "a"}, "tls_cert_file")],
)
def test_a_certificate_needs_its_key(given, missing):
    with pytest.raises(SettingsError, match=f"{missing}: is missing"):
        ServerSettings(**given)
