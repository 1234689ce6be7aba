"""Which scheduler is asked, by the Leases of a cluster."""

import asyncio

import click
import pytest

from eclectus.api.names import SCHEDULER_NAMES
from eclectus.cli.explain.transport import Leader, find_leader
from eclectus.kubeclient.api_errors import RejectedError
from eclectus.kubeclient.election import LeaderServer, annotations_of
from fake_api import FakeApi

SERVER = LeaderServer("0.0.0.0:10269", "ab" * 32, "system", "eclectus-1")
LEASES = "/apis/coordination.k8s.io/v1/namespaces"


def cluster(holder="eclectus-1_u", server=SERVER, claims=("eclectus",)):
    """An API server with an installation that serves these names."""
    api = FakeApi()
    annotations = {SCHEDULER_NAMES: "eclectus", **(annotations_of(server) if server else {})}
    own = {"metadata": {"name": "eclectus", "annotations": annotations}, "spec": {"holderIdentity": holder}}
    api.put(f"{LEASES}/system/leases", own)
    for name in claims:
        claim = {
            "metadata": {"name": f"eclectus-serves-{name}"},
            "spec": {"holderIdentity": "system/eclectus"},
        }
        api.put(f"{LEASES}/kube-system/leases", claim)
    return api


def found(api, *names):
    return asyncio.run(find_leader(api, names or ("eclectus",)))


def refused(api, *names):
    with pytest.raises(click.ClickException) as raised:
        found(api, *names)
    return raised.value.message


def test_the_leader_is_that_of_the_installation_which_serves_the_name():
    api = cluster()
    assert found(api) == Leader("system/eclectus", "eclectus-1_u", SERVER)
    assert [path.removeprefix(LEASES) for _, path in api.calls] == [
        "/kube-system/leases/eclectus-serves-eclectus",
        "/system/leases/eclectus",
    ]


def test_where_a_name_is_not_served_the_next_counts():
    assert found(cluster(), "typo", "eclectus").identity == "eclectus-1_u"


def test_where_no_name_is_served_the_message_says_what_to_do():
    assert refused(cluster(), "typo", "other") == (
        "no Eclectus scheduler serves typo or other: name another schedulerName with --scheduler-name, "
        "or name its server with --server URL"
    )


def test_a_lease_that_looks_alike_in_another_namespace_is_not_read():
    api = cluster(claims=())
    claim = {"metadata": {"name": "eclectus-serves-eclectus"}, "spec": {"holderIdentity": "system/eclectus"}}
    api.put(f"{LEASES}/tenant/leases", claim)
    assert refused(api).startswith("no Eclectus scheduler serves eclectus")


def test_without_a_holder_nobody_leads():
    assert refused(cluster(holder="")) == "no scheduler leads: nobody holds the Lease system/eclectus"


def test_an_installation_that_was_removed_does_not_lead():
    api = cluster()
    api.remove(f"{LEASES}/system/leases/eclectus")
    assert refused(api) == "no scheduler leads: there is no Lease system/eclectus"


def test_a_leader_whose_server_is_not_known_yet_is_named():
    assert "does not say where the server of eclectus-1_u is" in refused(cluster(server=None))


def test_who_may_not_read_a_lease_learns_which():
    api = cluster()

    def forbid(method, path):
        raise RejectedError(f"{method} {path}", 403, "leases is forbidden")

    api.before = forbid
    assert refused(api) == (
        "leases is forbidden: you need `get` of the Lease kube-system/eclectus-serves-eclectus, "
        "or name its server with --server URL"
    )
