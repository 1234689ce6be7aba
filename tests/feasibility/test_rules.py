"""Every rule, accepted and refused, one example at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from eclectus.core.cluster import Cluster
from eclectus.core.model import (
    Guard,
    HostPort,
    Node,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
)
from eclectus.feasibility.classes import TaskClass
from eclectus.feasibility.node_affinity import pinned_names
from eclectus.feasibility.rules import STATIC_RULES, USAGE_RULES
from eclectus.feasibility.soft import softness

ROOM = (("cpu", 4000), ("memory", 2**34), ("pods", 10))


def cluster_of(*nodes: Node) -> Cluster:
    cluster = Cluster(rows=4)
    for node in nodes:
        cluster.put_node(node)
    return cluster


def node(name: str = "n", taints: tuple[Taint, ...] = (), unschedulable: bool = False, **labels: str) -> Node:
    return Node(name, ROOM, tuple(sorted(labels.items())), taints, unschedulable)


def runs_on(cluster: Cluster, spec: Spec) -> set[str]:
    """Names of the nodes that the class may use now."""
    return {cluster.names[row] for row in TaskClass(cluster, spec, "w").open_rows}


def test_the_rules_stand_in_the_order_of_kube_scheduler() -> None:
    assert [rule.plugin for rule in (*STATIC_RULES, *USAGE_RULES)] == [
        "Unsupported",
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "InterPodAffinity",
        "Devices",
    ]


def test_a_plain_pod_runs_anywhere_and_is_asked_almost_nothing() -> None:
    cluster = cluster_of(node("a"), node("b"))
    plain = TaskClass(cluster, Spec(), "w")
    assert runs_on(cluster, Spec()) == {"a", "b"}
    assert [rule.plugin for rule in plain.rules] == ["NodeUnschedulable", "TaintToleration"]


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


def test_a_cordoned_node_takes_only_those_who_tolerate_the_cordon() -> None:
    cluster = cluster_of(node("a"), node("b", unschedulable=True))
    key = "node.kubernetes.io/unschedulable"
    assert runs_on(cluster, Spec()) == {"a"}
    assert runs_on(cluster, Spec(tolerations=(Toleration(key, "Exists"),))) == {"a", "b"}
    assert runs_on(cluster, Spec(tolerations=(Toleration(key, "Exists", effect="NoExecute"),))) == {"a"}


def test_a_pinned_task_runs_on_its_node_or_nowhere() -> None:
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


def test_each_hard_taint_must_be_tolerated_and_soft_ones_need_not() -> None:
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


def test_terms_are_alternatives_and_their_lines_are_not() -> None:
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
def test_ports_clash_on_overlapping_addresses(held: HostPort, wanted: HostPort, free: bool) -> None:
    cluster = cluster_of(node("a"), node("b"))
    resident = Task("u", "n", "p", spec=Spec(host_ports=(held,)))
    cluster.hold(cluster.rows["a"], resident)
    spec = Spec(host_ports=(wanted,))
    assert runs_on(cluster, spec) == ({"a", "b"} if free else {"b"})
    assert TaskClass(cluster, spec, "w").fits_now(cluster.rows["a"]) is free
    cluster.release(cluster.rows["a"], resident)
    assert runs_on(cluster, spec) == {"a", "b"}


# -- what is not built, and residents' guards ------------------------------------------------------


def test_what_no_rule_can_honour_runs_nowhere() -> None:
    assert runs_on(cluster_of(node("a")), Spec(unsupported=("persistent volume claims",))) == set()


@dataclass
class Neighbours:
    """Two zones; a resident in the first keeps pods labelled app=web away."""

    guard = Guard("zone", (Requirement("app", "In", ("web",)),), ("shop",))

    def __post_init__(self) -> None:
        self.cluster = cluster_of(
            node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("none")
        )
        self.resident = Task("u", "shop", "p", guards=(self.guard,), labels=(("app", "web"),))
        self.cluster.hold(self.cluster.rows["a1"], self.resident)

    def open_to(self, namespace: str, **labels: str) -> set[str]:
        shunned = self.cluster.guards.matching(namespace, tuple(sorted(labels.items())))
        return runs_on(self.cluster, Spec(shunned=shunned))


def test_a_guarded_domain_is_closed_to_matching_pods_alone() -> None:
    world = Neighbours()
    everywhere = {"a1", "a2", "b1", "none"}
    assert world.open_to("shop", app="web") == {"b1", "none"}
    assert world.open_to("shop", app="db") == everywhere
    assert world.open_to("bank", app="web") == everywhere
    world.cluster.release(world.cluster.rows["a1"], world.resident)
    assert world.open_to("shop", app="web") == everywhere


def test_a_class_hears_of_guards_on_other_nodes_of_the_domain() -> None:
    world = Neighbours()
    task_class = TaskClass(world.cluster, Spec(shunned=(world.guard,)), "w")
    a2 = world.cluster.rows["a2"]
    assert not task_class.open[a2]
    world.cluster.release(world.cluster.rows["a1"], world.resident)
    task_class.refresh()
    assert task_class.open[a2]
    world.cluster.hold(world.cluster.rows["a1"], world.resident)
    task_class.refresh()
    assert not task_class.open[a2]
    world.cluster.put_node(node("a1", zone="b"))  # the resident's node moves to the other zone
    task_class.refresh()
    assert set(task_class.open_rows) == {a2, world.cluster.rows["none"]}


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        (Requirement("app", "In", ("web", "db")), {"app": "db"}, True),
        (Requirement("app", "In", ("web",)), {}, False),
        (Requirement("app", "NotIn", ("web",)), {}, True),
        (Requirement("app", "NotIn", ("web",)), {"app": "web"}, False),
        (Requirement("app", "Exists"), {"app": ""}, True),
        (Requirement("app", "Exists"), {}, False),
        (Requirement("app", "DoesNotExist"), {}, True),
        (Requirement("app", "DoesNotExist"), {"app": "web"}, False),
    ],
)
def test_which_pods_a_guard_means(requirement: Requirement, labels: dict[str, str], matches: bool) -> None:
    cluster = cluster_of(node("a"))
    guard = Guard("zone", (requirement,))
    cluster.hold(0, Task("u", "n", "p", guards=(guard,)))
    assert cluster.guards.matching("any", tuple(labels.items())) == ((guard,) if matches else ())


def test_arrivals_count_kinds_of_guards_and_not_residents() -> None:
    cluster = cluster_of(node("a"))
    tasks = [Task(str(i), "n", "p", guards=(Guard("zone"),)) for i in range(3)]
    for task in tasks:
        cluster.hold(0, task)
    assert (len(cluster.guards), cluster.guards.arrivals) == (1, 1)
    for task in tasks:
        cluster.release(0, task)
    assert (len(cluster.guards), cluster.guards.arrivals) == (0, 1)
    cluster.hold(0, tasks[0])
    assert cluster.guards.arrivals == 2


# -- wishes ----------------------------------------------------------------------------------------


def soft(cluster: Cluster, spec: Spec) -> list[float]:
    return softness(cluster, spec, np.arange(len(cluster))).tolist()


def test_nothing_asked_is_met_everywhere() -> None:
    assert soft(cluster_of(node("a"), node("b")), Spec()) == [1.0, 1.0]


def test_soft_taints_make_a_node_less_welcome_one_by_one() -> None:
    one, two = Taint("k", effect="PreferNoSchedule"), Taint("j", effect="PreferNoSchedule")
    cluster = cluster_of(node("a"), node("b", taints=(one,)), node("c", taints=(one, two, Taint("hard"))))
    assert soft(cluster, Spec()) == [1.0, 1 / 2, 1 / 3]
    assert soft(cluster, Spec(tolerations=(Toleration("k", "Exists"),))) == [1.0, 1.0, 1 / 2]
    only_hard = Toleration("k", "Exists", effect="NoSchedule")
    assert soft(cluster, Spec(tolerations=(only_hard,))) == [1.0, 1 / 2, 1 / 3]


def test_preferences_count_by_weight_beside_taints() -> None:
    wishes = (
        Preference(30, Term((Requirement("zone", "In", ("z1",)),))),
        Preference(10, Term((Requirement("gpu", "Exists"),))),
    )
    cluster = cluster_of(
        node("a", zone="z1", gpu=""),
        node("b", zone="z1"),
        node("c"),
        node("d", (Taint("k", effect="PreferNoSchedule"),), gpu=""),
    )
    assert soft(cluster, Spec(preferences=wishes)) == pytest.approx(
        [1.0, 0.6 + 0.4 * 0.75, 0.6, 0.6 / 2 + 0.4 * 0.25]
    )
