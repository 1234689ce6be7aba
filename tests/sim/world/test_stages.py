"""Jobs with stages: what a watch shows, estimates from history, failures, and the record of shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from builders import make_spec
from checked_worlds import build_checked, run_checked
from eclectus.model.commands import RecordPlan
from eclectus.model.events import Event, JobGone, JobSeen
from eclectus.model.job import JobPlan
from eclectus.model.objects import Node
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import WINDOW_SECONDS, Arrival, Dag, WorkClass, build_dag
from eclectus.sim.world.cluster import Failures
from eclectus.sim.world.dag_record import DagRecord, jain_index, seconds_alone
from eclectus.sim.world.jobs import History, StagedJobs, StageTaskRun
from short_scenarios import scenario
from staged_jobs import DIAMOND, Stage, drafts, job, written

ONE_CPU = WorkClass("one", make_spec())
NODE = Node("n", (("cpu", 10_000), ("pods", 1000)))


def dag(*stages: Stage, name: str = "j") -> Dag:
    return build_dag(name, drafts(*stages))


def staged(history: History | None = None) -> tuple[StagedJobs, list[Event]]:
    events: list[Event] = []
    return StagedJobs(DagRecord([NODE]), history, events.append), events


def arrive(jobs: StagedJobs, number: int, graph: Dag, now: float = 0.0, **more: Any) -> list[StageTaskRun]:
    sizes = tuple(stage.seconds for stage in graph.stages for _ in range(stage.tasks))
    arrival = Arrival(now, graph.stages[0].work_class, sizes, dag=graph, **more)
    return jobs.arrive(number, arrival, graph, now, profile="eclectus", measured=True)


def all_run(jobs: StagedJobs, runs: list[StageTaskRun], now: float) -> float:
    """Runs stage by stage, all tasks of a stage at a time; returns when the job has ended."""
    while runs:
        for each in runs:
            jobs.start(each, now)
            each.started = now
        by_end = sorted(runs, key=lambda each: each.size)
        runs = [more for each in by_end for more in jobs.end(each, now + each.size)]
        now += by_end[-1].size
    return now


# -- what a watch shows ------------------------------------------------------------------------------


def test_a_job_is_seen_when_it_arrives_at_each_stage_s_end_and_gone_in_the_end() -> None:
    jobs, events = staged()
    all_run(jobs, arrive(jobs, 3, dag(*DIAMOND)), 0.0)
    seen = [event.job for event in events if isinstance(event, JobSeen)]
    done = [tuple(stage.succeeded for stage in each.stages) for each in seen]
    assert done == [(0, 0, 0, 0), (2, 0, 0, 0), (2, 0, 3, 0), (2, 1, 3, 0)]
    assert events[-1] == JobGone("job-3")
    assert [stage.parents for stage in seen[0].stages] == [(), (0,), (0,), (1, 2)]
    assert [stage.seconds for stage in seen[0].stages] == [3.0, 4.0, 1.0, 2.0]


def test_a_task_names_its_stage_and_its_job() -> None:
    jobs, events = staged()
    runs = arrive(jobs, 0, dag(*DIAMOND))
    first = events[0]
    assert isinstance(first, JobSeen)
    assert {(each.task.job, each.task.namespace, each.task.stage) for each in runs} == {
        (first.job.uid, first.job.namespace, "a")
    }


def test_a_lost_attempt_shows_the_job_again() -> None:
    jobs, events = staged()
    (first, _) = arrive(jobs, 0, dag(*DIAMOND))
    jobs.start(first, 0.0)
    assert jobs.lose(first, 1.0) == 15.0  # all of its work has not started
    assert [type(event) for event in events] == [JobSeen, JobSeen]


def test_a_written_plan_is_part_of_the_job_from_then_on() -> None:
    jobs, events = staged()
    (first, _) = arrive(jobs, 0, dag(*DIAMOND))
    jobs.record_plan(RecordPlan("job-0", "default", "job-0", JobPlan((), 9.0, 12.0, 1, 3.0)))
    jobs.record_plan(RecordPlan("job-7", "default", "job-7", JobPlan((), 9.0, 12.0)))  # gone
    jobs.start(first, 0.0)
    jobs.lose(first, 1.0)
    last = events[-1]
    assert isinstance(last, JobSeen)
    assert (last.job.deadline, last.job.slips, last.job.slip_seconds) == (12.0, 1, 3.0)


def test_slips_of_the_last_plan_are_counted_when_a_job_has_ended() -> None:
    jobs, _ = staged()
    runs = [arrive(jobs, number, dag(*DIAMOND)) for number in (0, 1)]
    jobs.record_plan(RecordPlan("job-0", "default", "job-0", JobPlan((), 9.0, 12.0, 1, 3.0)))
    jobs.record_plan(RecordPlan("job-0", "default", "job-0", JobPlan((), 9.0, 14.0, 2, 5.0)))
    jobs.record_plan(RecordPlan("job-1", "default", "job-1", JobPlan((), 9.0, 14.0, 7, 9.0)))
    all_run(jobs, runs[0], 0.0)
    found = jobs.record.result()
    assert (found.slips, found.slip_seconds) == (2, 5.0)  # the other has not ended


# -- estimates ---------------------------------------------------------------------------------------


def test_history_is_the_median_of_the_last_runs_of_a_stage() -> None:
    history, graph = History(3), dag(("a", 1, 1.0, ""), ("b", 1, 1.0, "a"))
    assert history.estimates(graph) == (None, None)
    for seconds in (100.0, 2.0, 4.0, 3.0):
        history.add("j", "a", [seconds, seconds, 1e6])
    assert history.estimates(graph) == (3.0, None)
    assert history.estimates(dag(("a", 1, 1.0, ""), name="other")) == (None,)


def test_a_recurring_job_is_estimated_by_its_runs_before() -> None:
    jobs, events = staged(History(5))
    graph = dag(*DIAMOND)
    first = arrive(jobs, 0, graph)
    assert {(each.task.estimate, each.task.path, each.task.job_work) for each in first} == {
        (None, None, None)
    }
    now = all_run(jobs, first, 0.0)
    again = arrive(jobs, 1, graph, now)
    assert {(each.task.estimate, each.task.path, each.task.job_work) for each in again} == {(3.0, 9.0, 15.0)}
    last = events[-1]
    assert isinstance(last, JobSeen)
    assert [stage.seconds for stage in last.job.stages] == [3.0, 4.0, 1.0, 2.0]


def test_wrong_estimates_change_what_is_seen_and_not_what_runs() -> None:
    jobs, _ = staged()
    runs = arrive(jobs, 0, dag(*DIAMOND), estimates=(6.0, 8.0, 2.0, 4.0))
    assert {(each.task.estimate, each.task.path, each.task.job_work, each.size) for each in runs} == {
        (6.0, 18.0, 30.0, 3.0)
    }
    assert all_run(jobs, runs, 0.0) == 9.0


# -- failures ----------------------------------------------------------------------------------------


def test_whether_an_attempt_fails_depends_on_its_name_and_the_seed_alone() -> None:
    names = [f"job-{job}-0.{task}" for job in range(20) for task in range(20)]
    first = {name: Failures(0.3, seed=1).share_done(name) for name in names}
    again = Failures(0.3, seed=1)
    assert {name: again.share_done(name) for name in reversed(names)} == first
    assert {name: Failures(0.3, seed=2).share_done(name) for name in names} != first
    failed = [share for share in first.values() if share is not None]
    assert 80 < len(failed) < 160
    assert 0.0 <= min(failed) < 0.1
    assert 0.9 < max(failed) < 1.0


def test_failed_attempts_are_made_again_and_cost_their_time(tmp_path: Path) -> None:
    def lived(failures: float) -> Any:
        workload = {"dags": written(tmp_path, *(job(f"j{at}", *DIAMOND) for at in range(20)))}
        workload["dags"]["failures"] = failures
        read = scenario(workload=workload, cluster={"groups": [{"slots": 4}]}, measure={})
        return run_checked(read, read.profiles[0], 1)

    well, badly = lived(0.0), lived(0.2)
    assert (well.dags.lost, well.jobs.count, badly.jobs.count) == (0, 20, 20)
    assert 20 < badly.dags.lost < 80  # of 140 tasks, some more than once
    assert badly.seconds > well.seconds


# -- alone -------------------------------------------------------------------------------------------


def sizes_of(graph: Dag) -> list[tuple[float, ...]]:
    return [(stage.seconds,) * stage.tasks for stage in graph.stages]


@pytest.mark.parametrize(
    ("cpu", "seconds"),
    [
        (7000.0, 9.0),  # the critical path
        (2000.0, 9.0),  # b beside the tasks of c
        (1000.0, 15.0),  # one after the other
        (300.0, 15.0),  # less than one task
    ],
)
def test_a_job_alone_takes_its_work_over_its_share_but_at_least_its_path(cpu: float, seconds: float) -> None:
    graph = dag(*DIAMOND)
    assert seconds_alone(graph, sizes_of(graph), {"cpu": cpu}) == seconds


@given(
    some.lists(
        some.tuples(some.integers(1, 5), some.integers(1, 9), some.integers(0, 99)), min_size=1, max_size=6
    ),
    some.integers(1, 7),
)
def test_alone_is_never_below_the_bounds_nor_above_graham_s(
    found: list[tuple[int, int, int]], slots: int
) -> None:
    names = "abcdef"
    stages: list[Stage] = [
        (names[at], tasks, float(seconds), names[parent % at] if at and parent % 3 else "")
        for at, (tasks, seconds, parent) in enumerate(found)
    ]
    graph = dag(*stages)
    alone = seconds_alone(graph, sizes_of(graph), {"cpu": 1000.0 * slots})
    assert max(graph.path, graph.work / slots) <= alone + 1e-9
    assert alone <= graph.work / slots + (1 - 1 / slots) * graph.path + 1e-9


# -- the record of shares ----------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "windows"), [(WINDOW_SECONDS, 1), (WINDOW_SECONDS / 6, 11)])
def test_shares_are_integrated_and_compared_in_windows(window: float, windows: int) -> None:
    """Two jobs on ten cores: one holds six of them and the other two, and both have more to do."""
    record, graph = DagRecord([NODE], window), dag(("a", 8, 60.0, ""))
    for number in (0, 1):
        record.arrive(number, graph, sizes_of(graph), True, 0.0)
        record.submit(number, 8, 0.0)
    runs = {
        number: [
            TaskRun(each.task, each.work_class, number, each.size, 0.0)
            for each in arrive(staged()[0], number, graph)[:count]
        ]
        for number, count in ((0, 6), (1, 2))
    }
    for each in (*runs[0], *runs[1]):
        record.start(each, 0.0)
    end = 2 * WINDOW_SECONDS
    for each in (*runs[0], *runs[1]):
        record.end(each, end)
    found = record.result()
    assert found.windows == windows  # the first begins before the jobs have any task
    assert found.fairness == pytest.approx(jain_index([6, 2])) == pytest.approx(0.8)
    assert found.above_share == pytest.approx(0.1 * end)  # six tenths where a half is due
    assert found.below_share == pytest.approx(0.3 * end)


def test_what_each_job_holds_is_reported_by_the_times_in_which_nothing_changes() -> None:
    record, graph = DagRecord([NODE]), dag(("a", 2, 5.0, ""))
    reported: list[tuple[float, float, dict[int, float]]] = []
    record.on_interval = lambda begin, end, shares: reported.append((begin, end, dict(shares)))
    first, second = arrive(staged()[0], 0, graph)
    record.arrive(0, graph, sizes_of(graph), True, 1.0)
    record.submit(0, 2, 1.0)
    record.start(first, 1.0)
    record.start(second, 3.0)
    record.arrive(1, graph, sizes_of(graph), True, 4.0)
    record.end(first, 6.0)
    assert reported == [
        (0.0, 1.0, {}),
        (1.0, 3.0, {0: 0.1}),
        (3.0, 4.0, {0: 0.2}),
        (4.0, 6.0, {0: 0.2, 1: 0.0}),
    ]


def test_a_job_without_waiting_tasks_is_in_no_window_and_lends_nothing() -> None:
    record, graph = DagRecord([NODE]), dag(("a", 1, 200.0, ""))
    for number in (0, 1):
        (one,) = arrive(staged()[0], number, graph)
        record.arrive(number, graph, sizes_of(graph), True, 0.0)
        record.submit(number, 1, 0.0)
        record.start(one, 0.0)
        record.end(one, 200.0) if number else None
    found = record.result()
    assert (found.windows, found.fairness, found.below_share, found.above_share) == (0, None, 0.0, 0.0)


def test_time_alone_is_on_the_part_due_for_the_mean_number_of_jobs(tmp_path: Path) -> None:
    """Two equal jobs on four slots, one after the other: each would take as long alone on two slots."""
    jobs = [job(name, ("a", 8, 10.0, "")) for name in "xy"]
    read = scenario(
        workload={"dags": written(tmp_path, *jobs)}, cluster={"groups": [{"slots": 4}]}, measure={}
    )
    world = build_checked(read, read.profiles[0], 1)
    world.run()
    first, second = world.dags.result().jobs
    assert (first.response, second.response) == (20.0, 40.0)
    assert first.alone == 40.0  # two jobs all the time: on two slots
    assert second.alone == 40.0  # then one: a mean of 1.5 jobs, 2.67 slots, of which two are whole
