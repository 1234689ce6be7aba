"""The state of tasks: from the status and the pods that exist, line by line of the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dag_jobs import NOW, dag_job, stage, stored, task_pod
from eclectus.api.dag_job import FailedTasks, StageStatus
from eclectus_operator.dag_jobs.tasks import OVERDUE_SECONDS, assess

(STAGE,) = stored(dag_job(stages=[stage("a", tasks=3, retries=2)])).spec.stages
NOTHING = StageStatus("a")
RUNS_AT = NOW + 5.0  # five seconds after the pods of these tests have ended


def tasks(*pods, recorded=NOTHING, now=RUNS_AT, **options):
    return assess(STAGE, recorded, pods, now, **options)


def names(pods):
    return [pod.name for pod in pods]


def test_a_task_that_is_recorded_as_succeeded_does_not_run_again():
    found = tasks(recorded=StageStatus("a", completed_indexes="0-1"))
    assert found.succeeded == {0, 1}
    assert found.status.waiting == 1
    assert not found.is_complete


def test_a_pod_that_runs_for_a_succeeded_task_is_obsolete():
    found = tasks(task_pod(phase="Running"), recorded=StageStatus("a", completed_indexes="0"))
    assert names(found.obsolete) == ["p-0-0"]
    assert not found.active


def test_a_pod_that_has_succeeded_counts_before_it_is_recorded():
    assert tasks(task_pod(phase="Succeeded")).succeeded == {0}


def test_of_two_pods_of_a_task_the_later_one_is_obsolete():
    found = tasks(task_pod(created=2.0, name="late"), task_pod(created=1.0, name="early", phase="Running"))
    assert names(found.obsolete) == ["late"]
    assert found.active[0].name == "early"
    assert (found.running, found.not_started) == (1, 0)


def test_a_pod_that_is_being_deleted_is_waited_for_until_it_is_overdue_by_a_minute():
    leaving = task_pod(phase="Running", deletion=NOW)
    assert tasks(leaving).not_before == {0: NOW + OVERDUE_SECONDS}
    found = tasks(leaving, now=NOW + OVERDUE_SECONDS)
    assert not found.not_before
    assert not found.active
    assert not found.failures, "it has not failed"


def test_a_task_waits_for_the_end_of_a_pod_that_failed_and_that_a_restored_etcd_has_brought_back():
    recorded = StageStatus("a", failed_tasks=(FailedTasks(1, "0"),))
    found = tasks(task_pod(phase="Running"), recorded=recorded)
    assert names(found.obsolete) == ["p-0-0"]
    assert 0 not in found.startable
    assert 0 in tasks(task_pod(phase="Failed"), recorded=recorded, now=NOW + 10.0).startable


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 10.0), (1, 20.0)])
def test_a_task_that_failed_runs_again_after_a_back_off_that_doubles(attempt, seconds):
    found = tasks(task_pod(attempt=attempt, phase="Failed"))
    assert found.failures == {0: attempt + 1}
    assert found.not_before == {0: NOW + seconds}
    assert not found.failed
    assert not tasks(task_pod(attempt=attempt, phase="Failed"), now=NOW + seconds).not_before


def test_a_task_fails_for_good_after_its_last_retry():
    found = tasks(task_pod(attempt=2, phase="Failed"))
    assert found.failed == (0,)
    status = found.status
    assert (status.failed, status.retried, status.waiting) == (1, 2, 2)
    assert status.failed_tasks == (FailedTasks(3, "0"),)


def test_a_preempted_pod_is_no_failure_and_its_task_runs_again_at_once():
    found = tasks(task_pod(phase="Failed", is_disrupted=True))
    assert not found.failures
    assert not found.not_before


def test_a_failure_is_counted_once_whatever_is_recorded():
    failed = task_pod(phase="Failed")
    first = tasks(failed)
    assert first.failures == {0: 1}
    assert tasks(failed, recorded=first.status).failures == {0: 1}
    again = tasks(failed, task_pod(attempt=1), recorded=first.status)
    assert again.failures == {0: 1}
    assert again.active[0].attempt == 1
    assert tasks(recorded=first.status).failures == {0: 1}, "its pods are gone"
    assert tasks(task_pod(attempt=1)).failures == {0: 1}, "the record is lost"


def test_a_pod_of_an_attempt_before_the_recorded_failures_is_obsolete():
    found = tasks(task_pod(phase="Running"), recorded=StageStatus("a", failed_tasks=(FailedTasks(1, "0"),)))
    assert names(found.obsolete) == ["p-0-0"]


def test_a_task_whose_pod_was_deleted_runs_again_and_has_not_failed():
    found = tasks()
    assert not found.failures
    assert found.status.waiting == 3


def test_while_its_outputs_are_needed_a_task_without_its_pod_has_not_succeeded():
    recorded = StageStatus("a", completed_indexes="0-2")
    found = tasks(task_pod(1, phase="Succeeded"), recorded=recorded, outputs_needed=True)
    assert found.succeeded == {1}
    assert tasks(recorded=recorded).is_complete


def test_the_run_time_is_the_median_of_the_pods_that_succeeded():
    pods = [task_pod(i, phase="Succeeded", run_seconds=seconds) for i, seconds in enumerate((9.0, 1.0, 2.0))]
    assert tasks(*pods).run_seconds == 2.0
    kept = tasks(recorded=StageStatus("a", completed_indexes="0-2", run_seconds=2.0))
    assert kept.run_seconds == 2.0, "it outlives the pods"


PODS = st.lists(
    st.builds(
        task_pod,
        index=st.integers(0, 2),
        attempt=st.integers(0, 3),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        name=st.uuids().map(str),
        created=st.floats(0, NOW),
        deletion=st.none() | st.floats(NOW - 100, NOW + 100),
        is_disrupted=st.booleans(),
    )
)
RECORDED = st.builds(
    lambda done, failed: StageStatus("a", completed_indexes=done, failed_tasks=(FailedTasks(2, failed),)),
    done=st.sampled_from(["", "0", "1-2"]),
    failed=st.sampled_from(["0", "1", "0-2"]),
)


@given(PODS, RECORDED)
def test_every_task_is_in_one_state_and_no_pod_of_it_is_forgotten(pods, recorded):
    found = tasks(*pods, recorded=recorded)
    status = found.status
    assert status.waiting + status.running + status.succeeded + status.failed == STAGE.tasks
    assert not set(found.active) & set(found.succeeded)
    assert not set(found.failed) & set(found.succeeded)
    alive = {pod.name for pod in pods if not pod.has_ended and pod.deletion is None}
    assert {pod.name for pod in (*found.active.values(), *found.obsolete)} == alive
    again = tasks(*pods, recorded=status)
    assert (again.succeeded, again.failures) == (found.succeeded, found.failures), "recording changes nothing"
