"""Scheduling latency of pods, by attempts."""

from eclectus.live.process_metrics import Metrics, PodLatency
from eclectus.model.commands import Report
from eclectus.model.events import BindConfirmed, BindRefused, TaskGone, TaskSeen
from eclectus.model.objects import Task


def latencies(*steps):
    """Label `attempts` -> sum of the latencies, after these steps of (now, events, commands)."""
    metrics = Metrics()
    latency = PodLatency(lambda name: name == "eclectus", metrics.sli_seconds)
    for now, events, commands in steps:
        latency.observe_step(now, events, commands)
    return {attempts: histogram.sum for (attempts,), histogram in metrics.sli_seconds.series.items()}


def test_latency_runs_from_the_first_observation_without_gates_to_the_bind():
    gated, free = Task("u", "d", "p", gates=("g",)), Task("u", "d", "p")
    bound = [BindConfirmed("u", "n")]
    assert latencies(
        (0, [TaskSeen(gated)], []), (5, [TaskSeen(free)], []), (6, [TaskSeen(free)], []), (7, bound, [])
    ) == {"1": 2.0}


def test_refusals_and_reports_count_as_attempts():
    report = Report("u", "d", "p", "eclectus", "Unschedulable", "")
    steps = [(0, [TaskSeen(Task("u", "d", "p"))], [report]), (1, [BindRefused("u", "n", "")], [])]
    assert latencies(*steps, (3, [BindConfirmed("u", "n")], [])) == {"3": 3.0}


def test_pods_of_other_schedulers_and_deleted_pods_are_left_out():
    foreign = TaskSeen(Task("f", "d", "f", profile="other"))
    assert (
        latencies(
            (0, [foreign, TaskSeen(Task("u", "d", "p")), TaskGone("u")], []),
            (1, [BindConfirmed("u", "n")], []),
        )
        == {}
    )


def test_a_refusal_that_comes_after_the_pod_is_gone_is_kept_nowhere():
    latency = PodLatency(lambda name: True, Metrics().sli_seconds)
    latency.observe_step(0, [TaskSeen(Task("u", "d", "p")), TaskGone("u")], [])
    latency.observe_step(1, [BindRefused("u", "n", "")], [])
    assert not latency._waiting
