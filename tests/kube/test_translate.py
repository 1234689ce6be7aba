"""Pods and nodes of the API become tasks and nodes of the core, with nothing of weight left behind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eclectus.core import model
from eclectus.core.errors import MalformedError
from eclectus.core.model import Guard, HostPort, Preference, Requirement, Task, Term
from eclectus.kube.decoding import (
    decode_event,
    decode_head,
    decode_list,
    decode_node,
    decode_pod,
    decode_status,
)
from eclectus.kube.translate import CLASS_LABEL, ESTIMATE, JOB_WORK, PATH, node_from, task_from

PAUSE = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


def raw(spec: Any = None, status: Any = None, **metadata: Any) -> bytes:
    body = {
        "metadata": {"name": "web-0", "namespace": "shop", "uid": "uid-1", **metadata},
        "spec": {"containers": [PAUSE], **(spec or {})},
        "status": status or {},
    }
    return msgspec.json.encode(body)


def task(spec: Any = None, status: Any = None, **metadata: Any) -> Task:
    return task_from(decode_pod(raw(spec, status, **metadata)))


# -- who it is -------------------------------------------------------------------------------------


def test_a_plain_pod() -> None:
    got = task({"schedulerName": "eclectus", "priority": 7}, creationTimestamp="2026-03-01T12:00:00Z")
    assert str(got) == "shop/web-0"
    assert (got.uid, got.profile, got.priority, got.created) == ("uid-1", "eclectus", 7, 1772366400.0)
    assert got.spec == model.Spec(score_requests=(100, 200 * 2**20), lasting=True)
    assert (got.node, got.phase, got.deleting, got.held, got.reported) == ("", "Pending", False, None, "")


def test_what_is_said_of_a_pod_s_time_and_of_its_job_is_believed() -> None:
    assert (task().estimate, task().path, task().job_work) == (None, None, None)
    got = task(annotations={ESTIMATE: "90.5", PATH: "1e3", JOB_WORK: "1e12"})
    assert (got.estimate, got.path, got.job_work) == (90.5, 1000.0, 1e12)


@pytest.mark.parametrize("annotation", [ESTIMATE, PATH, JOB_WORK])
@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan", "inf", "1e14"])
def test_what_is_no_time_is_named(annotation: str, text: str) -> None:
    with pytest.raises(MalformedError, match=annotation.partition("/")[2]):
        task(annotations={annotation: text})


def test_a_path_of_more_than_thirty_years_is_a_slip() -> None:
    with pytest.raises(MalformedError, match=r"path-seconds\].*at most 1e\+09"):
        task(annotations={PATH: "1e10"})


def test_what_stands_in_the_way_of_scheduling_is_carried() -> None:
    got = task(
        {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
        {
            "nominatedNodeName": "n1",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}],
        },
        deletionTimestamp="2026-03-01T12:00:00Z",
    )
    assert (got.gates, got.nominated, got.deleting, got.reported) == (("a", "b"), "n1", True, "no room")


def test_a_scheduled_pod_reports_nothing() -> None:
    assert not task(
        status={"conditions": [{"type": "PodScheduled", "status": "True", "message": "x"}]}
    ).reported


def test_the_binding_shows_in_the_task_and_not_in_its_spec() -> None:
    bound, waiting = task({"nodeName": "n1"}, {"phase": "Running"}), task()
    assert (bound.node, bound.phase) == ("n1", "Running")
    assert bound.spec == waiting.spec


@pytest.mark.parametrize(
    ("spec", "lasting"),
    [
        ({}, True),
        ({"restartPolicy": "Never"}, False),
        ({"restartPolicy": "OnFailure"}, False),
        ({"activeDeadlineSeconds": 9}, False),
    ],
)
def test_a_pod_that_is_restarted_for_ever_lasts(spec: dict[str, Any], lasting: bool) -> None:
    assert task(spec).spec.lasting is lasting


def test_a_phase_of_another_age_is_unknown() -> None:
    assert task(status={"phase": "Hibernating"}).phase == "Unknown"


# -- what belongs together -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("nginx", "shop/nginx"),
        ("nginx:1.29", "shop/nginx"),
        ("localhost:5000/team/app", "shop/localhost:5000/team/app"),
        ("localhost:5000/team/app:v2", "shop/localhost:5000/team/app"),
        ("ghcr.io/a/b@sha256:0123", "shop/ghcr.io/a/b"),
        ("ghcr.io/a/b:v1@sha256:0123", "shop/ghcr.io/a/b"),
    ],
)
def test_the_workload_is_the_image_without_its_version(image: str, kind: str) -> None:
    assert task({"containers": [{"name": "main", "image": image}]}).workload == kind


def test_the_order_of_containers_does_not_matter_to_the_workload() -> None:
    images = [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:2"}]
    assert task({"containers": images}).workload == task({"containers": images[::-1]}).workload == "shop/a,b"


def test_the_class_label_names_the_workload() -> None:
    assert task(labels={CLASS_LABEL: "render-4k"}).workload == "render-4k"


@pytest.mark.parametrize("label", ["x" * 64, "no spaces", "-a"])
def test_a_class_label_that_is_no_label_value_is_refused(label: str) -> None:
    with pytest.raises(
        MalformedError, match=r"Pod shop/web-0: metadata.labels\[eclectus.dev/class\]: .* is no label value"
    ):
        task(labels={CLASS_LABEL: label})


def test_a_pod_of_the_operators_is_a_probe() -> None:
    assert task(labels={"eclectus.dev/run-id": "0123456789ab"}).spec.probe
    assert not task().spec.probe


def test_the_job_is_the_controlling_owner() -> None:
    owners = [{"uid": "friend"}, {"uid": "boss", "controller": True}]
    assert task(ownerReferences=owners).job == "boss"
    assert task(ownerReferences=owners[:1]).job == "uid-1"


# -- when it ran -----------------------------------------------------------------------------------

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
    half = task(status={"phase": "Running", "containerStatuses": [ran(3, 9), ran(5)]})
    assert (half.started, half.finished) == (NOON + 3, None)


def test_a_crash_between_restarts_is_no_finish() -> None:
    assert task(status={"phase": "Running", "containerStatuses": [ran(3, 9)]}).finished is None


def test_unknown_times_are_none() -> None:
    lost = {"name": "c", "state": {"terminated": {"startedAt": None, "finishedAt": None}}}
    gone = task(
        status={"phase": "Failed", "containerStatuses": [lost, {"name": "w", "state": {"waiting": {}}}]}
    )
    assert (gone.started, gone.finished) == (None, None)


# -- where it may run ------------------------------------------------------------------------------


def test_node_constraints() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "nic", "operator": "Gt", "values": ["10"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                    },
                    {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
                },
                {"weight": 9, "preference": {}},
            ],
        }
    }
    spec = task({"affinity": affinity, "nodeSelector": {"z": "1", "a": "2"}}).spec
    assert spec.node_selector == (("a", "2"), ("z", "1"))
    assert spec.affinity == (
        Term((Requirement("nic", "Gt", ("10",)),), (Requirement("metadata.name", "In", ("n1",)),)),
        Term((Requirement("gpu", "Exists"),)),
    )
    assert spec.preferences == (Preference(5, Term((Requirement("a", "NotIn", ("b",)),))),)
    assert not spec.unsupported


def test_required_affinity_without_terms_is_not_the_same_as_none() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    assert task({"affinity": {"nodeAffinity": required}}).spec.affinity == ()
    assert task({"affinity": {"nodeAffinity": {}}}).spec.affinity is None


def test_an_unknown_operator_of_node_affinity_is_refused_by_name() -> None:
    term = {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["v"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    with pytest.raises(
        MalformedError, match="matchExpressions k: operator 'Near' is unknown; it is one of In, NotIn"
    ):
        task({"affinity": {"nodeAffinity": required}})


def test_tolerations() -> None:
    written = [
        {"operator": "Exists"},
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "speed", "operator": "Gt", "value": "3"},
        {"key": "speed", "operator": "Roughly", "value": "3"},
    ]
    assert task({"tolerations": written}).spec.tolerations == (
        model.Toleration(op="Exists"),
        model.Toleration("a", "Equal", "b", "NoSchedule"),
        model.Toleration("speed", "Gt", "3"),
    )


def test_host_ports_of_apps_and_sidecars() -> None:
    port = {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 9}]}
    init = {"name": "i", "ports": [{"containerPort": 1, "hostPort": 10}]}
    app = {**PAUSE, "ports": [port, {"containerPort": 81}]}
    spec = task({"containers": [app], "initContainers": [init, sidecar]}).spec
    assert spec.host_ports == (HostPort(8080, "UDP", "10.0.0.1"), HostPort(9))


# -- what is not built yet -------------------------------------------------------------------------

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"affinity": {"podAffinity": REQUIRED}}, "required pod affinity"),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, "required pod anti-affinity"),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "topology spread with DoNotSchedule",
        ),
        ({"resourceClaims": [{"name": "gpu"}]}, "resource claims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "pod groups"),
        ({"hostNetwork": True, "hostUsers": False}, "user namespaces on the host network"),
        (
            {"containers": [{**PAUSE, "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "restart rules with RestartAllContainers",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            "persistent volume claims",
        ),
        ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}, "generic ephemeral volumes"),
        (
            {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "d"}}]},
            "awsElasticBlockStore volumes",
        ),
        ({"volumes": [{"name": "v", "azureDisk": {}}]}, "azureDisk volumes"),
        ({"volumes": [{"name": "v", "azureFile": {}}]}, "azureFile volumes"),
        ({"volumes": [{"name": "v", "cinder": {}}]}, "cinder volumes"),
        ({"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]}, "gcePersistentDisk volumes"),
        ({"volumes": [{"name": "v", "iscsi": {}}]}, "iscsi volumes"),
        ({"volumes": [{"name": "v", "portworxVolume": {}}]}, "portworxVolume volumes"),
        ({"volumes": [{"name": "v", "rbd": {}}]}, "rbd volumes"),
        ({"volumes": [{"name": "v", "vsphereVolume": {}}]}, "vsphereVolume volumes"),
    ],
)
def test_features_without_a_rule_are_named(spec: dict[str, Any], words: str) -> None:
    assert task(spec).spec.unsupported == (words,)


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
        {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {
            "volumes": [
                {"name": "v", "emptyDir": {}},
                {"name": "c", "configMap": {"name": "m"}},
                {"name": "i", "csi": {"driver": "d"}},
            ]
        },
        {"hostNetwork": True},
        {"hostUsers": False},
    ],
)
def test_wishes_and_harmless_parts_are_supported(spec: dict[str, Any]) -> None:
    assert not task(spec).spec.unsupported


# -- whom it keeps away ----------------------------------------------------------------------------


def guards(**term: Any) -> tuple[Guard, ...]:
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}
    return task({"nodeName": "n", "affinity": {"podAntiAffinity": rules}}).guards


def test_required_anti_affinity_guards_the_pods_own_namespace() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
    want = (Requirement("app", "In", ("web",)), Requirement("x", "Exists"))
    assert guards(labelSelector=selector) == (Guard("zone", want, ("shop",)),)


def test_named_namespaces_and_chosen_ones() -> None:
    assert guards(labelSelector={}, namespaces=["b", "a"]) == (Guard("zone", (), ("a", "b")),)
    assert guards(labelSelector={}, namespaces=["b"], namespaceSelector={}) == (Guard("zone", (), None),)
    chosen = {"matchLabels": {"team": "x"}}  # namespaces are not watched: counted as all, the safe side
    assert guards(labelSelector={}, namespaceSelector=chosen) == (Guard("zone", (), None),)


def test_a_term_without_a_selector_guards_nothing() -> None:
    assert guards() == ()


# -- nodes -----------------------------------------------------------------------------------------


def node(spec: Any = None, allocatable: Any = None, **metadata: Any) -> bytes:
    body = {
        "metadata": {"name": "n1", **metadata},
        "spec": spec or {},
        "status": {"allocatable": allocatable or {}},
    }
    return msgspec.json.encode(body)


def test_a_node() -> None:
    taints = [
        {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-03-01T12:00:00Z"},
        {"key": "odd", "effect": "Later"},
    ]
    room = {"cpu": "3920m", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "8", "hugepages-2Mi": "0"}
    got = node_from(
        decode_node(node({"unschedulable": True, "taints": taints}, room, labels={"b": "1", "a": "2"}))
    )
    assert got == model.Node(
        name="n1",
        allocatable=(("cpu", 3920), ("memory", 16 * 2**30), ("nvidia.com/gpu", 8), ("pods", 110)),
        labels=(("a", "2"), ("b", "1")),
        taints=(model.Taint("k", "v", "NoExecute"),),
        unschedulable=True,
    )


def test_a_malformed_node_is_named() -> None:
    with pytest.raises(MalformedError, match=r"^Node n1: status\.allocatable\.cpu: 'lots' is not a quantity"):
        node_from(decode_node(node(allocatable={"cpu": "lots"})))


# -- malformed objects and envelopes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (
            b'{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":3}]}}',
            ("b/a", "spec.containers[0].name"),
        ),
        (b'{"metadata":{"name":"a","namespace":"b"},"spec":{"priority":"high"}}', ("b/a", "spec.priority")),
        (b'{"metadata":{"name":"a"}}', ("a", "")),
        (b'{"metadata":{"name":5},"spec":{}}', ("?", "metadata.name")),
        (b'{"metadata":', ("?", "")),
    ],
)
def test_a_malformed_pod_names_itself_and_the_field(body: bytes, where: tuple[str, str]) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_pod(body)
    assert (caught.value.kind, caught.value.name, caught.value.field) == ("Pod", *where)


def test_a_pod_without_a_uid_is_refused() -> None:
    with pytest.raises(MalformedError, match=r"Pod shop/web-0: metadata\.uid: missing"):
        task(uid="")


def test_objects_without_a_name_are_refused() -> None:
    with pytest.raises(MalformedError, match=r"Pod shop/: metadata\.name: missing"):
        task(name="")
    with pytest.raises(MalformedError, match=r"Node \?: metadata\.name: missing"):
        node_from(decode_node(node(name="")))


def test_one_bad_object_in_a_list_spoils_no_other() -> None:
    page = (
        b'{"metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":7}},'
        + raw()
        + b"]}"
    )
    listed = decode_list(page)
    assert (listed.metadata.resource_version, listed.metadata.continue_) == ("9", "more")
    bad, good = listed.items or []
    with pytest.raises(MalformedError):
        decode_pod(bad)
    assert task_from(decode_pod(good)).uid == "uid-1"


def test_an_empty_list_may_be_null() -> None:
    assert not decode_list(b'{"metadata":{},"items":null}').items


def test_watch_lines() -> None:
    added = decode_event(b'{"type":"ADDED","object":' + raw() + b"}")
    assert (added.type, decode_pod(added.object).metadata.name) == ("ADDED", "web-0")
    mark = decode_event(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}')
    assert decode_head(mark.object).metadata.resource_version == "12"
    gone = decode_event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}')
    assert decode_status(gone.object).code == 410
    with pytest.raises(MalformedError, match="WatchEvent"):
        decode_event(b'{"type":"ADDED"')
