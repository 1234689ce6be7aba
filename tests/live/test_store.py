import json

import pytest

from eclectus.kubeclient.errors import StaleError, UnsureError
from eclectus.live.watch.store import Mirror
from eclectus.live.watch.watched import Nodes, Pods
from eclectus.model.events import NodeGone, NodeSeen, TaskGone, TaskSeen


def node(name, version="1", **status):
    return {"metadata": {"name": name, "resourceVersion": version}, "status": status}


def pod(name, version="1", phase="Pending", scheduler="eclectus", **spec):
    metadata = {
        "name": name,
        "namespace": "d",
        "uid": f"u-{name}",
        "resourceVersion": version,
        "generation": 4,
    }
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, **spec}, "status": {"phase": phase}}


def page(*items, version="100", more=""):
    return json.dumps({"metadata": {"resourceVersion": version, "continue": more}, "items": items}).encode()


def line(kind, item):
    return json.dumps({"type": kind, "object": item}).encode()


@pytest.fixture
def skipped():
    return []


@pytest.fixture
def nodes(skipped):
    return Mirror(Nodes(), skipped.append)


@pytest.fixture
def pods(skipped):
    return Mirror(Pods(lambda name: name == "eclectus"), skipped.append)


def listed(mirror, *pages):
    mirror.start_list()
    events = [event for one in pages for event in mirror.page(one, 0.0)[1]]
    return events + mirror.end_list()


def test_a_list_tells_what_is_there_and_where_to_watch_from(nodes):
    events = listed(nodes, page(node("a"), more="x"), page(node("b")))
    assert [event.node.name for event in events] == ["a", "b"]
    assert nodes.version == "100"


def test_a_list_after_a_gap_tells_the_difference_alone(nodes):
    listed(nodes, page(node("same", "1"), node("changed", "1"), node("gone", "1")))
    events = listed(nodes, page(node("same", "1"), node("changed", "2"), node("new", "3"), version="200"))
    assert [(type(e), getattr(e, "name", None) or e.node.name) for e in events] == [
        (NodeSeen, "changed"),
        (NodeSeen, "new"),
        (NodeGone, "gone"),
    ]


def test_what_the_watch_told_before_the_gap_counts_as_known(nodes):
    listed(nodes, page(node("a", "1")))
    nodes.heard(line("MODIFIED", node("a", "2")), 0.0)
    nodes.heard(line("ADDED", node("b", "3")), 0.0)
    assert listed(nodes, page(node("a", "2"))) == [NodeGone("b")]


def test_a_list_that_broke_off_tells_nobody_gone(nodes):
    listed(nodes, page(node("a"), node("b")))
    nodes.start_list()
    nodes.page(page(node("a"), more="x"), 0.0)
    assert listed(nodes, page(node("a"), node("b"))) == []


def test_every_event_and_bookmark_moves_the_version_on(nodes):
    for kind, version in (("ADDED", "11"), ("MODIFIED", "12"), ("DELETED", "13"), ("BOOKMARK", "14")):
        nodes.heard(line(kind, node("a", version)), 0.0)
        assert nodes.version == version


def test_a_malformed_object_is_reported_and_its_deletion_still_understood(nodes, skipped):
    assert nodes.heard(line("ADDED", node("a", "1", allocatable={"cpu": "4"})), 0.0)
    assert nodes.heard(line("MODIFIED", node("a", "2", allocatable={"cpu": "four"})), 0.0) is None
    assert nodes.version == "2"
    assert ["a" in str(error) for error in skipped] == [True]
    assert nodes.heard(line("DELETED", node("a", "3", allocatable={"cpu": "four"})), 0.0) == NodeGone("a")


def test_a_malformed_object_in_a_list_costs_nobody_else_anything(nodes, skipped):
    events = listed(nodes, page(node("a"), node("b", allocatable={"cpu": []}), node("c")))
    assert [event.node.name for event in events] == ["a", "c"]
    assert len(skipped) == 1
    assert listed(nodes, page(node("a"), node("c"))) == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (line("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}), StaleError),
        (line("ERROR", {"code": 500, "message": "etcd"}), UnsureError),
        (b'{"type":"MODIFIED","obj', StaleError),
        (line("MODIFIED", {"metadata": {}}), StaleError),
    ],
    ids=["410", "500", "half a line", "an object without a name"],
)
def test_what_cannot_be_followed_ends_the_watch(nodes, said, error):
    with pytest.raises(error):
        nodes.heard(said, 0.0)


def test_an_ended_pod_is_told_with_its_end_and_then_forgotten(pods):
    listed(pods, page(pod("a")))
    event = pods.heard(line("MODIFIED", pod("a", "2", phase="Succeeded", nodeName="n")), 5.0)
    assert isinstance(event, TaskSeen)
    assert event.task.ended
    assert listed(pods, page()) == []  # lists leave ended pods out: that is no disappearance


def test_a_namesake_is_another_pod(pods):
    old, new = pod("a"), pod("a", "5")
    new["metadata"]["uid"] = "u2"
    listed(pods, page(old))
    events = listed(pods, page(new))
    assert [type(event) for event in events] == [TaskSeen, TaskGone]
    assert events[1].uid == "u-a"


def test_only_our_unbound_pods_have_a_standing(pods):
    listed(pods, page(pod("ours"), pod("theirs", scheduler="other"), pod("bound", nodeName="n")))
    standing = pods.kind.standing
    assert list(standing) == ["u-ours"]
    assert (standing["u-ours"].version, standing["u-ours"].generation, standing["u-ours"].refused) == (
        "1",
        4,
        False,
    )
    pods.heard(line("MODIFIED", pod("ours", "2", nodeName="n")), 0.0)
    assert not standing


def test_a_spec_is_made_anew_only_with_a_new_generation(pods):
    first = pods.heard(line("ADDED", pod("a", "1", nodeSelector={"a": "b"})), 0.0).task
    same = pods.heard(line("MODIFIED", pod("a", "2", nodeSelector={"a": "b"})), 0.0).task
    changed = pod("a", "3", nodeSelector={"a": "c"})
    changed["metadata"]["generation"] = 5
    assert same.spec is first.spec
    assert pods.heard(line("MODIFIED", changed), 0.0).task.spec.node_selector == (("a", "c"),)


def test_without_generations_every_spec_is_made_anew(pods):
    for version, value in (("1", "b"), ("2", "c")):
        ungenerated = pod("a", version, nodeSelector={"a": value})
        del ungenerated["metadata"]["generation"]
        assert pods.heard(line("MODIFIED", ungenerated), 0.0).task.spec.node_selector == (("a", value),)
