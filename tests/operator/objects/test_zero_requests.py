"""A probe's pod asks for nothing that real pods could want, and says what it stands for."""

from copy import deepcopy

import pytest

from eclectus.kube.objects import Pod
from eclectus.kube.probe_room import ROOM, from_annotations
from eclectus.kube.requests import FieldError, requested
from eclectus_operator.objects.pods import pod, stands_for
from eclectus_operator.objects.resources import NodeProbe, Run, read
from eclectus_operator.objects.zero_requests import borrowed, room
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
def test_what_it_asked_for_is_what_it_stands_for_and_then_it_asks_for_nothing(case):
    spec, expected = CASES[case]
    before = deepcopy(spec)
    assert amounts(room(spec)) == expected
    assert requested(typed(borrowed(spec))).amounts == ()
    assert room(borrowed(spec)) == (), "even where a limit would fill in a request that is left out"
    assert spec == before


def test_limits_stay():
    (one,) = borrowed({"containers": [container(limits={"memory": "64Mi"})]})["containers"]
    assert one["resources"]["limits"] == {"memory": "64Mi"}


def test_what_cannot_be_had_without_asking_is_still_asked_for():
    asks = {"cpu": "1", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}
    spec = {"containers": [container(requests=asks, limits={"example.com/gpu": "1"})]}
    assert room(spec) == (("cpu", CORE),)
    held = requested(typed(borrowed(spec))).amounts
    assert held == (("example.com/gpu", 1), ("hugepages-2Mi", 4 * MI))


def test_what_is_no_quantity_is_named():
    with pytest.raises(FieldError, match=r"containers\[c\].resources.requests.cpu"):
        room({"containers": [container(requests={"cpu": "fast"})]})


@pytest.mark.parametrize("kind", ["cpu", "memory", "disk"])
@pytest.mark.parametrize("reserve", [False, True])
def test_the_benchmark_borrows_unless_it_is_told_to_reserve(kind, reserve):
    body = node_probe(classes=[{"name": "w", "unit": {"kind": kind, "units": 1}}], reserveRoom=reserve)
    body["metadata"] |= {"uid": "1234-abcd", "generation": 1, "resourceVersion": "1"}
    probe = read(body, NodeProbe)
    (work,) = probe.spec.classes
    made = pod(probe, Run(7, "n0", "w", "2026-11-21T12:00:00Z"), work, SETTINGS)
    holds = dict(requested(typed(made["spec"])).amounts)
    stands = from_annotations(made["metadata"]["annotations"])
    assert stands == stands_for(probe, work, SETTINGS)
    assert (ROOM in made["metadata"]["annotations"], bool(holds), bool(stands)) == (
        not reserve,
        reserve,
        not reserve,
    )
    assert dict(holds or stands)["cpu"] == (500 if kind == "disk" else CORE)
