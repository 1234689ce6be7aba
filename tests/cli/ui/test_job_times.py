"""The bars of a job's Gantt chart: what pods say of the past, and estimates of what is left."""

from datetime import UTC, datetime

from eclectus.cli.dag import rows
from eclectus.cli.ui.job_times import Ran, bars, runs
from visibility_server import dag_job, task_pod

NOW = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)


def row(change=lambda job: None):
    job = dag_job()
    change(job)
    (found,), problems = rows([job], (), NOW)
    assert problems == []
    return found


def bars_of(found, *pods):
    return {
        each["name"]: (each["began"], each["ended"], each["begins"], each["ends"])
        for each in bars(found, pods, NOW)
    }


def test_a_stage_has_run_from_its_first_start_to_its_last_end():
    pods = [
        task_pod("read", "a", "2026-03-01T12:01:00Z", "2026-03-01T12:02:00Z"),
        task_pod("read", "b", "2026-03-01T12:00:30Z", "2026-03-01T12:03:00Z"),
    ]
    assert runs(pods, NOW) == {"read": Ran(-270.0, -120.0)}


def test_a_stage_with_a_pod_that_runs_has_not_ended():
    pods = [
        task_pod("read", "a", "2026-03-01T12:01:00Z", "2026-03-01T12:02:00Z"),
        task_pod("read", "b", "2026-03-01T12:02:00Z"),
    ]
    assert runs(pods, NOW) == {"read": Ran(-240.0, None)}


def test_a_pod_that_has_not_started_says_nothing():
    assert runs([task_pod("read", "a", start=None)], NOW) == {}


def test_what_is_left_begins_when_its_parents_would_have_ended():
    """`left` runs since 60 s of its 90, `right` has tasks that wait, `sum` needs both."""
    found = bars_of(row(), task_pod("left", "a", "2026-03-01T12:04:00Z"))
    assert found == {
        "read": (None, None, None, None),
        "left": (-60.0, None, 0.0, 30.0),
        "right": (None, None, 0.0, 90.0),
        "sum": (None, None, 90.0, 180.0),
    }


def test_behind_a_stage_without_an_estimate_nothing_is_expected():
    def without(job):
        job["status"]["stages"][2]["estimateSeconds"] = None

    found = bars_of(row(without))
    assert (found["right"][2:], found["sum"][2:]) == ((None, None), (None, None))
    assert found["left"][2:] == (0.0, 90.0)


def test_a_cycle_has_no_estimates():
    def cycle(job):
        job["spec"]["stages"][0]["dependsOn"] = ["sum"]

    assert {each[2:] for each in bars_of(row(cycle)).values()} == {(None, None)}


def test_of_a_job_that_has_ended_nothing_is_left():
    def ended(job):
        job["status"]["completionTime"] = "2026-03-01T12:04:00Z"

    assert {each[2:] for each in bars_of(row(ended)).values()} == {(None, None)}


def test_a_stage_is_due_before_the_deadline_by_what_is_behind_it():
    due = {each["name"]: each["due"] for each in bars(row(), (), NOW)}
    assert due == {"read": None, "left": None, "right": 420.0 - 180.0, "sum": 420.0 - 90.0}
