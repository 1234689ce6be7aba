"""Late pods of Jobs: ended once, by the condition that their Job ignores, or left alone with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from bare_pods import IGNORES, JOB, STRAGGLES, WORTH_RESTARTING, BareWorld, Object, of_job, pod
from eclectus_operator.copies.restarts import why_not

FAILS = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [143]}}


def world(found: Object, job: Object | None, condition: Object = WORTH_RESTARTING) -> BareWorld:
    made = BareWorld(found, seconds={"a": 600.0})
    made.condition = condition
    if job is not None:
        made.api.put(JOB.rpartition("/")[0], job)
    return made


def test_a_pod_is_marked_and_then_deleted_and_nothing_is_made():
    late = world(*of_job())
    late.play(4)
    (gone,) = late.pods().values()
    assert gone["metadata"]["deletionTimestamp"]
    (mark,) = (each for each in gone["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (mark["status"], mark["reason"]) == ("True", "RestartedElsewhere")
    late.play(20)
    assert late.left() == {}
    assert late.made() == 0
    (note,) = late.notes("Restarted")
    assert note == "a is ended, so that its Job makes another: 100 s left, 9 s elsewhere"
    assert 'eclectus_copy_steps_total{step="restarted"} 1.0' in late.metrics.expose().decode()


def test_where_its_node_is_silent_it_stays_and_what_its_job_waits_for_is_said_once():
    late = world(*of_job())
    late.play(4)
    late._advance = lambda path: None
    late.play(400)
    assert late.left() == {"a": "Running"}, "the Job's controller holds it by a finalizer until it has ended"
    (note,) = late.notes("PodsLeaving")
    assert note == (
        "deleted, and not gone: pod a: still being deleted after 120 s (node n0); "
        "its Job makes another one when it is gone"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"podFailurePolicy": None}, "lacks as the first rule of its podFailurePolicy Ignore"),
        ({"podFailurePolicy": {"rules": [FAILS, IGNORES]}}, "Ignore on DisruptionTarget; it needs"),
        ({"podFailurePolicy": {"rules": [{**IGNORES, "action": "Count"}]}}, "Ignore on DisruptionTarget"),
        ({"podReplacementPolicy": "TerminatingOrFailed"}, "lacks podReplacementPolicy: Failed; it needs"),
        ({"completionMode": "NonIndexed"}, "lacks completionMode: Indexed; it needs podFailurePolicy"),
    ],
)
def test_a_job_that_would_count_it_or_not_know_it_again_is_left_alone_with_a_hint(changes: Any, why: str):
    late = world(*of_job(**changes))
    late.play(30)
    assert late.left() == {"a": "Running"}
    (note,) = late.notes("RestartRefused")
    assert note.startswith("a is not restarted: its Job boss lacks")
    assert why in note


def test_a_job_that_is_gone_and_a_pod_of_nothing_are_left_alone():
    late = world(of_job()[0], None)
    late.play(20)
    assert late.notes("RestartRefused")[0].startswith("a is not restarted: its Job boss could not be read")
    alone = pod()
    alone["metadata"]["annotations"]["eclectus.dev/restartable"] = "true"
    late = world(alone, None)
    late.play(20)
    assert "no Job controls it" in late.notes("RestartRefused")[0]
    assert late.left() == {"a": "Running"}


def test_a_pod_of_a_job_that_is_only_late_or_not_restartable_is_left_alone():
    late = world(*of_job(), condition=STRAGGLES)
    late.play(20)
    assert "use a DagJob" in late.notes("CopyRefused")[0]
    silent, job = of_job()
    silent["metadata"]["annotations"] = {}
    late = world(silent, job)
    late.play(20)
    assert "use a DagJob" in late.notes("CopyRefused")[0]
    assert late.left() == {"a": "Running"}


def test_a_rule_whose_status_is_left_out_is_that_of_true():
    job = of_job(
        podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    )
    assert why_not(job[1]) == ""
