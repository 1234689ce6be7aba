"""The patch of the condition PodScheduled."""

from datetime import UTC, datetime

from eclectus.live.watch.watched_kinds import ConditionState
from eclectus.live.write.status_patches import condition_patch
from eclectus.model.commands import Report

REPORT = Report("u", "ns", "p", "mine", "Unschedulable", "0/1 nodes are available: 1 Too many pods.")


def test_a_patch_applies_to_one_version_of_one_pod_only():
    patch = condition_patch(REPORT, ConditionState("42", 3, is_false=False), datetime(2026, 1, 1, tzinfo=UTC))
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "42"}
    (condition,) = patch["status"]["conditions"]
    assert condition["observedGeneration"] == 3
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_the_time_of_an_earlier_transition_is_kept():
    (condition,) = condition_patch(REPORT, ConditionState("42", 3, is_false=True), datetime.now(UTC))[
        "status"
    ]["conditions"]
    assert "lastTransitionTime" not in condition
