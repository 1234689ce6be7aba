"""Constraints of a pod: where it may run, its anti-affinity, and features that are not supported."""

from __future__ import annotations

from typing import Any

import pytest

from eclectus.model import objects as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import HostPort, PodAffinityTerm, Preference, Requirement, Term
from pod_objects import PAUSE, task

# -- nodes -----------------------------------------------------------------------------------------


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


def test_required_affinity_without_terms_differs_from_no_affinity() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    assert task({"affinity": {"nodeAffinity": required}}).spec.affinity == ()
    assert task({"affinity": {"nodeAffinity": {}}}).spec.affinity is None


def test_an_unknown_operator_of_node_affinity_is_refused() -> None:
    term = {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["v"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    with pytest.raises(
        MalformedError, match="matchExpressions k: operator 'Near' is unknown; it must be one of In, NotIn"
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


# -- unsupported features --------------------------------------------------------------------------

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
MANY = {"requiredDuringSchedulingIgnoredDuringExecution": 33 * [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        ({"affinity": {"podAntiAffinity": MANY}}, "more than 32 rules about other pods"),
        ({"topologySpreadConstraints": 33 * [{"topologyKey": "z"}]}, "more than 32 rules about other pods"),
        ({"resourceClaims": [{"name": "gpu"}, {"name": "nic"}]}, "resource claims (gpu, nic)"),
        ({"resourceClaims": [{"name": n} for n in "abcde"]}, "resource claims (a, b, c, d, ...)"),
        ({"schedulingGroup": {}}, "a group that is no PodGroup"),
        ({"hostNetwork": True, "hostUsers": False}, "user namespaces on the host network"),
        (
            {"containers": [{**PAUSE, "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "restart rules with RestartAllContainers",
        ),
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
def test_an_unsupported_feature_is_named(spec: dict[str, Any], feature: str) -> None:
    assert task(spec).spec.unsupported == (feature,)


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
        {"affinity": {"podAffinity": REQUIRED, "podAntiAffinity": REQUIRED}},
        {"topologySpreadConstraints": 32 * [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {
            "volumes": [
                {"name": "v", "emptyDir": {}},
                {"name": "c", "configMap": {"name": "m"}},
                {"name": "i", "csi": {"driver": "d"}},
                {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
            ]
        },
        {"hostNetwork": True},
        {"hostUsers": False},
    ],
)
def test_rules_about_pods_soft_constraints_and_other_volumes_are_supported(spec: dict[str, Any]) -> None:
    assert not task(spec).spec.unsupported


# -- anti-affinity ---------------------------------------------------------------------------------


def terms(**term: Any) -> tuple[PodAffinityTerm, ...]:
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}
    return task({"nodeName": "n", "affinity": {"podAntiAffinity": rules}}).anti_affinity_terms


def test_required_anti_affinity_applies_to_the_pods_own_namespace() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
    expected = (Requirement("app", "In", ("web",)), Requirement("x", "Exists"))
    assert terms(labelSelector=selector) == (PodAffinityTerm("zone", expected, ("shop",)),)


def test_namespaces_by_name_and_by_selector() -> None:
    assert terms(labelSelector={}, namespaces=["b", "a"]) == (PodAffinityTerm("zone", (), ("a", "b")),)
    assert terms(labelSelector={}, namespaces=["b"], namespaceSelector={}) == (
        PodAffinityTerm("zone", (), None),
    )
    selector, of_team_x = {"matchLabels": {"team": "x"}}, (Requirement("team", "In", ("x",)),)
    assert terms(labelSelector={}, namespaces=["b"], namespaceSelector=selector) == (
        PodAffinityTerm("zone", (), ("b",), of_team_x),
    )
    assert terms(labelSelector={}, namespaceSelector=selector)[0].namespaces == ()


def test_a_term_without_a_selector_is_left_out() -> None:
    assert terms() == ()
