"""Events and conditions: what is written, and what is not."""

from datetime import UTC, datetime

from eclectus.live.watch.watched import Standing
from eclectus.live.write.conditions import patch
from eclectus.live.write.event_recorder import BUCKET_EVENTS, BUCKET_SECONDS, TokenBuckets, body, cut
from eclectus.model.commands import Bind, Report

BIND = Bind("u", "ns", "p", "n1", "mine")
REPORT = Report("u", "ns", "p", "mine", "Unschedulable", "0/1 nodes are available: 1 Too many pods.")


def test_a_note_of_a_kilobyte_stays_and_a_longer_one_is_cut_with_dots():
    assert cut("x" * 1024) == "x" * 1024
    assert cut("x" * 1025) == "x" * 1020 + " ..."
    assert len(cut("é" * 600).encode()) <= 1024


def test_an_event_names_its_controller_by_the_pods_scheduler_and_has_microseconds():
    event = body(BIND, {"reason": "Scheduled"}, "eclectus-host", 1_700_000_000_123_456_789)
    assert event["reportingController"] == "mine"
    assert event["eventTime"] == "2023-11-14T22:13:20.123456Z"
    assert event["regarding"]["uid"] == "u"


def test_the_name_of_an_event_is_a_dns_name_however_long_the_pods_is():
    long = Bind("u", "ns", "a" * 235 + "-.b" * 6, "n1", "mine")
    name = body(long, {}, "i", 2**60)["metadata"]["name"]
    assert len(name) <= 253
    assert "-." not in name[230:]
    assert ".." not in name


def test_one_object_gets_a_burst_of_events_and_then_one_in_a_while():
    buckets = TokenBuckets()
    assert [buckets.take("u", 0.0) for _ in range(BUCKET_EVENTS + 1)] == [True] * BUCKET_EVENTS + [False]
    assert buckets.take("other", 0.0)
    assert not buckets.take("u", BUCKET_SECONDS * 0.9)
    assert buckets.take("u", BUCKET_SECONDS * 1.1)


def test_buckets_of_long_silent_objects_are_forgotten():
    buckets = TokenBuckets(most=2)
    for uid in "abc":
        buckets.take(uid, 0.0)
    assert len(buckets._buckets) == 2


def test_a_patch_holds_for_one_version_of_one_pod_only():
    made = patch(REPORT, Standing("42", 3, refused=False), datetime(2026, 1, 1, tzinfo=UTC))
    assert made["metadata"] == {"uid": "u", "resourceVersion": "42"}
    (condition,) = made["status"]["conditions"]
    assert condition["observedGeneration"] == 3
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_a_transition_that_happened_before_keeps_its_time():
    (condition,) = patch(REPORT, Standing("42", 3, refused=True), datetime.now(UTC))["status"]["conditions"]
    assert "lastTransitionTime" not in condition
