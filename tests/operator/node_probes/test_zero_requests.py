"""A probe pod requests nothing that real pods could want, and its annotation has the notional requests."""

from copy import deepcopy

import pytest

from eclectus.api.names import ROOM_ANNOTATION
from eclectus.api.node_probe import NodeProbe, Run
from eclectus.kube.objects import Pod
from eclectus.kube.requests import FieldError, annotated_room, requested
from eclectus_operator.convert import read
from eclectus_operator.node_probes.probe_pods import notional_requests, pod
from eclectus_operator.pod_requests import shareable_requests, with_zero_requests
from probe_world import SETTINGS, node_probe

CORE, MI = 1000, 2**20


def container(name="c", **resources):
    return {"name": name, "image": "i", "resources": resources}


CASES = {
    "requests": ({"containers": [container(requests={"cpu": "1", "memory": "64Mi"})]}, (CORE, 64 * MI)),
    "limits alone": ({"containers": [container(limits={"cpu": "2", "memory": "1Mi"})]}, (2 * CORE, MI)),
    "a limit above": (
        {"containers": [container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Mi"})]},
        (CORE, MI),
    ),
    "several": (
        {
            "initContainers": [container("i", requests={"cpu": "3"})],
            "containers": [container("a", requests={"cpu": "1"}), container("b", requests={"cpu": "1"})],
        },
        (3 * CORE, 0),
    ),
    "of the pod": (
        {"resources": {"requests": {"cpu": "2"}}, "containers": [container(requests={"cpu": "1"})]},
        (2 * CORE, 0),
    ),
    "nothing": ({"containers": [{"name": "c", "image": "i"}]}, (0, 0)),
}


def typed(spec):
    return read({"metadata": {}, "spec": spec}, Pod)


def amounts(found):
    return dict(found).get("cpu", 0), dict(found).get("memory", 0)


@pytest.mark.parametrize("case", CASES)
def test_requests_become_notional_requests_and_then_zero(case):
    spec, expected = CASES[case]
    before = deepcopy(spec)
    assert amounts(shareable_requests(spec)) == expected
    assert requested(typed(with_zero_requests(spec))).amounts == ()
    assert shareable_requests(with_zero_requests(spec)) == (), (
        "not even where a limit would default an absent request"
    )
    assert spec == before


def test_limits_stay():
    (one,) = with_zero_requests({"containers": [container(limits={"memory": "64Mi"})]})["containers"]
    assert one["resources"]["limits"] == {"memory": "64Mi"}


def test_resources_that_need_a_request_are_still_requested():
    asks = {"cpu": "1", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}
    spec = {"containers": [container(requests=asks, limits={"example.com/gpu": "1"})]}
    assert shareable_requests(spec) == (("cpu", CORE),)
    held = requested(typed(with_zero_requests(spec))).amounts
    assert held == (("example.com/gpu", 1), ("hugepages-2Mi", 4 * MI))


def test_an_invalid_quantity_is_named():
    with pytest.raises(FieldError, match=r"containers\[c\].resources.requests.cpu"):
        shareable_requests({"containers": [container(requests={"cpu": "fast"})]})


@pytest.mark.parametrize("kind", ["cpu", "memory", "disk"])
@pytest.mark.parametrize("reserve", [False, True])
def test_the_benchmark_has_zero_requests_unless_it_reserves_room(kind, reserve):
    body = node_probe(classes=[{"name": "w", "unit": {"kind": kind, "units": 1}}], reserveRoom=reserve)
    body["metadata"] |= {"uid": "1234-abcd", "generation": 1, "resourceVersion": "1"}
    probe = read(body, NodeProbe)
    (work,) = probe.spec.classes
    created = pod(probe, Run(7, "n0", "w", "2026-11-21T12:00:00Z"), work, SETTINGS)
    real_requests = dict(requested(typed(created["spec"])).amounts)
    notional = annotated_room(created["metadata"]["annotations"])
    assert notional == notional_requests(probe, work, SETTINGS)
    assert (ROOM_ANNOTATION in created["metadata"]["annotations"], bool(real_requests), bool(notional)) == (
        not reserve,
        reserve,
        not reserve,
    )
    assert dict(real_requests or notional)["cpu"] == (500 if kind == "disk" else CORE)
