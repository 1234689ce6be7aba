"""What is known of DAG jobs and of the pods of their stages, whatever the order of events."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from builders import make_spec, make_task
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Task


def job(name: str = "j", **fields: Any) -> Job:
    stages = (JobStage("map", 3, make_spec(1)), JobStage("reduce", 2, make_spec(2), parents=(0,)))
    return Job(uid=f"uid-{name}", namespace="default", name=name, **{"stages": stages} | fields)


def pod(name: str, stage: str = "map", **fields: Any) -> Task:
    return make_task(name, job="uid-j", **fields, stage=stage)


def counts(jobs: KnownJobs) -> list[tuple[int, int, int, int]]:
    return [
        (len(each.waiting), len(each.on_nodes), each.counts.succeeded, each.counts.to_start)
        for each in jobs["uid-j"].stages
    ]


def test_a_task_waits_runs_and_succeeds() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.wait(pod("a"))
    assert counts(jobs) == [(1, 0, 0, 3), (0, 0, 0, 2)]
    jobs.hold(pod("a"))
    assert counts(jobs) == [(0, 1, 0, 2), (0, 0, 0, 2)]
    jobs.leave("uid-a")
    jobs.succeed(pod("a"))
    jobs.release("uid-a")
    assert counts(jobs) == [(0, 0, 1, 2), (0, 0, 0, 2)]


def test_pods_that_are_seen_before_their_job_are_counted_when_it_is_seen() -> None:
    jobs = KnownJobs()
    jobs.wait(pod("a"))
    jobs.hold(pod("b", "reduce"))
    jobs.see(job())
    assert counts(jobs) == [(1, 0, 0, 3), (0, 1, 0, 1)]


def test_labels_of_another_namespace_or_of_no_stage_count_nowhere() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.wait(replace(pod("a"), namespace="other"))
    jobs.wait(pod("b", "sort"))
    assert counts(jobs) == [(0, 0, 0, 3), (0, 0, 0, 2)]
    assert jobs.of(replace(pod("a"), namespace="other")) is None
    assert jobs.of(pod("b", "sort")) is None


def test_a_job_exists_until_it_is_gone_and_does_not_come_back() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.wait(pod("a"))
    jobs.leave("uid-a")
    assert "uid-j" in jobs
    jobs.drop("uid-j")
    jobs.see(job())  # late
    jobs.drop("uid-j")
    jobs.drop("uid-unknown")
    assert not jobs


def test_pods_that_run_when_their_job_is_deleted_leave_nothing_behind() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.hold(pod("a"))
    jobs.drop("uid-j")
    jobs.release("uid-a")
    assert not jobs._pods
    assert not jobs._pods_of


def test_a_job_has_succeeded_as_far_as_its_status_or_its_pods_say() -> None:
    jobs, stages = KnownJobs(), job().stages
    jobs.see(job())
    jobs.succeed(pod("a"))
    jobs.succeed(pod("a"))
    assert jobs["uid-j"].stages[0].counts.succeeded == 1
    jobs.see(job(stages=(replace(stages[0], succeeded=3), stages[1])))
    assert jobs["uid-j"].stages[0].counts.is_done
    assert jobs["uid-j"].is_ready(jobs["uid-j"].stages[1])


def test_finished_tasks_that_are_opened_again_are_to_start_again() -> None:
    jobs, stages = KnownJobs(), job().stages
    jobs.see(job(stages=(replace(stages[0], succeeded=1), stages[1])))
    jobs.succeed(pod("a"))
    jobs.succeed(pod("b"))
    assert jobs["uid-j"].stages[0].counts.to_start == 1
    jobs.see(job(stages=(replace(stages[0], succeeded=0), stages[1])))
    assert jobs["uid-j"].stages[0].counts.to_start == 3


def test_a_pod_that_changes_its_stage_is_counted_there() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.hold(pod("a"))
    jobs.regroup(pod("a", "reduce"))
    assert counts(jobs) == [(0, 0, 0, 3), (0, 1, 0, 1)]


def test_other_stages_under_the_same_uid_are_another_job() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    jobs.hold(pod("a"))
    jobs.see(job(stages=(JobStage("map", 9, make_spec(1)),)))
    assert counts(jobs) == [(0, 1, 0, 8)]


def test_only_what_has_changed_is_recorded() -> None:
    jobs = KnownJobs()
    jobs.see(job())
    head = jobs.changes.head
    jobs.see(job())
    jobs.wait(make_task("plain"))
    jobs.leave("uid-unknown")
    assert jobs.changes.head == head


def test_any_order_of_events_counts_what_a_recount_counts() -> None:
    for seed in range(20):
        _check_random_events(Random(seed))


def _check_random_events(random: Random) -> None:
    jobs, waits, holds = KnownJobs(), set[str](), set[str]()
    pods = {name: pod(name, random.choice(["map", "reduce"])) for name in "abcdef"}

    def wait(name: str) -> None:
        jobs.wait(pods[name])
        waits.add(name)

    def leave(name: str) -> None:
        jobs.leave(pods[name].uid)
        waits.discard(name)

    def hold(name: str) -> None:
        if name not in holds:
            jobs.hold(pods[name])
            holds.add(name)

    def release(name: str) -> None:
        if name in holds:
            jobs.release(pods[name].uid)
            holds.discard(name)

    events: list[Callable[[str], None]] = [wait, leave, hold, release, lambda _: jobs.see(job())]
    for _ in range(60):
        random.choice(events)(random.choice(list(pods)))
    jobs.see(job())
    for stage in jobs["uid-j"].stages:
        named = {name for name in pods if pods[name].stage == stage.stage.name}
        assert set(stage.on_nodes) == {pods[name].uid for name in named & holds}
        assert set(stage.waiting) == {pods[name].uid for name in named & waits - holds}
    for name in pods:
        leave(name)
        release(name)
    assert not jobs._pods
