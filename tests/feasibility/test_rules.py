"""Every rule by examples, of pods accepted and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.feasibility.rules.nodes import pinned_names
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.rules.table import STATIC_RULES, USAGE_RULES
from eclectus.feasibility.static_rules import NOT_READ_BY_RULES, NOT_READ_BY_STATIC_RULES, static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import (
    HostPort,
    Node,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
    UnboundClaim,
    VolumeNeeds,
    VolumeUse,
)
from small_clusters import cluster_of, node, runs_on


def test_the_rules_have_the_order_of_kube_scheduler() -> None:
    assert [rule.plugin for rule in (*STATIC_RULES, *USAGE_RULES)] == [
        "Unsupported",
        "VolumeBinding",  # which its PreFilter refuses
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",  # that of the profile
        "NodeAffinity",
        "SlowNodes",
        "NodeVolumeLimits",  # of a driver that must be installed
        "VolumeBinding",
        "VolumeBinding",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeBinding",
        "Devices",
    ]


def test_a_plain_pod_fits_everywhere_and_few_rules_apply() -> None:
    cluster = cluster_of(node("a"), node("b"))
    plain = TaskClass(cluster, Spec(), "w")
    assert runs_on(cluster, Spec()) == {"a", "b"}
    found = (*static_rules_of(plain.spec), *plain.usage_rules)
    assert [rule.plugin for rule in found] == ["NodeUnschedulable", "TaintToleration"]


def test_a_copy_runs_on_no_node_that_is_named_as_slow_and_names_that_are_gone_refuse_none() -> None:
    cluster = cluster_of(node("a"), node("b"), node("c"))
    assert runs_on(cluster, Spec(slow_nodes=("b", "gone"))) == {"a", "c"}


class Recorded:
    """A spec that records which of its fields are read."""

    def __init__(self, spec: Spec) -> None:
        self._spec, self.read = spec, set[str]()

    def __getattr__(self, field: str) -> Any:
        self.read.add(field)
        return getattr(self._spec, field)


@pytest.mark.parametrize(
    ("rules", "left_out"),
    [
        (STATIC_RULES, {*NOT_READ_BY_STATIC_RULES}),
        (USAGE_RULES, {*NOT_READ_BY_RULES}),
    ],
)
def test_no_rule_reads_a_field_by_which_classes_may_differ_and_share(
    rules: tuple[Rule, ...], left_out: set[str]
) -> None:
    cluster = cluster_of(node("a", (Taint("t"),), zone="z1"))
    cluster.hold(0, Task("u", "n", "p", spec=Spec(host_ports=(HostPort(80),))))
    rich = Recorded(
        Spec(
            requests=((DEVICE_MILLI, 1),),
            node_name="a",
            node_selector=(("zone", "z1"),),
            affinity=(Term((Requirement("zone", "Exists"),)),),
            host_ports=(HostPort(80),),
            unsupported=("volumes",),
            topology_keys=("zone",),
            volumes=VolumeNeeds(
                is_blocked=True,
                affinity=((Term((Requirement("zone", "Exists"),)),),),
                zones=(("zone", ("z1",)),),
                unbound=(UnboundClaim("late"),),
                drivers=("csi",),
            ),
            volume_use=VolumeUse(exclusive=("n/c",), attached=(("csi", 1),)),
            enforced_affinity=(Term((Requirement("zone", "Exists"),)),),
            slow_nodes=("b",),
        )
    )
    for rule in rules:
        assert rule.applies(rich)  # type: ignore[arg-type]
        rule.holds(cluster, rich, np.array([0]))  # type: ignore[arg-type]
    assert not rich.read & left_out
    assert left_out <= {*Spec.__struct_fields__}


# -- room ------------------------------------------------------------------------------------------


def test_room_is_exact_to_the_last_unit() -> None:
    cluster = cluster_of(node("a"))
    full = Task("u", "n", "p", spec=Spec(requests=(("cpu", 3999),)))
    cluster.hold(0, full)
    assert runs_on(cluster, Spec(requests=(("cpu", 1),))) == {"a"}
    assert runs_on(cluster, Spec(requests=(("cpu", 2),))) == set()
    cluster.release(0, full)
    assert runs_on(cluster, Spec(requests=(("cpu", 4000),))) == {"a"}


@pytest.mark.parametrize(
    "resource", ["memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "pods"]
)
def test_every_kind_of_resource_is_needed(resource: str) -> None:
    rich = Node(
        "rich",
        (
            ("cpu", 10),
            ("ephemeral-storage", 8),
            ("example.com/gpu", 8),
            ("hugepages-2Mi", 8),
            ("memory", 8),
            ("pods", 8),
        ),
    )
    poor = Node("poor", tuple(pair for pair in rich.allocatable if pair[0] != resource))
    spec = Spec() if resource == "pods" else Spec(requests=((resource, 8),))
    assert runs_on(cluster_of(rich, poor), spec) == {"rich"}


# -- cordons, names, taints ------------------------------------------------------------------------


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cluster = cluster_of(node("a"), node("b", unschedulable=True))
    key = "node.kubernetes.io/unschedulable"
    assert runs_on(cluster, Spec()) == {"a"}
    assert runs_on(cluster, Spec(tolerations=(Toleration(key, "Exists"),))) == {"a", "b"}
    assert runs_on(cluster, Spec(tolerations=(Toleration(key, "Exists", effect="NoExecute"),))) == {"a"}


def test_a_pod_with_a_node_name_fits_there_only() -> None:
    cluster = cluster_of(node("a"), node("b"))
    assert runs_on(cluster, Spec(node_name="b")) == {"b"}
    assert runs_on(cluster, Spec(node_name="gone")) == set()


@pytest.mark.parametrize(
    ("toleration", "accepted"),
    [
        (Toleration(op="Exists"), True),
        (Toleration("k", "Exists"), True),
        (Toleration("k", "Equal", "5"), True),
        (Toleration("k", "Equal", "5", "NoSchedule"), True),
        (Toleration("k", "Equal", "5", "NoExecute"), False),
        (Toleration("k", "Equal", "6"), False),
        (Toleration("j", "Exists"), False),
        (Toleration("k", "Gt", "4"), True),
        (Toleration("k", "Gt", "5"), False),
        (Toleration("k", "Lt", "6"), True),
        (Toleration("k", "Lt", "5"), False),
        (Toleration("k", "Gt", "+4"), False),  # no decimal integer by the API's rules
        (Toleration("k", "Gt", "many"), False),
    ],
)
def test_tolerations(toleration: Toleration, accepted: bool) -> None:
    cluster = cluster_of(node("a", taints=(Taint("k", "5"),)))
    assert bool(runs_on(cluster, Spec(tolerations=(toleration,)))) is accepted


def test_hard_taints_must_be_tolerated_and_soft_ones_need_not() -> None:
    both = (Taint("k"), Taint("j", effect="NoExecute"))
    cluster = cluster_of(node("a", taints=both), node("b", taints=(Taint("s", effect="PreferNoSchedule"),)))
    one = Spec(tolerations=(Toleration("k", "Exists"),))
    assert runs_on(cluster, one) == {"b"}
    assert runs_on(cluster, Spec(tolerations=(*one.tolerations, Toleration("j", "Exists")))) == {"a", "b"}


# -- node affinity ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirement", "names"),
    [
        (Requirement("zone", "In", ("z1", "z9")), {"a"}),
        (Requirement("zone", "In", ()), set()),
        (Requirement("zone", "NotIn", ("z1",)), {"b", "c"}),
        (Requirement("zone", "Exists"), {"a", "b"}),
        (Requirement("zone", "DoesNotExist"), {"c"}),
        (Requirement("nic", "Gt", ("10",)), {"b"}),
        (Requirement("nic", "Lt", ("11",)), {"a"}),
        (Requirement("nic", "Lt", ("x",)), set()),
        (Requirement("nic", "Gt", ("1", "2")), set()),
        (Requirement("zone", "Gt", ("1",)), set()),  # z1 is no number
        (Requirement("never-seen", "NotIn", ("x",)), {"a", "b", "c"}),
    ],
)
def test_operators_on_labels(requirement: Requirement, names: set[str]) -> None:
    cluster = cluster_of(
        node("a", zone="z1", nic="10"), node("b", zone="z2", nic="100"), node("c", nic="1_0")
    )
    assert runs_on(cluster, Spec(affinity=(Term((requirement,)),))) == names


@pytest.mark.parametrize(
    ("requirement", "names"),
    [
        (Requirement("metadata.name", "In", ("a",)), {"a"}),
        (Requirement("metadata.name", "NotIn", ("a",)), {"b"}),
        (Requirement("metadata.name", "In", ("gone",)), set()),
        (Requirement("metadata.name", "In", ("a", "b")), set()),  # the API allows one value
        (Requirement("metadata.name", "Exists"), set()),
        (Requirement("metadata.uid", "NotIn", ("a",)), set()),
    ],
)
def test_operators_on_fields(requirement: Requirement, names: set[str]) -> None:
    assert runs_on(cluster_of(node("a"), node("b")), Spec(affinity=(Term(fields=(requirement,)),))) == names


def test_one_term_is_enough_and_all_its_requirements_must_hold() -> None:
    cluster = cluster_of(node("a", zone="z1", arch="arm"), node("b", zone="z1"), node("c", zone="z2"))
    both = Term((Requirement("zone", "In", ("z1",)), Requirement("arch", "Exists")))
    other = Term((Requirement("zone", "In", ("z2",)),))
    assert runs_on(cluster, Spec(affinity=(both,))) == {"a"}
    assert runs_on(cluster, Spec(affinity=(both, other))) == {"a", "c"}
    assert runs_on(cluster, Spec(affinity=(Term(),))) == set()
    assert runs_on(cluster, Spec(affinity=())) == set()


def test_the_selector_and_the_affinity_must_both_hold() -> None:
    cluster = cluster_of(node("a", zone="z1", arch="arm"), node("b", zone="z1"))
    spec = Spec(node_selector=(("zone", "z1"),))
    assert runs_on(cluster, spec) == {"a", "b"}
    assert runs_on(cluster, Spec(node_selector=(("arch", "arm"), ("zone", "z1")))) == {"a"}
    assert runs_on(
        cluster,
        Spec(node_selector=(("zone", "z1"),), affinity=(Term((Requirement("arch", "DoesNotExist"),)),)),
    ) == {"b"}


def names(*values: str) -> Requirement:
    return Requirement("metadata.name", "In", values)


@pytest.mark.parametrize(
    ("affinity", "pinned"),
    [
        (None, None),
        ((), None),
        ((Term(fields=(names("a"),)),), {"a"}),
        ((Term(fields=(names("a"),)), Term(fields=(names("b"),))), {"a", "b"}),
        ((Term(fields=(names("a"), names("b"))),), set()),
        ((Term(fields=(names("a"),)), Term((Requirement("x", "Exists"),))), None),
    ],
)
def test_names_that_affinity_pins(affinity: tuple[Term, ...] | None, pinned: set[str] | None) -> None:
    assert pinned_names(Spec(affinity=affinity)) == pinned


# -- ports -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [
        (HostPort(80), HostPort(80), False),
        (HostPort(80), HostPort(81), True),
        (HostPort(80), HostPort(80, "UDP"), True),
        (HostPort(80), HostPort(80, ip="10.0.0.1"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), True),
    ],
)
def test_ports_conflict_on_overlapping_addresses(held: HostPort, wanted: HostPort, free: bool) -> None:
    cluster = cluster_of(node("a"), node("b"))
    pod = Task("u", "n", "p", spec=Spec(host_ports=(held,)))
    cluster.hold(cluster.rows["a"], pod)
    spec = Spec(host_ports=(wanted,))
    assert runs_on(cluster, spec) == ({"a", "b"} if free else {"b"})
    assert TaskClass(cluster, spec, "w").fits_beside_held(cluster.rows["a"]) is free
    cluster.release(cluster.rows["a"], pod)
    assert runs_on(cluster, spec) == {"a", "b"}


# -- unsupported features -----------------------------------------------------------------------------


def test_an_unsupported_feature_fits_nowhere() -> None:
    assert runs_on(cluster_of(node("a")), Spec(unsupported=("persistent volume claims",))) == set()
