"""Pods of the API as tasks: identity, class and job, times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.api.common import MAX_NAME
from eclectus.api.names import (
    CLASS_LABEL,
    ESTIMATED_SECONDS,
    JOB_WORK_SECONDS,
    PATH_SECONDS,
    ROOM_ANNOTATION,
    RUN_ID_LABEL,
    STAGE_LABEL,
)
from eclectus.kube import translate
from eclectus.kube.objects import decode_pod
from eclectus.kube.requests import room_annotation
from eclectus.kube.translate import task_from
from eclectus.model import objects as model
from pod_objects import raw, task

# -- identity and state ----------------------------------------------------------------------------


def test_a_plain_pod() -> None:
    got = task({"schedulerName": "eclectus", "priority": 7}, creationTimestamp="2026-03-01T12:00:00Z")
    assert str(got) == "shop/web-0"
    assert (got.uid, got.profile, got.priority, got.created) == ("uid-1", "eclectus", 7, 1772366400.0)
    assert got.spec == model.Spec(score_requests=(100, 200 * 2**20), long_running=True)
    assert (got.node, got.phase, got.deleting, got.held, got.reported) == ("", "Pending", False, None, "")


def test_annotations_give_the_estimate_the_path_and_the_job_work() -> None:
    assert (task().estimate, task().path, task().job_work) == (None, None, None)
    got = task(annotations={ESTIMATED_SECONDS: "90.5", PATH_SECONDS: "1e3", JOB_WORK_SECONDS: "1e12"})
    assert (got.estimate, got.path, got.job_work) == (90.5, 1000.0, 1e12)


@pytest.mark.parametrize("annotation", [ESTIMATED_SECONDS, PATH_SECONDS, JOB_WORK_SECONDS])
@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan", "inf", "1e14"])
def test_an_annotation_that_is_no_time_is_left_out_and_named(annotation: str, text: str) -> None:
    assert task(annotations={annotation: text}) == task()
    (problem,) = translate.annotation_problems({annotation: text, "other": "x"}, "default")
    assert problem.startswith(f"{annotation}: {text!r} is not a number of seconds")


def test_a_pod_may_have_a_copy_or_be_one_and_say_how_far_it_is() -> None:
    got = task()
    assert (got.speculative, got.copy_of, got.straggling, got.progress) == (False, "", False, None)
    late = {"type": "eclectus.dev/Straggling", "status": "True"}
    got = task(
        labels={"eclectus.dev/speculative": "true", "eclectus.dev/copy-of": "uid-0"},
        annotations={"eclectus.dev/progress": "0.25"},
        status={"conditions": [late]},
    )
    assert (got.speculative, got.copy_of, got.straggling, got.progress) == (True, "uid-0", True, 0.25)
    assert not task(status={"conditions": [{**late, "status": "False"}]}).straggling
    assert not task(labels={"eclectus.dev/speculative": "yes"}).speculative


def test_a_pod_says_how_far_it_is_by_phases_and_what_cannot_be_read_is_named_if_it_may_have_a_copy() -> None:
    phases = {"eclectus.dev/progress": "1,0.5", "eclectus.dev/phase-weights": "1,3"}
    assert (task(annotations=phases).progress, task(annotations=phases).unread_progress) == (0.625, "")
    bad, may = {"eclectus.dev/progress": "half"}, {"eclectus.dev/speculative": "true"}
    assert (task(annotations=bad).progress, task(annotations=bad).unread_progress) == (None, "")
    (problem,) = translate.annotation_problems(bad, "default")
    assert task(annotations=bad, labels=may).unread_progress == problem


@pytest.mark.parametrize(
    ("owner", "text", "root", "may"),
    [
        (("batch/v1", "Job"), "true", "", True),
        (("batch/v1", "Job"), "yes", "", False),
        (("batch/v1", "Job"), "true", "true", False),
        (("batch.volcano.sh/v1alpha1", "Job"), "true", "", False),
        (("apps/v1", "ReplicaSet"), "true", "", False),
    ],
)
def test_a_pod_of_a_job_may_be_restarted_if_it_says_so(
    owner: tuple[str, str], text: str, root: str, may: bool
) -> None:
    reference = {"apiVersion": owner[0], "kind": owner[1], "name": "j", "uid": "u", "controller": True}
    got = task(
        annotations={"eclectus.dev/restartable": text, "eclectus.dev/root-task": root},
        ownerReferences=[reference],
    )
    assert got.restartable is may
    assert not task(annotations={"eclectus.dev/restartable": "true"}).restartable


def test_of_a_long_hint_the_problem_shows_the_beginning() -> None:
    (problem,) = translate.annotation_problems({PATH_SECONDS: "x" * 5000}, "default")
    assert "x" * translate.MAX_TEXT in problem
    assert len(problem) < translate.MAX_TEXT + 150


def test_a_path_of_more_than_thirty_years_is_left_out() -> None:
    assert task(annotations={PATH_SECONDS: "1e10"}).path is None
    assert translate.annotation_problems({PATH_SECONDS: "1e9"}, "default") == ()


@settings(deadline=None)
@given(st.sampled_from([ESTIMATED_SECONDS, PATH_SECONDS, JOB_WORK_SECONDS, ROOM_ANNOTATION]), st.text())
def test_no_annotation_keeps_a_pod_from_being_counted(annotation: str, text: str) -> None:
    """Whoever may create a pod may write one, also on a pod that another scheduler has placed."""
    spec = {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    got = task(spec, annotations={annotation: text}, labels={RUN_ID_LABEL: "7"})
    assert (got.node, got.spec.requests) == ("n1", (("cpu", 2000),))


def test_a_probe_has_the_notional_requests_of_its_annotation() -> None:
    room = (("cpu", 1500), ("memory", 64 * 2**20))
    assert (
        task(
            labels={RUN_ID_LABEL: "7"}, annotations={ROOM_ANNOTATION: room_annotation(room)}
        ).notional_requests
        == room
    )
    assert task(
        labels={RUN_ID_LABEL: "7"}, annotations={ROOM_ANNOTATION: '{"cpu": 2}'}
    ).notional_requests == (("cpu", 2000),)
    assert task(labels={RUN_ID_LABEL: "7"}).notional_requests == ()


def test_the_room_annotation_of_any_other_pod_is_ignored() -> None:
    assert task(annotations={ROOM_ANNOTATION: "much"}).notional_requests == ()


@pytest.mark.parametrize(
    "text",
    ["", "much", "[]", '{"cpu": "fast"}', '{"cpu": "-1"}', '{"cpu": [1]}', '{"gpu": 1}', '{"pods": 9}'],
)
def test_an_invalid_room_annotation_is_left_out(text: str) -> None:
    assert task(labels={RUN_ID_LABEL: "7"}, annotations={ROOM_ANNOTATION: text}).notional_requests == ()


def test_gates_nomination_deletion_and_message_are_translated() -> None:
    got = task(
        {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
        {
            "nominatedNodeName": "n1",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}],
        },
        deletionTimestamp="2026-03-01T12:00:00Z",
    )
    assert (got.gates, got.nominated, got.deleting, got.reported) == (("a", "b"), "n1", True, "no room")


def test_a_restart_of_a_container_does_not_change_when_the_kubelet_accepted_the_pod() -> None:
    running = {"name": "a", "state": {"running": {"startedAt": "1970-01-01T01:00:00Z"}}}
    got = task(status={"startTime": "1970-01-01T00:01:00Z", "containerStatuses": [running]})
    assert (got.accepted, got.started) == (60.0, 3600.0)


def test_a_scheduled_pod_has_no_message() -> None:
    assert not task(
        status={"conditions": [{"type": "PodScheduled", "status": "True", "message": "x"}]}
    ).reported


def test_the_binding_is_in_the_task_and_not_in_its_spec() -> None:
    bound, waiting = task({"nodeName": "n1"}, {"phase": "Running"}), task()
    assert (bound.node, bound.phase) == ("n1", "Running")
    assert bound.spec == waiting.spec


@pytest.mark.parametrize(
    ("spec", "is_long_running"),
    [
        ({}, True),
        ({"restartPolicy": "Never"}, False),
        ({"restartPolicy": "OnFailure"}, False),
        ({"activeDeadlineSeconds": 9}, False),
    ],
)
def test_a_pod_that_is_always_restarted_is_long_running(spec: dict[str, Any], is_long_running: bool) -> None:
    assert task(spec).spec.long_running is is_long_running


def test_a_phase_that_is_not_known_is_unknown() -> None:
    assert task(status={"phase": "Hibernating"}).phase == "Unknown"


# -- class and job ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "workload"),
    [
        ("nginx", "shop/nginx"),
        ("nginx:1.29", "shop/nginx"),
        ("localhost:5000/team/app", "shop/localhost:5000/team/app"),
        ("localhost:5000/team/app:v2", "shop/localhost:5000/team/app"),
        ("ghcr.io/a/b@sha256:0123", "shop/ghcr.io/a/b"),
        ("ghcr.io/a/b:v1@sha256:0123", "shop/ghcr.io/a/b"),
    ],
)
def test_the_workload_is_the_image_without_its_version(image: str, workload: str) -> None:
    assert task({"containers": [{"name": "main", "image": image}]}).workload == workload


def test_the_order_of_containers_does_not_matter_to_the_workload() -> None:
    images = [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:2"}]
    assert task({"containers": images}).workload == task({"containers": images[::-1]}).workload == "shop/a,b"


def test_a_pod_of_many_long_images_has_a_workload_that_a_status_can_hold() -> None:
    """One longer name made the API server refuse its node's NodeProfile and the load of every NodeProbe."""
    images = [{"name": f"c{number}", "image": f"registry/{'x' * 200}{number}:1"} for number in range(6)]
    workload = task({"containers": images}).workload
    assert workload.startswith("shop/registry/xxx")
    assert len(workload) == MAX_NAME
    assert task({"containers": images[:-1]}).workload != workload


