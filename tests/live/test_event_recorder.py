"""Kubernetes events: names, notes, and the limit of their rate."""

from eclectus.live.write.event_recorder import (
    BUCKET_EVENTS,
    BUCKET_SECONDS,
    TokenBuckets,
    event_body,
    truncate,
)
from eclectus.model.commands import Bind

BIND = Bind("u", "ns", "p", "n1", "mine")


def test_a_note_beyond_a_kilobyte_is_truncated():
    assert truncate("x" * 1024) == "x" * 1024
    assert truncate("x" * 1025) == "x" * 1020 + " ..."
    assert len(truncate("é" * 600).encode()) <= 1024


def test_the_reporting_controller_is_the_pods_scheduler_and_times_have_microseconds():
    event = event_body(BIND, {"reason": "Scheduled"}, "eclectus-host", 1_700_000_000_123_456_789)
    assert event["reportingController"] == "mine"
    assert event["eventTime"] == "2023-11-14T22:13:20.123456Z"
    assert event["regarding"]["uid"] == "u"


def test_the_name_of_an_event_is_a_dns_name_however_long_the_pods_name_is():
    long = Bind("u", "ns", "a" * 235 + "-.b" * 6, "n1", "mine")
    name = event_body(long, {}, "i", 2**60)["metadata"]["name"]
    assert len(name) <= 253
    assert "-." not in name[230:]
    assert ".." not in name


def test_an_object_has_a_burst_of_events_and_then_one_per_period():
    buckets = TokenBuckets()
    assert [buckets.take("u", 0.0) for _ in range(BUCKET_EVENTS + 1)] == [True] * BUCKET_EVENTS + [False]
    assert buckets.take("other", 0.0)
    assert not buckets.take("u", BUCKET_SECONDS * 0.9)
    assert buckets.take("u", BUCKET_SECONDS * 1.1)


def test_the_least_recently_used_bucket_is_forgotten():
    buckets = TokenBuckets(capacity=2)
    for uid in "abc":
        buckets.take(uid, 0.0)
    assert len(buckets._buckets) == 2
