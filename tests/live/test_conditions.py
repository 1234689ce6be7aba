"""What the shell tells of itself: log lines, probes, metrics."""

import json
import logging

from eclectus.engine.state import QueueCounts
from eclectus.kubeclient.health import report
from eclectus.live.logs import JsonLines, TextLines
from eclectus.live.metrics import Metrics
from eclectus.live.metrics.queue_counts import CensusCollector
from eclectus.live.pod_latency import Waits
from eclectus.model.commands import Report
from eclectus.model.events import BindConfirmed, BindRefused, TaskGone, TaskSeen
from eclectus.model.objects import Task

COUNTS = {"attempts:scheduled:eclectus": 3, "incoming:active:PodAdd": 5, "faults": 1}
CENSUS = QueueCounts(1, 2, 3, 4, node_queues=5, binding=6, nodes=7, classes=8, counts=COUNTS)


def record(message, *arguments, **about):
    made = logging.LogRecord("eclectus", logging.WARNING, "", 0, message, arguments, None)
    made.__dict__.update(about)
    return made


def test_a_json_line_names_what_it_is_about():
    line = json.loads(JsonLines().format(record("bound %s", "x", pod="d/p", node="n", other="s")))
    assert (line["msg"], line["pod"], line["node"], line["level"]) == ("bound x", "d/p", "n", "warning")
    assert "other" not in line


def test_a_text_line_is_one_line_whatever_stands_in_the_message():
    line = TextLines().format(record("%s", "a\n2026 INFO forged", pod="d/p"))
    assert "\n" not in line
    assert line.endswith("pod=d/p")


def test_a_probe_says_which_check_failed():
    text = report("readyz", {"ping": "", "sync": "the first lists are not complete"})
    assert text == "[+]ping ok\n[-]sync failed: the first lists are not complete\nreadyz check failed\n"


def test_the_engines_counts_have_kube_schedulers_shapes():
    metrics = Metrics()
    metrics.registry.register(CensusCollector(lambda: CENSUS))
    text = metrics.expose().decode()
    for line in (
        'eclectus_pending_pods{queue="backoff"} 2.0',
        'eclectus_schedule_attempts_total{profile="eclectus",result="scheduled"} 3.0',
        'eclectus_queue_incoming_pods_total{event="PodAdd",queue="active"} 5.0',
        "eclectus_pod_scheduled_after_flush_total 0.0",
    ):
        assert line in text.splitlines()


def waited(*steps):
    metrics = Metrics()
    waits = Waits(lambda name: name == "eclectus", metrics.sli_seconds)
    for now, events, commands in steps:
        waits.note(now, events, commands)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    return {
        sample.labels["attempts"]: sample.value
        for sample in samples
        if sample.name == "eclectus_pod_scheduling_sli_duration_seconds_sum"
    }


def test_a_wait_runs_from_the_first_sight_without_gates_to_the_bind():
    gated, free = Task("u", "d", "p", gates=("g",)), Task("u", "d", "p")
    bound = [BindConfirmed("u", "n")]
    assert waited(
        (0, [TaskSeen(gated)], []), (5, [TaskSeen(free)], []), (6, [TaskSeen(free)], []), (7, bound, [])
    ) == {"1": 2.0}


def test_refusals_and_reports_count_as_attempts():
    said = Report("u", "d", "p", "eclectus", "Unschedulable", "")
    steps = [(0, [TaskSeen(Task("u", "d", "p"))], [said]), (1, [BindRefused("u", "n", "")], [])]
    assert waited(*steps, (3, [BindConfirmed("u", "n")], [])) == {"3": 3.0}


def test_pods_of_others_and_pods_that_went_are_not_waited_for():
    foreign = TaskSeen(Task("f", "d", "f", profile="other"))
    assert (
        waited(
            (0, [foreign, TaskSeen(Task("u", "d", "p")), TaskGone("u")], []),
            (1, [BindConfirmed("u", "n")], []),
        )
        == {}
    )
