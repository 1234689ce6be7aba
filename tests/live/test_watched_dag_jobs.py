"""DagJobs as the scheduler watches them: which count, and what is reported of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dag_job_objects import dag_job, stage
from eclectus.kube.objects import decode_list
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import PlanState, WatchedDagJobs, jobs_kind
from eclectus.model.errors import MalformedError
from eclectus.model.events import JobGone, JobSeen


@pytest.fixture
def skipped() -> list[MalformedError]:
    return []


@pytest.fixture
def jobs() -> WatchedDagJobs:
    return WatchedDagJobs(lambda name: name == "eclectus")


@pytest.fixture
def store(jobs: WatchedDagJobs, skipped: list[MalformedError]) -> ObjectStore:
    return ObjectStore(jobs_kind(jobs), skipped.append)


def line(body: Any, kind: str = "MODIFIED") -> bytes:
    return json.dumps({"type": kind, "object": body}).encode()


def observed(store: ObjectStore, body: Any) -> Any:
    return store.apply(line(body), 0.0)


def test_a_job_is_seen_with_its_stages_and_the_version_for_its_plan(
    store: ObjectStore, jobs: WatchedDagJobs
) -> None:
    event = observed(store, dag_job(stage("b", "a"), stage("a"), resourceVersion="7"))
    assert [each.name for each in event.job.stages] == ["a", "b"]
    assert jobs.plan_states == {"job-1": PlanState("7", None)}
    assert store.apply(line(dag_job(stage("a")), "DELETED"), 0.0) == JobGone("job-1")
    assert jobs.plan_states == {}


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    at = "2026-03-01T12:00:00Z"
    return {"conditions": [{"type": kind, "status": status, "reason": "R", "lastTransitionTime": at}]}


@pytest.mark.parametrize(
    "fields",
    [
        {"status": condition("Succeeded")},
        {"status": condition("Failed")},
        {"deletionTimestamp": "2026-03-01T12:00:00Z"},
    ],
)
def test_a_job_that_has_ended_or_is_being_deleted_is_gone(
    store: ObjectStore, jobs: WatchedDagJobs, fields: Any
) -> None:
    assert isinstance(observed(store, dag_job(stage("a"))), JobSeen)
    assert observed(store, dag_job(stage("a"), **fields)) == JobGone("job-1")
    assert jobs.plan_states == {}


def test_a_job_that_has_not_ended_is_seen(store: ObjectStore) -> None:
    assert isinstance(observed(store, dag_job(stage("a"), status=condition("Failed", "False"))), JobSeen)


def test_a_job_of_another_scheduler_does_not_count(store: ObjectStore) -> None:
    theirs = {"spec": {"containers": [], "schedulerName": "default-scheduler"}}
    assert observed(store, dag_job(stage("a", template=theirs))) == JobGone("job-1")
    assert isinstance(
        observed(store, dag_job(stage("a", template=theirs), stage("b"), generation=2)), JobSeen
    )


def test_a_job_that_cannot_be_read_is_reported_once_and_stops_no_other(
    store: ObjectStore, skipped: list[MalformedError]
) -> None:
    circle = dag_job(stage("a", "b"), stage("b", "a"), name="circle", uid="job-2")
    for _ in range(3):  # as its status changes
        assert observed(store, circle) == JobGone("job-2")
    assert isinstance(observed(store, dag_job(stage("a"))), JobSeen)
    assert [(error.kind, error.name) for error in skipped] == [("DagJob", "shop/circle")]
    broken = dag_job(stage("a", tasks="many"), name="broken", uid="job-3")
    assert observed(store, broken) is None, "nothing of it can be read, not even whether it has ended"
    assert "DagJob shop/broken: spec.stages[0].tasks" in str(skipped[-1])


def test_stages_are_translated_again_only_with_a_new_generation(store: ObjectStore) -> None:
    first, same = (observed(store, dag_job(stage("a"), resourceVersion=at)).job for at in "12")
    changed = observed(store, dag_job(stage("a", tasks=2), generation=2)).job
    assert same.stages[0] is first.stages[0]
    assert changed.stages[0].tasks == 2


def test_jobs_that_are_on_no_list_are_gone(store: ObjectStore) -> None:
    observed(store, dag_job(stage("a")))
    store.start_list()
    store.page(decode_list(json.dumps({"metadata": {}, "items": []}).encode()), 0.0)
    assert store.end_list() == [JobGone("job-1")]
