"""Copies of pods that nothing controls: made, raced and removed, and why a pod gets none."""

from __future__ import annotations

import pytest

from bare_pods import CLAIMS, PODS, BareWorld, pod
from eclectus.api.names import COPY_OF_LABEL, ORIGINAL
from eclectus.kubeclient.api_errors import RejectedError
from fake_api import fails_once


def claimed(name, **more):
    return pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": name, **more}}])


def test_the_copy_wins_and_its_original_goes():
    world = BareWorld()
    world.play(30)
    assert world.left() == {"a-copy": "Succeeded"}
    assert world.notes("CopyCreated") == [
        "a-copy runs beside a on n0, which straggles: 100 s left, 9 s elsewhere"
    ]
    assert world.notes("CopyWon") == [
        "a-copy has ended first, after 6 s; a, its original, is deleted, after 8 s"
    ]
    assert world.notes("CopyLost") == []


def test_the_original_wins_and_its_copy_goes():
    world = BareWorld(seconds={"a": 10.0, "a-copy": 60.0})
    world.play(30)
    assert world.left() == {"a": "Succeeded"}
    assert world.made() == 1
    assert 'eclectus_copy_steps_total{step="lost"} 1.0' in world.metrics.expose().decode()
    assert world.notes("CopyLost") == [
        "a has ended first, after 10 s; a-copy, its copy, is deleted, after 8 s"
    ]


def test_a_copy_that_has_lost_before_it_has_started_says_so():
    world = BareWorld(seconds={"a": 10.0})
    world.has_room = False
    world.play(30)
    assert world.notes("CopyLost") == [
        "a has ended first, after 10 s; a-copy, its copy, is deleted, which has not started"
    ]


def test_of_two_that_succeed_at_once_one_is_left():
    world = BareWorld(seconds={"a": 8.0, "a-copy": 6.0})
    world.play(30)
    assert len(world.left()) == 1


def test_a_copy_is_the_original_but_for_its_name_node_and_label():
    given = pod(nodeSelector={"disk": "ssd"}, priority=5, ephemeralContainers=[{"name": "debug"}])
    given["metadata"]["annotations"] |= {
        "note": "kept",
        "eclectus.dev/phase-weights": "1,8",
        "eclectus.dev/progress": "1,0",
        "eclectus.dev/leader-since": "then",
    }
    world = BareWorld(given)
    world.play(4)
    first, made = (world.api.objects[f"{PODS}/{name}"] for name in ("a", "a-copy"))
    assert made["metadata"]["labels"] == {
        **first["metadata"]["labels"],
        COPY_OF_LABEL: first["metadata"]["uid"],
    }
    assert made["metadata"]["annotations"] == {
        "note": "kept",
        "eclectus.dev/idempotent": "true",
        "eclectus.dev/phase-weights": "1,8",
        ORIGINAL: "a",
    }
    assert "ownerReferences" not in made["metadata"]
    assert made["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert not {"priority", "ephemeralContainers"} & made["spec"].keys()
    assert made["spec"]["containers"] == first["spec"]["containers"]


def test_terms_that_its_original_needs_still_hold_elsewhere():
    of_zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [of_zone, {}]}}
    world = BareWorld(pod(affinity={"nodeAffinity": required, "podAffinity": {}}))
    world.play(4)
    affinity = world.api.objects[f"{PODS}/a-copy"]["spec"]["affinity"]
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    elsewhere = [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]
    assert terms == [{**of_zone, "matchFields": elsewhere}, {"matchFields": elsewhere}]
    assert affinity["podAffinity"] == {}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pod(owner="StatefulSet"), "controlled by StatefulSet boss"),
        (pod(owner="ReplicaSet"), "controlled by ReplicaSet boss"),
        (pod(owner="Job"), "use a DagJob, or an Indexed Job of two completions with successPolicy"),
        (pod(restartPolicy="Always"), "restartPolicy is Always"),
        (pod(hostname="one"), "hostname"),
        (pod(subdomain="one"), "subdomain"),
        (pod(schedulingGroup={"podGroupName": "g"}), "pod group"),
        (pod(labels={"scheduling.x-k8s.io/pod-group": "g"}), "pod group"),
        (pod(containers=[{"name": "c", "ports": [{"hostPort": 80}]}]), "hostPort"),
        (pod(resourceClaims=[{"name": "gpu"}]), "resourceClaims"),
        (pod(volumes=[{"name": "d", "ephemeral": {}}]), "ephemeral"),
        (claimed("rwo"), "its claim rwo has the access modes ReadWriteOnce"),
        (claimed("rwop", readOnly=True), "ReadWriteOncePod"),
        (claimed("none"), "its claim none does not exist"),
    ],
)
def test_why_a_pod_gets_no_copy_is_said_once_and_nothing_is_made(given, why):
    world = BareWorld(given)
    for name, mode in {"rwo": "ReadWriteOnce", "rwop": "ReadWriteOncePod"}.items():
        world.api.put(CLAIMS, {"metadata": {"name": name}, "spec": {"accessModes": [mode]}})
    world.play(30)
    assert world.made() == 0
    (note,) = world.notes("CopyRefused")
    assert why in note
    assert world.left() == {"a": "Running"}


