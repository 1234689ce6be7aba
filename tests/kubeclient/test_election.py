"""Never two leaders: the argument of election.py, tested on a simulated clock."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from msgspec.structs import replace as rewrite

from eclectus.kubeclient.election import Election, ElectionSettings, Lease, lease_body, lease_from, micro_time

TIMES = ElectionSettings("kube-system", "eclectus", lease_duration=15, renew_deadline=10, retry_period=2)
WALL = datetime(2026, 1, 1, tzinfo=UTC)


class Store:
    """A Lease behind optimistic concurrency."""

    def __init__(self):
        self.lease, self.version = None, 0

    def write(self, desired: Lease) -> Lease | None:
        known = self.lease.version if self.lease else ""
        if desired.version != known:
            return None
        self.version += 1
        self.lease = rewrite(desired, version=str(self.version))
        return self.lease


def take_turn(one: Election, store: Store, now: float, answered_after: float = 0.0) -> None:
    one.observed(store.lease, now)
    desired = one.desired(now, WALL)
    if desired is not None and (written := store.write(desired)) is not None:
        one.committed(written, now, now + answered_after)


def test_the_first_to_write_leads_and_the_other_waits():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    take_turn(a, store, 0)
    take_turn(b, store, 0)
    assert (a.leads(1), b.leads(1), b.holder) == (True, False, "a")


def test_a_suspended_leader_has_stopped_before_another_leads():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    take_turn(a, store, 0)
    for now in range(16):  # a is suspended; b reads every second
        take_turn(b, store, now)
        assert not b.leads(now) or not a.leads(now)
    assert b.leads(15)
    assert not a.leads(15)  # its first look at the clock after it resumes
    take_turn(a, store, 16)
    assert not a.leads(16)


def test_a_renewal_counts_from_its_sending_not_from_its_answer():
    store, a = Store(), Election("a", TIMES)
    take_turn(a, store, 0, answered_after=8)
    assert a.leads(9.9)
    assert not a.leads(10)


def test_whoever_loses_the_race_for_a_free_lease_does_not_lead():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    a.observed(None, 0)
    b.observed(None, 0)
    first, second = a.desired(0, WALL), b.desired(0, WALL)
    assert store.write(first) is not None
    assert store.write(second) is None
    assert not b.leads(0)


def test_a_released_lease_is_taken_at_once():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    take_turn(a, store, 0)
    store.write(a.resign())
    assert not a.leads(0.1)
    take_turn(b, store, 0.1)
    assert b.leads(0.2)
    assert store.lease.transitions == 1


def test_a_leader_whose_lease_was_taken_or_deleted_stops_at_once():
    store, a = Store(), Election("a", TIMES)
    take_turn(a, store, 0)
    a.observed(None, 1)
    assert not a.leads(1)
    take_turn(a, store, 1)
    a.observed(rewrite(store.lease, holder="b", version="99"), 2)
    assert not a.leads(2)


def test_a_holder_with_a_longer_duration_keeps_its_lease_that_long():
    store, slow, quick = (
        Store(),
        Election("slow", replace(TIMES, lease_duration=60, renew_deadline=50)),
        Election("q", TIMES),
    )
    take_turn(slow, store, 0)
    take_turn(quick, store, 0)
    take_turn(quick, store, 40)
    assert slow.leads(40)
    assert not quick.leads(40)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0.01, 9), st.floats(0, 4), st.booleans()), max_size=60)
)
def test_never_two_leaders_whatever_is_late_lost_or_suspended(turns):
    """Each turn: who acts, after how long, how late its answer is, and whether the answer is lost."""
    store, now = Store(), 0.0
    replicas = [Election(name, TIMES) for name in "abc"]
    for who, pause, late, lost in turns:
        now += pause
        one = replicas[who]
        one.observed(store.lease, now)
        desired = one.desired(now, WALL)
        written = store.write(desired) if desired is not None else None
        if written is not None and not lost:
            one.committed(written, now, now + late)
        assert sum(replica.leads(now) for replica in replicas) <= 1


def test_a_lease_survives_a_round_trip_through_json():
    lease = Lease("me", 15.0, micro_time(WALL), micro_time(WALL), 3, "7")
    assert lease_from(lease_body(lease, TIMES)) == lease
    assert micro_time(WALL) == "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("spec", [{}, None, {"holderIdentity": None}])
def test_a_lease_without_fields_is_free(spec):
    assert lease_from({"metadata": {"resourceVersion": "1"}, "spec": spec}) == Lease(version="1")