def test_the_class_label_names_the_workload() -> None:
    assert task(labels={CLASS_LABEL: "render-4k"}).workload == "shop/render-4k"


def test_the_same_label_in_another_namespace_is_other_work() -> None:
    labels = {CLASS_LABEL: "train"}
    assert task(labels=labels, namespace="evil").workload == "evil/train" != task(labels=labels).workload


def test_a_shared_class_belongs_to_no_namespace() -> None:
    shared = frozenset({"train"})

    def workload(label: str, namespace: str) -> str:
        pod = decode_pod(raw(labels={CLASS_LABEL: label}, namespace=namespace))
        return task_from(pod, shared=shared).workload

    assert workload("train", "a") == workload("train", "b") == "train"
    assert workload("training", "a") == "a/training"


def test_an_image_named_like_a_shared_class_is_not_shared() -> None:
    pod = decode_pod(raw({"containers": [{"name": "main", "image": "train:1"}]}))
    assert task_from(pod, shared=frozenset({"train"})).workload == "shop/train"


@pytest.mark.parametrize("label", ["x" * 64, "no spaces", "-a"])
def test_an_invalid_class_label_is_left_out(label: str) -> None:
    """The API server allows none."""
    assert task(labels={CLASS_LABEL: label}).workload == task().workload


def test_a_pod_with_the_operators_label_is_a_probe() -> None:
    assert task(labels={"eclectus.dev/run-id": "0123456789ab"}).spec.probe
    assert not task().spec.probe


