"""One replica works: the Lease as the operator takes, keeps, loses and returns it."""

from random import Random

import pytest

from eclectus_operator import lease
from eclectus_operator.api import NotLeadingError, UnsureError
from eclectus_operator.lease import Elector, Gated, LeaseSettings
from fake_api import FakeApi, fails_once
from probe_world import driven

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
SETTINGS = LeaseSettings(lease_namespace="ns", lease_name="it")


@pytest.fixture
def clock(monkeypatch):
    moment = [1000.0]
    monkeypatch.setattr(lease, "elapsed", lambda: moment[0])
    return moment


def elector(api, name):
    return Elector(api, SETTINGS, name, Random(1))


def turn(one):
    driven(one._try())


def test_the_first_leads_and_the_other_waits_until_the_lease_has_run_out(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    turn(a)
    turn(b)
    assert (a.leads(), b.leads()) == (True, False)
    clock[0] += 10
    assert not a.leads(), "it stops by itself at the renew deadline"
    turn(b)
    assert not b.leads(), "and nobody else leads yet"
    clock[0] += 5
    turn(b)
    assert b.leads()
    turn(a)
    assert not a.leads()


def test_who_keeps_renewing_keeps_leading(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    for _ in range(20):
        turn(a)
        turn(b)
        assert (a.leads(), b.leads()) == (True, False)
        clock[0] += 2


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_an_answer_that_never_came_is_no_renewal(clock, method):
    api = FakeApi()
    a = elector(api, "a")
    turn(a)
    clock[0] += 9
    api.before = fails_once(method, LEASES, UnsureError("no answer"))
    turn(a)
    assert a.leads()
    clock[0] += 1
    assert not a.leads()


def test_a_lease_given_back_is_taken_at_once(clock):
    api = FakeApi()
    a, b = elector(api, "a"), elector(api, "b")
    turn(a)
    turn(b)
    driven(a.resign())
    assert not a.leads()
    turn(b)
    assert b.leads()


def test_a_silent_elector_is_in_trouble(clock):
    a = elector(FakeApi(), "a")
    turn(a)
    assert a.trouble() == ""
    clock[0] += SETTINGS.lease_duration + lease.HUNG_SECONDS + 1
    assert "no try for 36 s" in a.trouble()


def test_while_the_lease_is_not_surely_ours_nothing_but_reads_is_sent():
    api = FakeApi()
    gated = Gated(api, lambda: False)
    assert driven(gated.send("GET", "/api/v1/pods")) == {"items": []}
    for method in ("POST", "PATCH", "DELETE"):
        with pytest.raises(NotLeadingError):
            driven(gated.send(method, "/api/v1/namespaces/probes/pods", {}))
    assert api.calls == [("GET", "/api/v1/pods")]


def test_without_answers_from_the_api_server_it_is_not_ready(clock):
    api = FakeApi()
    one = elector(api, "a")
    assert one.unheard() == "no answer from the API server yet"
    turn(one)
    assert one.unheard() == ""
    clock[0] += SETTINGS.lease_duration + 1
    assert one.unheard() == "no answer from the API server for 16 s"
