"""Debug messages: one pod can be followed through its decision, and nothing is computed at other levels."""

import logging
from functools import partial

import pytest

from builders import make_engine, make_node, make_task
from eclectus.explain.pod import decision_about
from eclectus.live.process_metrics import PodTrace
from eclectus.model.events import BindRefused, NodeSeen, Resumed, TaskSeen
from eclectus.policies.place.allocation import LeastAllocated


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.DEBUG, "eclectus.live.process_metrics")
    return lambda: [(record.getMessage(), getattr(record, "pod", "")) for record in caplog.records]


def traced(*steps):
    """Run steps of events through an engine with the trace behind it."""
    engine = make_engine(LeastAllocated())
    trace = PodTrace({"eclectus"}.__contains__, partial(engine.read, decision_about))
    for now, events in enumerate(steps):
        trace.observe_step(now, events, engine.step(events, float(now)))


def test_a_pod_is_followed_from_its_arrival_to_the_chosen_node(said):
    nodes = [NodeSeen(make_node(name, cpu=2)) for name in "ab"]
    tainted = NodeSeen(make_node("c", unschedulable=True))
    traced([*nodes, tainted, Resumed()], [TaskSeen(make_task("x", cpu=2, workload="web"))])
    assert said() == [
        ("received and queued: class web, priority 0", "default/x"),
        (
            "considered: 2 of 3 nodes are feasible, 1 have room for another; "
            "place/least-allocated chose the node of rank 1 by speed (1.00 of the mean)",
            "default/x",
        ),
    ]


def test_gates_are_named_and_an_unchanged_pod_is_not_logged_again(said):
    gated = TaskSeen(make_task("x", gates=("quota",)))
    traced([gated], [gated], [TaskSeen(make_task("x"))])
    assert [text for text, _ in said()] == [
        "received, held back by scheduling gates quota",
        "received and queued: class , priority 0",
    ]


def test_a_refused_bind_says_why(said):
    node = NodeSeen(make_node("a"))
    traced([node, Resumed()], [TaskSeen(make_task("x"))], [BindRefused("uid-x", "a", "too late")])
    assert said()[-1][0] == "back in the queue: too late"


def test_pods_of_other_schedulers_are_not_logged(said):
    traced([TaskSeen(make_task("x", profile="default-scheduler"))])
    assert said() == []


def test_nothing_is_observed_at_the_default_level(caplog):
    caplog.set_level(logging.INFO)
    assert not PodTrace.is_wanted()