def test_without_the_word_that_its_work_may_be_done_twice_there_is_no_copy():
    given = pod()
    given["metadata"]["annotations"] = {}
    world = BareWorld(given)
    world.play(20)
    assert world.made() == 0
    assert 'lacks the annotation eclectus.dev/idempotent: "true"' in world.notes("CopyRefused")[0]


def test_a_claim_that_many_nodes_read_is_no_obstacle():
    world = BareWorld(claimed("rox"))
    world.api.put(CLAIMS, {"metadata": {"name": "rox"}, "spec": {"accessModes": ["ReadOnlyMany"]}})
    world.play(4)
    assert world.made() == 1


def test_a_pod_that_does_not_ask_or_not_straggle_is_left_alone():
    silent = pod("b")
    del silent["metadata"]["labels"]["eclectus.dev/speculative"]
    world = BareWorld(silent, pod("c"))
    world.straggling = {"b"}
    world.play(20)
    assert world.made() == 0
    assert world.notes("CopyRefused") == []


def test_who_deletes_a_pod_deletes_its_copy():
    world = BareWorld()
    world.play(4)
    world.delete("a")
    world.play(10)
    assert world.left() == {}


def test_where_the_original_is_preempted_the_copy_is_the_attempt():
    world = BareWorld(seconds={"a-copy": 20.0})
    world.play(4)
    world.delete("a", "PreemptionByScheduler")
    world.play(40)
    assert world.left() == {"a-copy": "Succeeded"}


def test_where_the_original_is_gone_with_its_node_the_copy_is_the_attempt():
    world = BareWorld(seconds={"a-copy": 20.0})
    world.play(4)
    world.api.remove(f"{PODS}/a")
    world.start()
    world.play(40)
    assert world.left() == {"a-copy": "Succeeded"}


def test_where_the_original_fails_its_copy_may_still_succeed():
    world = BareWorld(seconds={"a-copy": 20.0})
    world.play(4)
    world.end("a", code=1)
    world.play(40)
    assert world.left() == {"a-copy": "Succeeded"}


def test_a_copy_that_fails_stays_until_its_original_ends_and_is_not_made_again():
    world = BareWorld(seconds={"a-copy": 100.0})
    world.play(4)
    world.end("a-copy", code=1)
    world.play(20)
    assert world.left() == {"a": "Running", "a-copy": "Failed"}
    world.play(60)
    assert world.left() == {"a": "Succeeded"}
    assert world.made() == 1


def test_a_copy_without_a_node_is_withdrawn_with_the_reason_and_tried_again_after_minutes():
    world = BareWorld(seconds={"a": 1000.0})
    world.has_room = False
    world.play(100)
    assert world.left() == {"a": "Running"}
    assert world.notes("CopyWithdrawn") == ["pod a-copy: still not on a node after 60 s"]
    assert world.made() == 1
    world.has_room = True
    world.play(300)
    assert world.left() == {"a-copy": "Succeeded"}