def test_the_job_is_the_controlling_owner() -> None:
    owners = [{"uid": "friend"}, {"uid": "boss", "controller": True}]
    assert task(ownerReferences=owners).job == "boss"
    assert task(ownerReferences=owners[:1]).job == "uid-1"


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("apps/v1", "ReplicaSet", "ReplicaSet/web"),
        ("apps/v1", "StatefulSet", "StatefulSet/web"),
        ("v1", "ReplicationController", "ReplicationController/web"),
        ("v1", "ReplicaSet", ""),
        ("batch/v1", "Job", ""),
    ],
)
def test_a_controller_with_a_selector_is_named_while_the_pod_has_no_node(
    version: str, kind: str, expected: str
) -> None:
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "u", "controller": True}
    assert task(ownerReferences=[{"uid": "friend"}, owner]).controller == expected
    assert task(ownerReferences=[{**owner, "controller": False}]).controller == ""
    assert task({"nodeName": "n"}, ownerReferences=[owner]).controller == ""


def test_the_stage_is_the_label() -> None:
    assert task(labels={STAGE_LABEL: "reduce"}).stage == "reduce"
    assert task().stage == ""


# -- times -----------------------------------------------------------------------------------------

AT = "2026-03-01T12:00:{:02d}Z"
NOON = 1772366400.0


def ran(start: int, end: int | None = None) -> dict[str, Any]:
    times = {"startedAt": AT.format(start)}
    return {
        "name": f"c{start}",
        "state": {"running": times}
        if end is None
        else {"terminated": {**times, "finishedAt": AT.format(end)}},
    }


def test_a_task_starts_with_its_first_container_and_finishes_with_its_last() -> None:
    done = task(status={"phase": "Succeeded", "containerStatuses": [ran(3, 9), ran(2, 7)]})
    assert (done.started, done.finished) == (NOON + 2, NOON + 9)


def test_a_running_task_has_not_finished() -> None:
    running = task(status={"phase": "Running", "containerStatuses": [ran(3, 9), ran(5)]})
    assert (running.started, running.finished) == (NOON + 3, None)


def test_a_terminated_container_of_a_running_pod_is_no_finish() -> None:
    assert task(status={"phase": "Running", "containerStatuses": [ran(3, 9)]}).finished is None


def test_unknown_times_are_none() -> None:
    lost = {"name": "c", "state": {"terminated": {"startedAt": None, "finishedAt": None}}}
    failed = task(
        status={"phase": "Failed", "containerStatuses": [lost, {"name": "w", "state": {"waiting": {}}}]}
    )
    assert (failed.started, failed.finished) == (None, None)


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "soon", ""])
def test_a_time_that_cannot_be_read_is_none(text: str) -> None:
    """A pod of such a kubelet still holds its room."""
    ended = {"startedAt": text, "finishedAt": text}
    got = task(
        {"nodeName": "n1"},
        {"phase": "Succeeded", "containerStatuses": [{"name": "c", "state": {"terminated": ended}}]},
        creationTimestamp=text,
    )
    assert (got.node, got.phase, got.created, got.started, got.finished) == (
        "n1",
        "Succeeded",
        0.0,
        None,
        None,
    )
