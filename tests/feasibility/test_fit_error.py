"""The FitError message, byte for byte: autoscalers parse it."""

from __future__ import annotations

import pytest

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import MAX_REASONS, StaticRefusals, fit_error
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import (
    HostPort,
    Node,
    PodAffinityTerm,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    VolumeNeeds,
)

ROOM = (("cpu", 4000), ("ephemeral-storage", 100), ("memory", 1000), ("pods", 2))


def message(cluster: Cluster, spec: Spec) -> str:
    return fit_error(TaskClass(cluster, spec, "w"), cluster).message


def cluster_of(count: int, **changes: object) -> Cluster:
    cluster = Cluster(rows=2)
    for i in range(count):
        cluster.set_node(Node(f"n{i}", **{"allocatable": ROOM, **changes}))  # type: ignore[arg-type]
    return cluster


def pinned(*names: str) -> tuple[Term, ...]:
    return tuple(Term(fields=(Requirement("metadata.name", "In", (name,)),)) for name in names)


def test_no_nodes_at_all() -> None:
    assert message(Cluster(), Spec()) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(requests=(("cpu", 4001),)), "3 Insufficient cpu."),
        (Spec(requests=(("ephemeral-storage", 101),)), "3 Insufficient ephemeral-storage."),
        (Spec(requests=(("nvidia.com/gpu", 1),)), "3 Insufficient nvidia.com/gpu."),
        (Spec(requests=(("cpu", 9000), ("memory", 2000))), "3 Insufficient cpu, 3 Insufficient memory."),
        (Spec(node_name="gone"), "3 node(s) didn't match the requested node name."),
        (Spec(node_selector=(("a", "b"),)), "3 node(s) didn't match Pod's node affinity/selector."),
        (
            Spec(affinity=pinned("n0", "gone"), requests=(("cpu", 9000),)),
            "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
        ),
        (Spec(affinity=pinned("gone")), "3 node(s) didn't satisfy plugin(s) [NodeAffinity]."),
        (
            Spec(unsupported=("resource claims",)),
            "pod asks for resource claims, which Eclectus does not support yet.",
        ),
        (
            Spec(unsupported=("required pod affinity", "pod groups", "resource claims")),
            "pod asks for required pod affinity, pod groups and resource claims, "
            "which Eclectus does not support yet.",
        ),
    ],
)
def test_three_equal_nodes(spec: Spec, words: str) -> None:
    assert message(cluster_of(3), spec) == f"0/3 nodes are available: {words}"


def test_contradicting_names_are_refused_before_any_node() -> None:
    both = Term(
        fields=(Requirement("metadata.name", "In", ("n0",)), Requirement("metadata.name", "In", ("n1",)))
    )
    assert (
        message(cluster_of(3), Spec(affinity=(both,)))
        == "0/3 nodes are available: pod affinity terms conflict."
    )


def test_names_are_compared_before_claims_as_by_kube_scheduler() -> None:
    both = Term(
        fields=(Requirement("metadata.name", "In", ("n0",)), Requirement("metadata.name", "In", ("n1",)))
    )
    spec = Spec(affinity=(both,), volumes=VolumeNeeds(is_blocked=True))
    assert message(cluster_of(3), spec) == "0/3 nodes are available: pod affinity terms conflict."


def test_taints_and_cordons() -> None:
    assert message(cluster_of(2, taints=(Taint("k", "v"),)), Spec()) == (
        "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    )
    assert message(cluster_of(2, unschedulable=True, taints=(Taint("k"),)), Spec()) == (
        "0/2 nodes are available: 2 node(s) were unschedulable."
    )


def test_ports_come_before_room() -> None:
    cluster = cluster_of(2)
    cluster.hold(0, Task("u", "n", "p", spec=Spec(host_ports=(HostPort(80),))))
    spec = Spec(host_ports=(HostPort(80),), requests=(("cpu", 5000),))
    assert message(cluster, spec) == (
        "0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't have free ports for the requested pod ports."
    )


def test_a_node_counts_under_every_resource_that_is_short() -> None:
    cluster = cluster_of(2)
    for row in (0, 1):
        for uid in ("u", "v"):
            cluster.hold(row, Task(uid, "n", "p", spec=Spec(requests=(("cpu", 2000),))))
    assert message(cluster, Spec(requests=(("cpu", 1),))) == (
        "0/2 nodes are available: 2 Insufficient cpu, 2 Too many pods."
    )


def test_tentative_room_of_others_is_taken() -> None:
    cluster = cluster_of(1)
    cluster.add_tentative(0, (("memory", 1000),))
    assert (
        message(cluster, Spec(requests=(("memory", 1),))) == "0/1 nodes are available: 1 Insufficient memory."
    )


def test_anti_affinity_of_pods_on_nodes_comes_after_room() -> None:
    term = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),))
    cluster = cluster_of(3, labels=(("zone", "z"),))
    cluster.hold(0, Task("u", "n", "p", anti_affinity_terms=(term,), spec=Spec(requests=(("cpu", 4000),))))
    assert message(cluster, Spec(matched_terms=(term,), requests=(("cpu", 1),))) == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy existing pods anti-affinity rules."
    )


