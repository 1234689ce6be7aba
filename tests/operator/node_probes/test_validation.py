"""What is invalid in a NodeProbe that passes its schema."""

import pytest

from eclectus.api.node_probe import NodeProbeSpec
from eclectus_operator.convert import read
from eclectus_operator.node_probes.probe_templates import problems
from eclectus_operator.settings import Settings
from probe_world import SETTINGS, node_probe
from refused_templates import REFUSED, template


def wrong(work, settings=SETTINGS):
    spec = node_probe(classes=[{"name": "w", **work}])["spec"]
    return problems(read(spec, NodeProbeSpec), settings)


@pytest.mark.parametrize(
    "work",
    [
        {"unit": {"kind": "cpu"}},
        {"run": {"image": "reg:5000/a/b:1@sha256:" + "0" * 64, "command": ["a | b"], "shell": True}},
        {"template": template()},
        {"template": template(volumes=[{"name": "x", "emptyDir": {}}])},
        {"template": template(container={"env": [{"name": "A", "value": "b"}]})},
        {"template": template(container={"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]})},
    ],
)
def test_valid_classes(work):
    assert wrong(work) == []


def test_a_template_may_have_what_a_benchmark_needs():
    container = {
        "command": ["a"],
        "env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "1"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 7,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "x", "mountPath": "/x"}],
        "workingDir": "/x",
    }
    whole = template(
        container,
        initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always"}],
        runtimeClassName="nvidia",
        securityContext={"fsGroup": 7, "runAsUser": 7},
        tolerations=[{"operator": "Exists"}],
        volumes=[{"name": "x", "emptyDir": {"medium": "Memory"}}],
    )
    whole["metadata"] = {
        "labels": {"team": "a", "example.com/x": "y"},
        "annotations": {"sidecar.istio.io/x": "n"},
    }
    assert wrong({"template": whole}) == []


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_template_must_not_have(case):
    found = wrong({"template": case.template})
    assert len(found) == 1
    assert found[0].startswith(f"classes[w]: {case.path}")


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ({}, "give exactly one of unit, run, template and recent"),
        (
            {"unit": {"kind": "cpu"}, "run": {"image": "a"}},
            "give exactly one of unit, run, template and recent",
        ),
        ({"run": {"image": "a", "command": ["a", "b"], "shell": True}}, "shell takes one command"),
        ({"run": {"image": "a", "command": ["a"], "args": ["b"], "shell": True}}, "shell takes one command"),
        ({"run": {"image": "a", "shell": True}}, "shell takes one command"),
        ({"run": {"image": "A b"}}, "run.image: image 'A b'"),
        ({"template": template(container={"image": ""})}, "template.spec.containers[c].image"),
        ({"template": {"spec": {}}}, "template.spec.containers: give at least one"),
    ],
)
def test_a_class_must_not_have(work, message):
    (found,) = wrong(work)
    assert message in found


def test_a_unit_needs_an_operator_with_its_image():
    (found,) = wrong({"unit": {"kind": "cpu"}}, Settings(instance="a", namespace="b"))
    assert "--unit-image" in found
