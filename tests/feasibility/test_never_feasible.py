"""The sentence about pods that no node could ever run: the conditions to blame, and the nearest node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import MAX_LENGTH, never_feasible, predicates
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Node, Preference, Requirement, Spec, Taint, Task, Term, Toleration

ROOM = (("cpu", 4000), ("memory", 8 << 30), ("pods", 2))
ARM, SSD = ("arch", "arm64"), ("disk", "ssd")


def sentence(cluster: Cluster, spec: Spec) -> str:
    return never_feasible(TaskClass(cluster, spec, "w"), cluster)


def cluster_of(*nodes: Node) -> Cluster:
    cluster = Cluster(rows=2)
    for node in nodes:
        cluster.set_node(node)
    return cluster


def labelled(*labels: tuple[tuple[str, str], ...]) -> Cluster:
    return cluster_of(*(Node(f"n{at}", ROOM, labels=each) for at, each in enumerate(labels)))


def test_it_names_the_condition_that_empties_the_set_and_the_nearest_node() -> None:
    cluster = labelled((), (ARM,), (ARM,), (SSD,), (ARM,))
    assert sentence(cluster, Spec(node_selector=(ARM, SSD))) == (
        " No node, however empty, satisfies all of: arch=arm64, disk=ssd; without disk=ssd 3 nodes would; "
        "without arch=arm64 1 node would; nearest: n1 (all but disk=ssd)."
    )


def test_where_no_single_condition_is_to_blame_the_nearest_node_lacks_several() -> None:
    cluster = labelled((), (("zone", "a"),))
    spec = Spec(node_selector=(ARM, SSD, ("zone", "a")))
    assert sentence(cluster, spec) == (
        " No node, however empty, satisfies all of: arch=arm64, disk=ssd, zone=a; "
        "nearest: n1 (all but arch=arm64, disk=ssd)."
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(requests=(("cpu", 4500),)), "cpu 4.5"),
        (Spec(requests=(("memory", 9 << 30),)), "memory 9Gi"),
        (Spec(requests=(("nvidia.com/gpu", 1),)), "nvidia.com/gpu 1"),
        (Spec(node_name="gone"), "the requested node name"),
        (Spec(node_selector=(SSD,)), "disk=ssd"),
        (Spec(affinity=()), "no affinity term"),
        (Spec(affinity=(Term(),)), "(an empty term)"),
        (
            Spec(affinity=(Term((Requirement("a", "Exists"),)), Term((Requirement("b", "Gt", ("3",)),)))),
            "(a) or (b>3)",
        ),
        (Spec(affinity=(Term((Requirement("a", "In", ("x", "y")),)),)), "a in (x, y)"),
        (Spec(affinity=(Term((Requirement("zone", "DoesNotExist"),)),)), "!zone"),
        (Spec(affinity=(Term((Requirement("zone", "NotIn", ("z",)),)),)), "zone!=z"),
        (Spec(affinity=(Term(fields=(Requirement("metadata.name", "In", ("x",)),)),)), "metadata.name=x"),
    ],
)
def test_a_single_condition_is_named_in_the_pods_own_words(spec: Spec, words: str) -> None:
    cluster = labelled((("zone", "z"),), (("zone", "z"),))
    assert sentence(cluster, spec) == f" No node, however empty, satisfies: {words}."


def test_names_that_only_nodes_state_stay_out() -> None:
    cluster = cluster_of(
        Node("n0", ROOM, labels=(SSD, ("team", "secret")), taints=(Taint("owner", "secret"),)),
        Node("n1", ROOM, unschedulable=True),
    )
    got = sentence(cluster, Spec(node_selector=(SSD,)))
    assert got == (
        " No node, however empty, satisfies all of: spec.unschedulable=false, tolerated taints, disk=ssd; "
        "without tolerated taints 1 node would; nearest: n0 (all but tolerated taints)."
    )


def test_a_pod_that_only_waits_for_room_has_no_sentence() -> None:
    cluster = labelled((SSD,), ())
    cluster.hold(0, Task("u", "n", "p", spec=Spec(requests=(("cpu", 4000),))))
    spec = Spec(node_selector=(SSD,), requests=(("cpu", 1000),))
    assert TaskClass(cluster, spec, "w").fits_now_count == 0
    assert sentence(cluster, spec) == ""


def test_preferences_are_no_conditions() -> None:
    wish = Preference(1, Term((Requirement("a", "Exists"),)))
    assert "a" not in sentence(labelled(()), Spec(node_selector=(SSD,), preferences=(wish,))).split()


@pytest.mark.parametrize("spec", [Spec(unsupported=("gangs",)), Spec(node_selector=(SSD,))])
def test_without_nodes_and_for_unsupported_features_there_is_none(spec: Spec) -> None:
    cluster = labelled(()) if spec.unsupported else Cluster()
    assert sentence(cluster, spec) == ""


def test_thousands_of_conditions_make_a_short_sentence() -> None:
    pairs = tuple((f"{'k' * 300}{at:04}", "v" * 60) for at in range(3000))
    spec = Spec(node_selector=pairs, requests=tuple((f"a.io/{at:04}", 1) for at in range(3000)))
    got = sentence(labelled((), ()), spec)
    assert "its node selector and affinity, its requests" in got
    assert len(got) < 300
    assert len(sentence(labelled(()), Spec(node_selector=pairs[:9]))) < 20 * MAX_LENGTH


KEYS, VALUES = ("a", "b"), ("1", "2")
PAIRS = st.sets(st.sampled_from(KEYS)).flatmap(
    lambda keys: st.tuples(*(st.tuples(st.just(key), st.sampled_from(VALUES)) for key in sorted(keys)))
)
REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
    st.tuples(st.sampled_from(VALUES)),
)
TERMS = st.builds(
    Term,
    st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.lists(st.just(Requirement("metadata.name", "NotIn", ("n0",))), max_size=1).map(tuple),
)
NODES = st.tuples(PAIRS, st.booleans(), st.booleans(), st.sampled_from((1000, 4000)))
SPECS = st.builds(
    Spec,
    requests=st.sampled_from(((), (("cpu", 2000),), (("cpu", 2000), ("gpu", 1)))),
    node_selector=PAIRS,
    affinity=st.none() | st.lists(TERMS, max_size=2).map(tuple),
    tolerations=st.sampled_from(((), (Toleration(op="Exists"),))),
    node_name=st.sampled_from(("", "n1")),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(NODES, min_size=1, max_size=6), SPECS)
def test_the_conditions_together_are_what_the_rules_and_the_room_ask_of_an_empty_node(
    drawn: list[tuple[tuple[tuple[str, str], ...], bool, bool, int]], spec: Spec
) -> None:
    cluster = cluster_of(
        *(
            Node(
                f"n{at}",
                (("cpu", cpu), ("pods", 9)),
                labels,
                (Taint("t"),) if is_tainted else (),
                unschedulable=is_cordoned,
            )
            for at, (labels, is_tainted, is_cordoned, cpu) in enumerate(drawn)
        )
    )
    rows = np.flatnonzero(cluster.present)
    task_class = TaskClass(cluster, spec, "w")
    holds = np.ones(len(rows), dtype=bool)
    for _, condition in predicates(spec, cluster):
        holds &= condition(cluster, rows)
    assert holds.tolist() == task_class.feasible[rows].tolist()
    assert bool(sentence(cluster, spec)) == (not holds.any())
