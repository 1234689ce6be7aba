"""The fake kubelet rejects the pods that a real one rejects, with its reasons and messages."""

from typing import Any

import pytest

from eclectus_e2e.testbed.kubelet.pods.admission import NodeInfo, PodRequests
from eclectus_e2e.testbed.kubelet.pods.requests import requests
from eclectus_e2e.testbed.kubelet.quantities import amount


def container(port: int = 0, **wanted: str) -> dict[str, Any]:
    ports = [{"hostPort": port, "containerPort": port, "protocol": "TCP"}] if port else []
    return {"name": "c", "resources": {"requests": wanted}, "ports": ports}


def node_info(**allocatable: int) -> NodeInfo:
    labels = {"zone": "a", "size": "12"}
    return NodeInfo("n1", {"cpu": 4000, "memory": 1000, "pods": 3, **allocatable}, labels)


def admission(info: NodeInfo, spec: dict[str, Any]) -> str:
    rejection = info.rejection(spec, PodRequests.of(spec))
    return rejection.reason if rejection else "admitted"


@pytest.mark.parametrize(
    ("resource", "text", "units"),
    [
        ("cpu", "1", 1000),
        ("cpu", "250m", 250),
        ("cpu", "0.5", 500),
        ("cpu", "100u", 1),  # rounded up
        ("memory", "1Gi", 2**30),
        ("memory", "1.5Ki", 1536),
        ("memory", "2M", 2_000_000),
        ("memory", "1e3", 1000),
        ("nvidia.com/gpu", "2", 2),
    ],
)
def test_quantities(resource: str, text: str, units: int) -> None:
    assert amount(resource, text) == units


@pytest.mark.parametrize("text", ["", "1GB", "one", "1 Gi", "Ki"])
def test_a_text_that_is_not_a_quantity_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        amount("memory", text)


def test_requests_are_containers_and_sidecars_or_the_largest_init_container() -> None:
    sidecar = {**container(cpu="300m"), "restartPolicy": "Always"}
    spec = {
        "containers": [container(cpu="1", memory="10"), container(cpu="500m")],
        "initContainers": [container(cpu="1700m"), sidecar, container(cpu="1600m", memory="50")],
        "overhead": {"cpu": "10m"},
    }
    # Running: 1500 + 300. Starting: 1700 before the sidecar, 1600 + 300 beside it.
    assert requests(spec) == {"cpu": 1900 + 10, "memory": 50}


def test_pod_level_requests_replace_the_sum() -> None:
    spec = {"containers": [container(cpu="1", memory="5")], "resources": {"requests": {"cpu": "700m"}}}
    assert requests(spec) == {"cpu": 700, "memory": 5}


def test_an_overcommitted_node_rejects_with_the_kubelets_message() -> None:
    node = node_info()
    node.admit("a", PodRequests({"cpu": 3000}, set()))
    spec = {"containers": [container(cpu="1001m")]}
    rejection = node.rejection(spec, PodRequests.of(spec))
    assert rejection is not None
    assert rejection.reason == "OutOfcpu"
    assert rejection.message == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1001, used: 3000, capacity: 4000"
    )


def test_a_pod_that_fills_the_node_exactly_is_admitted_and_released_resources_are_free_again() -> None:
    node = node_info()
    node.admit("a", PodRequests({"cpu": 3000}, set()))
    fits, too_much = {"containers": [container(cpu="1")]}, {"containers": [container(cpu="4")]}
    assert admission(node, fits) == "admitted"
    assert admission(node, too_much) == "OutOfcpu"
    node.release("a")
    node.release("a")  # a second time changes nothing
    assert admission(node, too_much) == "admitted"
    assert node.used["cpu"] == 0


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"memory": "1001"}, "OutOfmemory"),
        ({"ephemeral-storage": "1"}, "OutOfephemeral-storage"),
        ({"nvidia.com/gpu": "1"}, "OutOfnvidia.com/gpu"),
        ({"nvidia.com/gpu": "0"}, "admitted"),
        ({}, "admitted"),
    ],
)
def test_every_resource_counts(wanted: dict[str, str], reason: str) -> None:
    assert admission(node_info(), {"containers": [container(**wanted)]}) == reason


def test_the_number_of_pods_is_limited() -> None:
    node = node_info(pods=1)
    node.admit("a", PodRequests({}, set()))
    assert admission(node, {"containers": [container()]}) == "OutOfpods"


@pytest.mark.parametrize(
    ("operator", "key", "values", "is_admitted"),
    [
        ("In", "zone", ["a", "b"], True),
        ("In", "zone", ["b"], False),
        ("In", "missing", ["b"], False),
        ("NotIn", "zone", ["b"], True),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "missing", ["a"], True),
        ("Exists", "zone", [], True),
        ("Exists", "missing", [], False),
        ("DoesNotExist", "missing", [], True),
        ("DoesNotExist", "zone", [], False),
        ("Gt", "size", ["11"], True),
        ("Gt", "size", ["12"], False),
        ("Lt", "size", ["13"], True),
        ("Lt", "zone", ["13"], False),
    ],
)
def test_required_affinity(operator: str, key: str, values: list[str], is_admitted: bool) -> None:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"containers": [container()], "affinity": {"nodeAffinity": required}}
    assert admission(node_info(), spec) == ("admitted" if is_admitted else "NodeAffinity")


def test_terms_are_ored_and_an_empty_term_matches_nothing() -> None:
    good = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    bad = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    for terms, reason in (([bad, good], "admitted"), ([bad], "NodeAffinity"), ([{}], "NodeAffinity")):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec = {"containers": [container()], "affinity": {"nodeAffinity": required}}
        assert admission(node_info(), spec) == reason


def test_a_node_selector_must_match() -> None:
    assert admission(node_info(), {"containers": [container()], "nodeSelector": {"zone": "a"}}) == "admitted"
    assert (
        admission(node_info(), {"containers": [container()], "nodeSelector": {"zone": "b"}}) == "NodeAffinity"
    )


@pytest.mark.parametrize(
    ("effect", "tolerations", "reason"),
    [
        ("NoExecute", [], "TaintToleration"),
        ("NoSchedule", [], "admitted"),  # a kubelet checks NoExecute alone
        ("NoExecute", [{"operator": "Exists"}], "admitted"),
        ("NoExecute", [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "TaintToleration"),
        ("NoExecute", [{"key": "k", "operator": "Equal", "value": "7"}], "admitted"),
        ("NoExecute", [{"key": "k", "value": "8"}], "TaintToleration"),
        ("NoExecute", [{"key": "k", "operator": "Gt", "value": "6"}], "admitted"),
        ("NoExecute", [{"key": "k", "operator": "Lt", "value": "6"}], "TaintToleration"),
    ],
)
def test_taints(effect: str, tolerations: list[dict[str, str]], reason: str) -> None:
    node = node_info()
    node.taints = [{"key": "k", "value": "7", "effect": effect}]
    assert admission(node, {"containers": [container()], "tolerations": tolerations}) == reason


def test_a_host_port_is_used_once() -> None:
    node = node_info()
    first = {"containers": [container(port=80)]}
    node.admit("a", PodRequests.of(first))
    assert admission(node, first) == "NodePorts"
    assert admission(node, {"containers": [container(port=81)]}) == "admitted"


def test_insufficient_resources_are_reported_before_constraints() -> None:
    spec = {"containers": [container(cpu="5")], "nodeSelector": {"zone": "b"}}
    assert admission(node_info(), spec) == "OutOfcpu"
