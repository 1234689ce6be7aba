"""A DagJob that has failed runs again when its user asks for it, from what has not succeeded."""

from collections import Counter

from dag_jobs import dag_job, stage, stored, task_pod
from dag_operator_world import JOBS, PODS, DagWorld, task_of
from eclectus.api.common import time_seconds
from eclectus.api.dag_job import StageStatus
from eclectus_operator.dag_jobs.job_status import retried
from eclectus_operator.dag_jobs.tasks import assess
from probe_world import driven

FAILS = (1, "Error")
NOW = 2_000_000.0


def failed_world(**spec):
    """A job of which a task has failed for good, and a stage has not begun; and which pods were created."""
    world, created = (
        DagWorld(dag_job(stages=[stage("a", tasks=3, retries=1), stage("b", "a")], **spec)),
        Counter(),
    )

    def count(method, path, body):
        if method == "POST" and path.startswith(PODS):
            created[task_of(body)] += 1

    world.api.watchers.append(count)
    world.ends = {("a", 1, 0): FAILS, ("a", 1, 1): FAILS}
    world.play(60)
    assert world.condition("Failed")["status"] == "True"
    return world, created


def test_what_has_not_succeeded_runs_again_and_nothing_else():
    world, created = failed_world()
    world.change(retry=1)
    world.play(60)
    assert (world.condition("Succeeded")["status"], world.status()["tasks"]) == ("True", "4/4")
    failed = world.condition("Failed")
    assert (failed["status"], failed["reason"], world.status()["retry"]) == ("False", "Retried", 1)
    before = {("a", 0, 0), ("a", 1, 0), ("a", 2, 0), ("a", 1, 1)}
    assert created == dict.fromkeys({*before, ("a", 1, 2), ("b", 0, 0)}, 1)
    assert world.reasons().count("Retried") == 1


def test_the_first_try_has_no_back_off_and_each_task_may_fail_as_often_as_at_first():
    world, created = failed_world()
    world.ends |= {("a", 1, 2): FAILS, ("a", 1, 3): FAILS}
    world.change(retry=1)
    world.play(2)
    assert ("a", 1, 2) in created
    world.play(200)
    failed = world.condition("Failed")
    assert (failed["status"], failed["reason"]) == ("True", "RetriesExceeded")
    assert "failed 4 times" in failed["message"]
    assert ("a", 1, 4) not in created
    assert world.stage("a")["completedIndexes"] == "0,2"


def test_a_number_is_taken_up_once_by_whatever_process():
    world, _ = failed_world()
    world.ends |= {("a", 1, 2): FAILS, ("a", 1, 3): FAILS}
    world.change(retry=1)
    world.play(200)
    world.start()
    world.play(60)
    assert world.condition("Failed")["status"] == "True"
    assert world.reasons().count("Retried") == 1


def test_a_job_that_runs_or_has_succeeded_does_not_begin_anew():
    world = DagWorld(dag_job(stages=[stage("a", tasks=2)]))
    world.play(4)
    world.change(retry=1)
    world.play(40)
    assert (world.condition("Succeeded")["status"], world.status()["retry"]) == ("True", 1)
    world.change(retry=2)
    changed = world.job()["metadata"]["resourceVersion"]
    world.play(10)
    assert world.job()["metadata"]["resourceVersion"] == changed, "nothing is written"


def test_the_deadline_counts_from_the_retry_and_the_plan_is_a_new_one():
    world, _ = failed_world(deadlineSeconds=120)
    world.api.touch(f"{JOBS}/job")["status"]["plan"] = {"deadline": "2001-01-01T00:00:00Z"}
    world.api.now += 1000
    began = world.api.now
    world.change(retry=1)
    world.sync()
    assert time_seconds(world.status()["startTime"]) >= int(began)
    assert {"completionTime", "plan"}.isdisjoint(world.status())
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"


def test_a_job_that_has_failed_by_its_deadline_keeps_what_had_succeeded():
    world = DagWorld(dag_job(stages=[stage("a", tasks=2), stage("b", "a", tasks=2)], deadlineSeconds=20))
    world.quota = 1
    world.play(40)
    assert world.condition("Failed")["reason"] == "DeadlineExceeded"
    kept = world.stage("a")["completedIndexes"]
    assert kept
    world.quota = 10
    world.change(retry=1)
    world.play(40)
    assert world.condition("Succeeded")["status"] == "True"
    assert ("a", 0, 1) not in world.tasks()


def test_the_list_of_all_jobs_finds_a_retry_whose_event_was_lost():
    world, _ = failed_world()
    world.api.touch(f"{JOBS}/job")["spec"]["retry"] = 1
    world.api.now += world.settings.look_seconds
    driven(world.controller.sync())
    assert world.condition("Failed")["status"] == "False"


def test_the_status_of_a_retry_has_no_times_of_the_run_before():
    at = "2026-03-01T12:00:00Z"
    failed = {"type": "Failed", "status": "True", "reason": "R", "lastTransitionTime": at}
    job = stored(dag_job(retry=1), {"conditions": [failed], "startTime": at, "completionTime": at})
    assert job.is_retried
    update = retried(job, NOW)
    written = update.patch["status"]
    assert [written[each] for each in ("startTime", "completionTime", "plan")] == [None, None, None]
    assert (update.status.retry, update.status.has_finished) == (1, False)


def test_failures_before_the_start_delay_nothing_and_those_after_it_do():
    pods, one = [task_pod(0, 1, "Failed", ended=NOW - 1)], stored(dag_job(stages=[stage("a")])).spec.stages[0]
    assert assess(one, StageStatus("a"), pods, NOW, began=NOW).startable == [0]
    assert assess(one, StageStatus("a"), pods, NOW, began=NOW - 2).startable == []
