"""Sets of constraints: which pods are of one set, and on which nodes they may run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builders import make_cluster, make_node, make_spec
from eclectus.feasibility.constraint_set import (
    NAME_LENGTH_MOST,
    PREFERENCES_MOST,
    constraint_set,
    nodes_of,
    weighted_sets,
)
from eclectus.model.objects import (
    HostPort,
    Preference,
    Requirement,
    Spec,
    Taint,
    Term,
    Toleration,
)

ARM = (("arch", "arm"),)
SSD = Term((Requirement("disk", "In", ("ssd",)),))
GPU_TAINT = Toleration("gpu", "Exists")

CLUSTER = make_cluster(
    make_node("plain"),
    make_node("arm", labels={"arch": "arm"}),
    make_node("arm-ssd", labels={"arch": "arm", "disk": "ssd"}),
    make_node("gpu", gpus=2, taints=(Taint("gpu"),)),
    make_node("cordoned", labels={"arch": "arm"}, unschedulable=True),
)


def nodes(spec: Spec, at: int = 0) -> list[str]:
    constraints, _ = weighted_sets(spec)[at]
    holds = nodes_of(CLUSTER, constraints)(slice(len(CLUSTER.names)))
    each = nodes_of(CLUSTER, constraints)(np.arange(len(CLUSTER.names)))
    assert holds.tolist() == each.tolist()
    return [CLUSTER.names[row] for row in np.flatnonzero(holds)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (make_spec(), ["plain", "arm", "arm-ssd"]),
        (make_spec(node_selector=ARM), ["arm", "arm-ssd"]),
        (make_spec(node_selector=ARM, affinity=(SSD,)), ["arm-ssd"]),
        (make_spec(tolerations=(GPU_TAINT,)), ["plain", "arm", "arm-ssd", "gpu"]),
        (make_spec(gpus=1, tolerations=(GPU_TAINT,)), ["gpu"]),
        (make_spec(gpus=1), []),
        (Spec(requests=(("example.com/fpga", 1),)), []),
        (make_spec(cpu=1000, node_selector=ARM), ["arm", "arm-ssd"]),
        (make_spec(node_name="plain"), ["plain"]),
    ],
)
def test_the_nodes_of_a_set(spec: Spec, expected: list[str]) -> None:
    assert nodes(spec) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"cpu": 3, "memory": 5},
        {"host_ports": (HostPort(80),)},
        {"preferences": (Preference(1, SSD),)},
        {"long_running": True},
        {"tolerations": (Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),)},
        {"tolerations": (Toleration("slow", "Exists", effect="PreferNoSchedule"),)},
    ],
)
def test_what_does_not_say_where_a_pod_may_run_is_in_no_set(fields: dict[str, Any]) -> None:
    assert constraint_set(make_spec(**fields, node_selector=ARM)) == constraint_set(
        make_spec(node_selector=ARM)
    )


def test_the_order_of_tolerations_makes_no_other_set() -> None:
    two = GPU_TAINT, Toleration("arm", "Exists")
    one, other = make_spec(tolerations=two), make_spec(tolerations=(*two[::-1], GPU_TAINT))
    assert constraint_set(one) == constraint_set(other)


def test_preferences_count_by_their_share_of_the_weight() -> None:
    zone = Term((Requirement("zone", "In", ("a",)),))
    spec = make_spec(node_selector=ARM, preferences=(Preference(30, SSD), Preference(10, zone)))
    assert [weight for _, weight in weighted_sets(spec)] == [1.0, 0.75, 0.25]
    assert nodes(spec, 1) == ["arm-ssd"]
    assert nodes(spec, 2) == []


def test_of_many_preferences_the_heaviest_count() -> None:
    many = tuple(Preference(weight, Term((Requirement(f"k{weight}", "Exists"),))) for weight in range(1, 50))
    sets = weighted_sets(make_spec(preferences=many))
    assert len(sets) == 1 + PREFERENCES_MOST
    assert sets[1][0].preferred == many[-1].term


def test_a_set_is_named_by_its_constraints() -> None:
    spec = make_spec(gpus=1, node_selector=ARM, affinity=(SSD,), tolerations=(GPU_TAINT,))
    assert str(constraint_set(spec)) == "arch=arm, disk In ssd, gpu, tolerates gpu"
    assert str(constraint_set(make_spec())) == "any node"
    assert str(weighted_sets(make_spec(preferences=(Preference(1, SSD),)))[1][0]) == "prefers disk In ssd"
    long = make_spec(node_selector=tuple((f"key-{at}", "value") for at in range(99)))
    assert len(str(constraint_set(long))) == NAME_LENGTH_MOST
