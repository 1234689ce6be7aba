"""The split-brain argument, on a clock of our own."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as rewrite

from eclectus.config.process_settings import LeaderElection
from eclectus.kubeclient.election import Election, Lease, lease_body, lease_from, micro_time

TIMES = LeaderElection(lease_duration=15, renew_deadline=10, retry_period=2)
WALL = datetime(2026, 1, 1, tzinfo=UTC)


class Store:
    """A Lease behind optimistic concurrency."""

    def __init__(self):
        self.lease, self.version = None, 0

    def write(self, wish: Lease) -> Lease | None:
        known = self.lease.version if self.lease else ""
        if wish.version != known:
            return None
        self.version += 1
        self.lease = rewrite(wish, version=str(self.version))
        return self.lease


def take_turn(one: Election, store: Store, now: float, answered_after: float = 0.0) -> None:
    one.saw(store.lease, now)
    wish = one.wish(now, WALL)
    if wish is not None and (written := store.write(wish)) is not None:
        one.wrote(written, now, now + answered_after)


def test_the_first_to_write_leads_and_the_other_waits():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    take_turn(a, store, 0)
    take_turn(b, store, 0)
    assert (a.leads(1), b.leads(1), b.holder) == (True, False, "a")


def test_a_frozen_leader_finds_its_time_over_before_another_leads():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    take_turn(a, store, 0)
    for now in range(16):  # a is frozen; b looks every second
        take_turn(b, store, now)
        assert not b.leads(now) or not a.leads(now)
    assert b.leads(15)
    assert not a.leads(15)  # its first look at the clock after thawing
    take_turn(a, store, 16)
    assert not a.leads(16)


def test_a_renewal_counts_from_its_sending_not_from_its_answer():
    store, a = Store(), Election("a", TIMES)
    take_turn(a, store, 0, answered_after=8)
    assert a.leads(9.9)
    assert not a.leads(10)


def test_whoever_loses_the_race_for_a_free_lease_does_not_lead():
    store, a, b = Store(), Election("a", TIMES), Election("b", TIMES)
    a.saw(None, 0)
    b.saw(None, 0)
    first, second = a.wish(0, WALL), b.wish(0, WALL)
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
    a.saw(None, 1)
    assert not a.leads(1)
    take_turn(a, store, 1)
    a.saw(rewrite(store.lease, holder="b", version="99"), 2)
    assert not a.leads(2)


def test_the_promise_of_a_holder_with_longer_times_is_kept():
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
def test_never_two_leaders_whatever_is_late_lost_or_frozen(turns):
    """Each turn: who acts, after how long, how late its answer is, and whether the answer is lost."""
    store, now = Store(), 0.0
    replicas = [Election(name, TIMES) for name in "abc"]
    for who, pause, late, lost in turns:
        now += pause
        one = replicas[who]
        one.saw(store.lease, now)
        wish = one.wish(now, WALL)
        written = store.write(wish) if wish is not None else None
        if written is not None and not lost:
            one.wrote(written, now, now + late)
        assert sum(replica.leads(now) for replica in replicas) <= 1


def test_a_lease_survives_the_way_through_json():
    lease = Lease("me", 15.0, micro_time(WALL), micro_time(WALL), 3, "7")
    assert lease_from(lease_body(lease, "kube-system", "eclectus")) == lease
    assert micro_time(WALL) == "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("spec", [{}, None, {"holderIdentity": None}])
def test_a_lease_with_nothing_in_it_is_free(spec):
    assert lease_from({"metadata": {"resourceVersion": "1"}, "spec": spec}) == Lease(version="1")
