"""Start and end of a pod as the watch shows them, on the shell's clock."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from eclectus.live.watch.watched import Pods

T0 = 1_000_000.0


def raw(started=None, finished=None, phase="Running", node="n"):
    def stamp(at):
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    state = {}
    if finished is not None:
        state = {"terminated": {"startedAt": stamp(started), "finishedAt": stamp(finished)}}
    elif started is not None:
        state = {"running": {"startedAt": stamp(started)}}
    pod = {
        "metadata": {"name": "a", "namespace": "d", "uid": "u", "resourceVersion": "1"},
        "spec": {"nodeName": node, "schedulerName": "eclectus"},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]},
    }
    return msgspec.Raw(json.dumps(pod).encode())


def test_a_run_seen_from_start_to_end_is_finer_than_a_second():
    pods = Pods(lambda _: True)
    running = pods.seen(raw(T0), T0 + 0.2).event.task
    ended = pods.seen(raw(T0, T0 + 3, "Succeeded"), T0 + 3.6).event.task
    assert running.started == T0 + 0.2
    assert ended.finished - ended.started == pytest.approx(3.4)


def test_a_run_that_began_before_we_looked_has_the_times_of_the_api():
    pods = Pods(lambda _: True)
    assert pods.seen(raw(T0), T0 + 100).event.task.started == T0
    ended = pods.seen(raw(T0, T0 + 103, "Succeeded"), T0 + 103.4).event.task
    assert (ended.started, ended.finished) == (T0, T0 + 103)


def test_seeing_a_running_pod_again_does_not_move_its_start():
    pods = Pods(lambda _: True)
    pods.seen(raw(T0), T0 + 0.2)
    assert pods.seen(raw(T0), T0 + 4).event.task.started == T0 + 0.2
