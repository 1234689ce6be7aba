"""How long a container ran: from the API's whole seconds and the moments at which the watch showed them."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.live.watch.watched_kinds import WatchedPods, refine


@given(start=st.floats(0, 1000), run=st.floats(0.001, 1000), late=st.floats(0, 30), skew=st.floats(-100, 100))
def test_the_duration_is_exact_if_both_ends_are_observed_equally_late(start, run, late, skew):
    api_started, api_finished = (start + skew) // 1, (start + run + skew) // 1
    started, finished = refine(api_started, api_finished, start + late, start + run + late)
    assert finished - started == pytest.approx(run, abs=1e-6)


@pytest.mark.parametrize(
    ("seen_running", "seen_finished", "run"),
    [(10.0, 14.3, 4.3), (13.9, 14.0, 3.0), (10.0, 40.0, 5.0)],
    ids=["both in time", "start observed late", "end observed late"],
)
def test_a_delayed_observation_differs_from_the_api_by_at_most_a_second(seen_running, seen_finished, run):
    started, finished = refine(100.0, 104.0, seen_running, seen_finished)
    assert finished - started == pytest.approx(run)


def test_a_container_that_ran_before_it_was_observed_has_the_times_of_the_api():
    assert refine(100.0, 104.0, None, 500.0) == (100.0, 104.0)


def test_a_duration_is_never_negative():
    started, finished = refine(100.0, 100.0, 5.0, 4.0)
    assert finished == started


# -- as WatchedPods applies it ---------------------------------------------------------------------

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


def test_a_pod_observed_from_start_to_end_has_a_duration_finer_than_a_second():
    pods = WatchedPods(lambda _: True)
    running = pods.observe(raw(T0), T0 + 0.2).event.task
    ended = pods.observe(raw(T0, T0 + 3, "Succeeded"), T0 + 3.6).event.task
    assert running.started == T0 + 0.2
    assert ended.finished - ended.started == pytest.approx(3.4)


def test_a_pod_that_ran_before_it_was_observed_has_the_times_of_the_api():
    pods = WatchedPods(lambda _: True)
    assert pods.observe(raw(T0), T0 + 100).event.task.started == T0
    ended = pods.observe(raw(T0, T0 + 103, "Succeeded"), T0 + 103.4).event.task
    assert (ended.started, ended.finished) == (T0, T0 + 103)


def test_a_second_observation_of_a_running_pod_does_not_move_its_start():
    pods = WatchedPods(lambda _: True)
    pods.observe(raw(T0), T0 + 0.2)
    assert pods.observe(raw(T0), T0 + 4).event.task.started == T0 + 0.2