def test_a_copy_that_waits_goes_when_its_original_catches_up():
    world = BareWorld()
    world.has_room = False
    world.play(6)
    world.api.touch(f"{PODS}/a")["status"]["conditions"] = []
    world.play(4)
    assert world.left() == {"a": "Running"}
    assert world.notes("CopyWithdrawn") == []


def test_a_copy_whose_node_is_silent_is_deleted_at_once_after_two_minutes():
    world = BareWorld(seconds={"a": 8.0, "a-copy": 1000.0})
    world.play(6)
    world._advance = lambda path: None  # no kubelet answers
    world.end("a")
    world.play(200)
    assert world.left() == {"a": "Succeeded"}
    (note,) = world.notes("PodsForced")
    assert note == (
        "deleted without an answer of its node: pod a-copy: still being deleted after 120 s (node n1)"
    )


def test_an_original_whose_node_is_silent_when_its_copy_has_won_is_deleted_at_once_after_two_minutes():
    world = BareWorld(seconds={"a-copy": 1000.0})
    world.play(6)
    world._advance = lambda path: None
    world.end("a-copy")
    world.play(100)
    assert world.left() == {"a": "Running", "a-copy": "Succeeded"}
    world.play(100)
    assert world.left() == {"a-copy": "Succeeded"}
    (note,) = world.notes("PodsForced")
    assert "pod a: still being deleted after 120 s (node n0)" in note


def test_a_pod_that_its_user_has_deleted_is_never_deleted_without_its_node():
    world = BareWorld(seconds={"a": 1000.0, "a-copy": 1000.0})
    world.play(6)
    world._advance = lambda path: None
    world.delete("a")
    world.play(400)
    assert world.left() == {"a": "Running"}
    assert len(world.notes("PodsForced")) == 1, "of its copy"


def test_a_full_quota_is_said_and_tried_again_after_minutes():
    world = BareWorld(seconds={"a": 1000.0})
    world.api.before = fails_once("POST", "/pods", RejectedError("POST", 403, "exceeded quota: pods"))
    world.play(100)
    assert world.left() == {"a": "Running"}
    assert world.notes("CopyRefused") == ["a gets no copy: exceeded quota: pods"]
    world.play(300)
    assert world.left() == {"a-copy": "Succeeded"}


def test_a_pod_that_has_the_name_of_a_copy_is_left_alone():
    other = pod("a-copy")
    world = BareWorld(pod(), other)
    world.seconds["a-copy"] = 60.0
    world.play(30)
    assert world.left() == {"a": "Running", "a-copy": "Running"}


def test_one_that_does_not_ask_any_more_still_has_one_success():
    world = BareWorld(seconds={"a-copy": 20.0})
    world.play(6)
    del world.api.touch(f"{PODS}/a")["metadata"]["labels"]["eclectus.dev/speculative"]
    world.start()
    world.play(40)
    assert world.left() == {"a-copy": "Succeeded"}


def test_a_pod_that_cannot_be_read_stops_no_other():
    broken = pod("0")
    broken["status"] = {"phase": 7}
    world = BareWorld(broken, pod())
    world._advance_all = world._advance
    world._advance = lambda path: None if path.endswith("/0") else world._advance_all(path)
    world.play(30)
    assert world.left()["a-copy"] == "Succeeded"


def test_a_namespace_that_cannot_be_listed_stops_no_other():
    world = BareWorld(copies="locked,team")
    locked = "/api/v1/namespaces/locked/pods"

    def before(method, path):
        if path == locked:
            raise RejectedError(f"{method} {path}", 403, "forbidden")

    world.api.before = before
    world.play(30)
    assert world.left() == {"a-copy": "Succeeded"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "seconds", [{}, {"a": 10.0, "a-copy": 60.0}, {"a": 8.0}], ids=["wins", "loses", "both"]
)
def test_whatever_request_it_crashes_at_one_success_is_left_and_no_other_pod(after, seconds):
    whole = BareWorld(seconds=seconds)
    whole.play(30)
    for call in range(len(whole.api.calls)):
        world = BareWorld(seconds=seconds)
        world.api.crash_at = (call, after)
        world.play(40)
        assert list(world.left().values()) == ["Succeeded"], f"call {call}"
        assert world.made() == 1, f"call {call}"
