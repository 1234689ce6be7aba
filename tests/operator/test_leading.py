"""One replica leads: how the operator acquires, renews, loses and releases the Lease."""

from random import Random

import pytest

from eclectus.kubeclient import leadership as module
from eclectus.kubeclient.api_errors import UnsureError
from eclectus.kubeclient.leadership import HUNG_SECONDS, Elector
from eclectus_operator.operator_context import Gated, NotLeadingError
from eclectus_operator.settings import LeaseSettings
from fake_api import FakeApi, fails_once
from probe_world import driven

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
SETTINGS = LeaseSettings(lease_namespace="ns", lease_name="it").election


@pytest.fixture
def clock(monkeypatch):
    moment = [1000.0]
    monkeypatch.setattr(module, "elapsed", lambda: moment[0])
    return moment


def elector(api, name):
    return Elector(api, name, SETTINGS, Random(1))


def attempt(one):
    driven(one._try())


def test_the_first_leads_and_the_other_waits_until_the_lease_has_expired(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    attempt(a)
    attempt(b)
    assert (a.holds_lease(), b.holds_lease()) == (True, False)
    clock[0] += 10
    assert not a.holds_lease(), "it stops by itself at the renew deadline"
    attempt(b)
    assert not b.holds_lease(), "no other leads yet"
    clock[0] += 5
    attempt(b)
    assert b.holds_lease()
    attempt(a)
    assert not a.holds_lease()


def test_a_replica_that_keeps_renewing_keeps_leading(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    for _ in range(20):
        attempt(a)
        attempt(b)
        assert (a.holds_lease(), b.holds_lease()) == (True, False)
        clock[0] += 2


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_lost_answer_is_no_renewal(clock, method):
    api = FakeApi()
    a = elector(api, "a")
    attempt(a)
    clock[0] += 4
    api.before = fails_once("PUT", LEASES, UnsureError("no answer"))
    attempt(a)  # the leader writes without a read; after a failure it reads first
    clock[0] += 5
    api.before = fails_once(method, LEASES, UnsureError("no answer"))
    attempt(a)
    assert a.holds_lease()
    clock[0] += 1
    assert not a.holds_lease()


def test_a_released_lease_is_acquired_at_once(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    attempt(a)
    attempt(b)
    driven(a.resign())
    assert not a.holds_lease()
    attempt(b)
    assert b.holds_lease()


def test_a_hung_elector_is_reported(clock):
    a = elector(FakeApi(), "a")
    attempt(a)
    assert a.trouble() == ""
    clock[0] += SETTINGS.lease_duration + HUNG_SECONDS + 1
    assert "no try for 36 s" in a.trouble()


def test_without_the_lease_only_reads_are_sent():
    calls = []

    class Client:
        async def send(self, method, path, *_, **__):
            calls.append((method, path))
            return b'{"items": []}'

    gated = Gated(Client(), lambda: False)
    assert driven(gated.send("GET", "/api/v1/pods")) == {"items": []}
    for method in ("POST", "PATCH", "DELETE"):
        with pytest.raises(NotLeadingError):
            driven(gated.send(method, "/api/v1/namespaces/probes/pods", {}))
    assert calls == [("GET", "/api/v1/pods")]


def test_without_answers_from_the_api_server_it_is_not_ready(clock):
    api = FakeApi()
    one = elector(api, "a")
    assert one.unanswered() == "no answer from the API server yet"
    attempt(one)
    assert one.unanswered() == ""
    clock[0] += SETTINGS.lease_duration + 1
    assert one.unanswered() == "no answer from the API server for 16 s"
