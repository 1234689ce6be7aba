"""The pod of a run: pinned to its node, unprivileged, of the lowest priority, and recognised again."""

from dataclasses import replace

import kubernetes_validate
import pytest

from eclectus.api.node_probe import NodeProbe, Run, recognised
from eclectus_operator.convert import read
from eclectus_operator.node_probes.probe_pods import identity, pod, run_id
from probe_world import INSTANCE, SETTINGS, node_probe

RUN = Run(7, "node-a", "w", "2026-11-21T12:00:00Z")
WORKS = {
    "cpu": {"unit": {"kind": "cpu", "units": 3}},
    "memory": {"unit": {"kind": "memory", "units": 3}},
    "disk": {"unit": {"kind": "disk", "units": 3}},
    "run": {"run": {"image": "busybox", "command": ["echo"], "requests": {"cpu": 1, "memory": "64Mi"}}},
    "template": {
        "template": {
            "metadata": {"labels": {"team": "a", "eclectus.dev/class": "lie"}, "annotations": {"note": "x"}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "securityContext": {"runAsUser": 7}}],
                "initContainers": [{"name": "i", "image": "i"}],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "tolerations": [{"key": "own", "operator": "Exists"}],
                "securityContext": {"runAsUser": 1000},
            },
        }
    },
}


def probe_and_pod(work, **spec):
    body = node_probe(classes=[{"name": "w", **WORKS[work]}], **spec)
    body["metadata"] |= {"uid": "1234-abcd", "generation": 1, "resourceVersion": "1"}
    probe = read(body, NodeProbe)
    return probe, pod(probe, RUN, probe.spec.classes[0], SETTINGS)


@pytest.mark.parametrize("work", WORKS)
def test_it_is_valid_kubernetes_pinned_unprivileged_and_bounded(work):
    _, body = probe_and_pod(work)
    kubernetes_validate.validate(body, "1.37", strict=True)
    spec = body["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    assert (spec["schedulerName"], spec["priorityClassName"]) == ("eclectus", "low")
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 780)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["privileged"] is False
        assert container["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
        assert not any("hostPort" in port for port in container.get("ports", []))


@pytest.mark.parametrize("work", WORKS)
def test_it_is_recognised_has_its_class_and_is_owned_by_its_node_probe(work):
    probe, body = probe_and_pod(work)
    meta = body["metadata"]
    assert recognised(meta["name"], meta["labels"], INSTANCE) == identity(probe, RUN, INSTANCE)
    assert meta["labels"]["eclectus.dev/class"] == "w"
    assert meta["labels"]["eclectus.dev/probe"] == "batch"
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("NodeProbe", "1234-abcd", True)
    assert "blockOwnerDeletion" not in owner, "which would need a right to finalizers"


def test_the_name_is_deterministic_and_differs_for_a_recreated_node_probe():
    assert probe_and_pod("cpu")[1]["metadata"]["name"] == probe_and_pod("cpu")[1]["metadata"]["name"]
    assert run_id("one uid") != run_id("another uid")
    assert probe_and_pod("cpu")[1]["metadata"]["name"].endswith("-7")


def test_a_template_keeps_its_own_fields():
    _, body = probe_and_pod("template", tolerations=[{"key": "pool", "operator": "Exists"}])
    assert body["metadata"]["labels"]["team"] == "a"
    assert body["metadata"]["annotations"]["note"] == "x"
    assert [each["key"] for each in body["spec"]["tolerations"]] == ["own", "pool"]
    assert body["spec"]["securityContext"]["runAsUser"] == 1000
    assert body["spec"]["containers"][0]["securityContext"]["runAsUser"] == 7


def test_the_benchmark_gets_its_arguments_and_scratch_space():
    _, body = probe_and_pod("disk")
    (container,) = body["spec"]["containers"]
    assert (container["image"], container["args"]) == (
        "eclectus-unit:1",
        ["disk", "--units", "3", "--idle", "--folder", "/scratch"],
    )
    assert container["volumeMounts"][0]["mountPath"] == "/scratch"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "cpu" not in container["resources"]["limits"], "a throttled benchmark measures its throttle"


def test_a_benchmark_that_reserves_its_room_runs_like_a_task():
    probe, _ = probe_and_pod("disk", reserveRoom=True)
    body = pod(probe, RUN, probe.spec.classes[0], SETTINGS)
    assert "--idle" not in body["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("work", WORKS)
def test_pull_secrets_are_the_operators(work):
    probe, body = probe_and_pod(work)
    assert "imagePullSecrets" not in body["spec"]
    settings = replace(SETTINGS, pull_secrets="one,two")
    body = pod(probe, RUN, probe.spec.classes[0], settings)
    assert body["spec"]["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
