"""Lists and watch lines become events; what is known afterwards."""

import json

import pytest

from eclectus.kube.objects import decode_list
from eclectus.kubeclient.api_errors import StaleError, UnsureError
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import ConditionState, WatchedPods, nodes_kind, pods_kind
from eclectus.model.events import NodeGone, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Node, Taint


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
    return ObjectStore(nodes_kind(), skipped.append)


@pytest.fixture
def watched():
    return WatchedPods(lambda name: name == "eclectus")


@pytest.fixture
def pods(watched, skipped):
    return ObjectStore(pods_kind(watched), skipped.append)


def listed(store, *pages):
    store.start_list()
    events = [event for one in pages for event in store.page(decode_list(one), 0.0)]
    return events + store.end_list()


def test_a_list_reports_every_object_and_where_to_watch_from(nodes):
    events = listed(nodes, page(node("a"), more="x"), page(node("b")))
    assert [event.node.name for event in events] == ["a", "b"]
    assert nodes.resource_version == "100"


def test_a_list_after_a_gap_reports_the_differences_only(nodes):
    listed(nodes, page(node("same", "1"), node("changed", "1"), node("gone", "1")))
    events = listed(nodes, page(node("same", "1"), node("changed", "2"), node("new", "3"), version="200"))
    assert [(type(e), getattr(e, "name", None) or e.node.name) for e in events] == [
        (NodeSeen, "changed"),
        (NodeSeen, "new"),
        (NodeGone, "gone"),
    ]


def test_what_the_watch_reported_before_the_gap_is_known(nodes):
    listed(nodes, page(node("a", "1")))
    nodes.apply(line("MODIFIED", node("a", "2")), 0.0)
    nodes.apply(line("ADDED", node("b", "3")), 0.0)
    assert listed(nodes, page(node("a", "2"))) == [NodeGone("b")]


def test_an_incomplete_list_reports_nothing_as_gone(nodes):
    listed(nodes, page(node("a"), node("b")))
    nodes.start_list()
    nodes.page(decode_list(page(node("a"), more="x")), 0.0)
    assert listed(nodes, page(node("a"), node("b"))) == []


def test_every_event_and_bookmark_updates_the_version(nodes):
    for kind, version in (("ADDED", "11"), ("MODIFIED", "12"), ("DELETED", "13"), ("BOOKMARK", "14")):
        nodes.apply(line(kind, node("a", version)), 0.0)
        assert nodes.resource_version == version


def test_a_malformed_object_is_reported_and_its_deletion_still_applied(nodes, skipped):
    assert nodes.apply(line("ADDED", node("a", "1", allocatable={"cpu": "4"})), 0.0)
    assert nodes.apply(line("MODIFIED", node("a", "2", allocatable={"cpu": []})), 0.0) is None
    assert nodes.resource_version == "2"
    assert ["a" in str(error) for error in skipped] == [True]
    assert nodes.apply(line("DELETED", node("a", "3", allocatable={"cpu": []})), 0.0) == NodeGone("a")


def test_of_a_node_with_an_unreadable_amount_cordon_taints_and_the_other_amounts_count(nodes, skipped):
    room = {"cpu": "4", "memory": "8Gi"}
    nodes.apply(line("ADDED", node("a", "1", allocatable=room)), 0.0)
    changed = node("a", "2", allocatable={**room, "memory": "-8Gi", "cpu": "2"})
    changed["spec"] = {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]}
    event = nodes.apply(line("MODIFIED", changed), 0.0)
    assert event == NodeSeen(
        Node("a", (("cpu", 2000),), (), (Taint("k", "", "NoExecute"),), unschedulable=True)
    )
    assert listed(nodes, page(changed)) == []
    assert [str(error) for error in skipped] == [
        "Node a: status.allocatable.memory: '-8Gi' is negative; it must be 0 or more"
    ]


def test_of_a_pod_with_an_unreadable_amount_node_and_end_are_seen(pods, skipped):
    requests = {"cpu": "2", "memory": "-1"}
    box = {"name": "c", "resources": {"requests": requests}}
    bound = pods.apply(line("ADDED", pod("a", "1", nodeName="n", containers=[box])), 0.0).task
    assert (bound.node, bound.holding) == ("n", (("cpu", 2000),))
    gone = pod("a", "2", phase="Failed", nodeName="n", containers=[box])
    assert pods.apply(line("MODIFIED", gone), 0.0).task.ended
    assert {error.name for error in skipped} == {"d/a"}


def test_a_pending_pod_with_an_unreadable_amount_keeps_its_problem_while_its_spec_is_the_same(pods, skipped):
    box = {"name": "c", "resources": {"requests": {"cpu": "-2"}}}
    seen = [pods.apply(line("MODIFIED", pod("a", at, containers=[box])), 0.0).task.spec for at in "12"]
    assert "containers[c].resources.requests.cpu" in seen[0].unsupported[0]
    assert seen[1] is seen[0]
    assert len(skipped) == 1, "it is logged once, not with every change of its status"


def test_a_malformed_object_in_a_list_does_not_affect_the_others(nodes, skipped):
    events = listed(nodes, page(node("a"), node("b", allocatable={"cpu": []}), node("c")))
    assert [event.node.name for event in events] == ["a", "c"]
    assert len(skipped) == 1
    assert listed(nodes, page(node("a"), node("c"))) == []


