"""The annotation of the Lease that says where the leader's server is."""

import pytest

from eclectus.api.names import SERVER
from eclectus.kubeclient.election import LeaderServer, annotations_of, leader_server
from eclectus.model.errors import MalformedError


@pytest.mark.parametrize(
    "server",
    [
        LeaderServer("0.0.0.0:10269", "ab" * 32, "eclectus-system", "eclectus-1"),
        LeaderServer("127.0.0.1:10269"),
        LeaderServer("[::1]:10269"),
    ],
)
def test_what_is_written_is_read_again(server):
    assert leader_server("a/b", annotations_of(server)) == server
    assert server.port == 10269


@pytest.mark.parametrize(
    ("address", "host"), [("127.0.0.1:1", "127.0.0.1"), ("[::1]:1", "::1"), ("h:1", "h")]
)
def test_the_host_has_no_brackets(address, host):
    assert LeaderServer(address).host == host


def test_a_lease_without_the_annotation_says_nothing():
    assert leader_server("a/b", {"other": "x"}) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"address": "no port"}', '{"address": 1}'])
def test_an_annotation_that_cannot_be_read_is_an_error_with_the_lease(text):
    with pytest.raises(MalformedError, match=f"Lease a/b: annotation {SERVER}"):
        leader_server("a/b", {SERVER: text})