def test_parts_are_sorted_as_strings_and_each_node_counts_once_under_its_first_refusal() -> None:
    cluster = Cluster(rows=4)
    for i in range(10):
        cluster.set_node(Node(f"cordoned{i}", ROOM, taints=(Taint("k"),), unschedulable=True))
    for i in range(2):
        cluster.set_node(Node(f"tainted{i}", ROOM, taints=(Taint("k"),)))
    for i in range(3):
        cluster.set_node(Node(f"elsewhere{i}", ROOM))
    for i in range(11):
        cluster.set_node(Node(f"small{i}", ROOM, labels=(("zone", "z"),)))
    spec = Spec(node_selector=(("zone", "z"),), requests=(("cpu", 5000),))
    assert message(cluster, spec) == (
        "0/26 nodes are available: 10 node(s) were unschedulable, 11 Insufficient cpu, "
        "2 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector."
    )
    cluster.drop_node("tainted0")
    assert message(cluster, spec).startswith(
        "0/25 nodes are available: 1 node(s) had untolerated taint(s), 10 "
    )


def test_without_a_refusal_no_reason_is_named() -> None:
    assert message(cluster_of(1), Spec()) == "0/1 nodes are available:"


def test_a_resource_that_no_node_offers_counts_on_every_node_that_the_other_rules_leave() -> None:
    cluster = cluster_of(3)
    cluster.set_node(Node("cordoned", ROOM, unschedulable=True))
    cluster.hold(0, Task("u", "n", "p", spec=Spec(requests=(("a.io/odd", 7),))))
    assert message(cluster, Spec(requests=(("a.io/even", 1), ("a.io/odd", 1), ("cpu", 4001)))) == (
        "0/4 nodes are available: 1 node(s) were unschedulable, "
        "3 Insufficient a.io/even, 3 Insufficient a.io/odd, 3 Insufficient cpu."
    )


def test_the_message_of_a_pod_that_names_thousands_of_resources_fits_into_its_status() -> None:
    names = tuple((f"{'a' * 253}/{at:063}", 1) for at in range(3000))
    got = message(cluster_of(2), Spec(requests=names))
    assert got.endswith(f", {3000 - MAX_REASONS} more reasons.")
    assert got.count("2 Insufficient a") == MAX_REASONS
    assert len(got) < 25_000


def test_messages_of_one_step_share_what_static_rules_say() -> None:
    """Each is what it is alone, in whatever order they are made; and the rules are asked once."""
    cluster = cluster_of(3)
    cluster.set_node(Node("tainted", ROOM, taints=(Taint("a", "b", "NoSchedule"),)))
    port = HostPort(80)
    cluster.hold(0, Task("holder", "ns", "holder", spec=Spec(host_ports=(port,)), node="n0"))
    wants = [
        Spec(requests=(("cpu", 9000),)),
        Spec(requests=(("memory", 2000),)),
        Spec(requests=(("cpu", 9000),), host_ports=(port,)),
        Spec(requests=(("cpu", 9000),), node_selector=(("a", "b"),)),
    ]
    refusals = StaticRefusals(cluster)
    for spec in [*wants, *reversed(wants)]:
        assert fit_error(TaskClass(cluster, spec, "w"), cluster, refusals).message == message(cluster, spec)
    assert refusals.of(wants[0]) is refusals.of(wants[2])
    assert refusals.of(wants[0]) is not refusals.of(wants[3])