def test_an_object_with_a_field_that_is_not_in_utf_8_is_skipped(nodes, skipped):
    bad = line("MODIFIED", node("a", "2", allocatable={"cpu": "?"})).replace(b"?", b"\xff")
    assert nodes.apply(bad, 0.0) is None
    assert nodes.resource_version == "2"
    assert len(skipped) == 1


@pytest.mark.parametrize(
    ("watch_line", "error"),
    [
        (line("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}), StaleError),
        (line("ERROR", {"code": 500, "message": "etcd"}), UnsureError),
        (b'{"type":"MODIFIED","obj', StaleError),
        (line("MODIFIED", {"metadata": {}}), StaleError),
        (b'{"type":"\xff","object":{}}', StaleError),
        (line("MODIFIED", node("?")).replace(b"?", b"\xff"), StaleError),
    ],
    ids=[
        "410",
        "500",
        "half a line",
        "an object without a name",
        "a type not in UTF-8",
        "a name not in UTF-8",
    ],
)
def test_a_line_that_cannot_be_applied_ends_the_watch(nodes, watch_line, error):
    with pytest.raises(error):
        nodes.apply(watch_line, 0.0)


def test_an_ended_pod_is_reported_with_its_end_and_then_forgotten(pods):
    listed(pods, page(pod("a")))
    event = pods.apply(line("MODIFIED", pod("a", "2", phase="Succeeded", nodeName="n")), 5.0)
    assert isinstance(event, TaskSeen)
    assert event.task.ended
    assert listed(pods, page()) == []  # lists leave ended pods out: that is no disappearance


def test_a_new_pod_of_the_same_name_is_another_pod(pods):
    old, new = pod("a"), pod("a", "5")
    new["metadata"]["uid"] = "u2"
    listed(pods, page(old))
    events = listed(pods, page(new))
    assert [type(event) for event in events] == [TaskSeen, TaskGone]
    assert events[1].uid == "u-a"


def test_only_our_unbound_pods_have_a_condition_state(pods, watched):
    listed(pods, page(pod("ours"), pod("theirs", scheduler="other"), pod("bound", nodeName="n")))
    states = watched.condition_states
    assert list(states) == ["u-ours"]
    assert states["u-ours"] == ConditionState("1", 4, is_false=False)
    pods.apply(line("MODIFIED", pod("ours", "2", nodeName="n")), 0.0)
    assert not states


def test_a_spec_is_translated_again_only_with_a_new_generation(pods):
    first = pods.apply(line("ADDED", pod("a", "1", nodeSelector={"a": "b"})), 0.0).task
    same = pods.apply(line("MODIFIED", pod("a", "2", nodeSelector={"a": "b"})), 0.0).task
    changed = pod("a", "3", nodeSelector={"a": "c"})
    changed["metadata"]["generation"] = 5
    assert same.spec is first.spec
    assert pods.apply(line("MODIFIED", changed), 0.0).task.spec.node_selector == (("a", "c"),)


def test_without_generations_every_spec_is_translated_again(pods):
    for version, value in (("1", "b"), ("2", "c")):
        ungenerated = pod("a", version, nodeSelector={"a": value})
        del ungenerated["metadata"]["generation"]
        assert pods.apply(line("MODIFIED", ungenerated), 0.0).task.spec.node_selector == (("a", value),)


def test_images_are_read_only_where_a_profile_weighs_them(skipped):
    reported = {"images": [{"names": ["web:1"], "sizeBytes": 7}]}
    body = {**node("a"), "status": {"allocatable": {"cpu": "1"}, **reported}}
    for with_images, expected in ((False, ()), (True, (("web:1", 7),))):
        store = ObjectStore(nodes_kind(with_images=with_images), skipped.append)
        (seen,) = listed(store, page(body))
        assert seen.node.images == expected
    for name, expected in (("eclectus", ("web:latest",)), ("other", ())):
        pods = ObjectStore(pods_kind(WatchedPods(lambda _: True, with_images={"eclectus"})), skipped.append)
        (seen,) = listed(pods, page(pod("p", scheduler=name, containers=[{"name": "c", "image": "web"}])))
        assert seen.task.spec.images == expected
    assert not skipped


def test_a_node_whose_images_cannot_be_read_counts_without_them(skipped):
    store = ObjectStore(nodes_kind(with_images=True), skipped.append)
    body = {**node("a"), "status": {"allocatable": {"cpu": "1"}, "images": [{"sizeBytes": "many"}]}}
    (seen,) = listed(store, page(body))
    assert (seen.node.name, seen.node.images, len(skipped)) == ("a", (), 1)


def deeper_than_decoders_follow(item):
    """The same object as the API server stores it with field sets that somebody has written."""
    fields = '{"f:a":' * 9000 + "{}" + "}" * 9000
    item["metadata"]["managedFields"] = "FIELDS"
    return json.dumps(item).encode().replace(b'"FIELDS"', b'[{"fieldsV1":%s}]' % fields.encode())


def test_an_object_nested_too_deep_is_read_and_hides_no_other(pods, skipped):
    deep = deeper_than_decoders_follow(pod("deep", nodeName="n1"))
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%s,%s]}' % (json.dumps(pod("a")).encode(), deep)
    assert [event.task.name for event in listed(pods, body)] == ["a", "deep"]
    changed = deeper_than_decoders_follow(pod("deep", version="10", phase="Succeeded", nodeName="n1"))
    event = pods.apply(b'{"type":"MODIFIED","object":%s}' % changed, 0.0)
    assert (event.task.name, event.task.phase, pods.resource_version) == ("deep", "Succeeded", "10")
    assert skipped == []
