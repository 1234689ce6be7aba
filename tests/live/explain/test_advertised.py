"""What a scheduler writes on its Lease about its server."""

import socket

from eclectus.kubeclient.election import LeaderServer, leader_server
from eclectus.kubeclient.serving.certificate import certificate_of
from eclectus.kubeclient.serving.server_settings import ServerSettings
from eclectus.live.parts import AdvertisedServer


def said(advertised):
    return leader_server("a/b", advertised.annotations())


def test_before_the_server_answers_nothing_is_said(tmp_path):
    assert said(AdvertisedServer(tmp_path)) is None


def test_outside_of_a_pod_the_address_is_said(tmp_path):
    advertised = AdvertisedServer(tmp_path)
    advertised.serves("127.0.0.1:10269", None)
    assert said(advertised) == LeaderServer("127.0.0.1:10269")


def test_in_a_pod_its_name_and_the_certificate_in_use_are_said(tmp_path):
    (tmp_path / "namespace").write_text("eclectus-system\n")
    advertised, certificate = (
        AdvertisedServer(tmp_path),
        certificate_of(ServerSettings(authentication="delegated")),
    )
    advertised.serves("0.0.0.0:10269", certificate)
    assert said(advertised) == LeaderServer(
        "0.0.0.0:10269", certificate.fingerprint, "eclectus-system", socket.gethostname()
    )
