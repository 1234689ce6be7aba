"""The rule about anti-affinity of placed pods, asked what it would say without some pods of a node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.model.objects import Node, PodAffinityTerm, Requirement, Spec, Task
from operation_counts import operations
from small_clusters import cluster_of, node

WEB = (("app", "web"),)
NAMES = ("a1", "a2", "b1", "none")


def term(key: str, at: int = 0) -> PodAffinityTerm:
    """It keeps pods with app=web away; `at` makes different ones."""
    return PodAffinityTerm(key, (Requirement("app", "NotIn", (f"x{at}",)),), ("shop",))


def mask_of(cluster: Cluster) -> TopologyMask:
    """The rules for a pod of the shop that is labelled app=web; there are terms that match it."""
    spec = Spec(matched_terms=cluster.anti_affinity.matching("shop", WEB))
    found = TaskClass(cluster, spec, "w").topology
    assert found is not None
    return found


def fresh_cluster():
    return cluster_of(
        node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b", rack="r"), node("none")
    )


TERMS = st.lists(
    st.builds(term, st.sampled_from(["zone", "rack"]), st.integers(0, 2)), max_size=3, unique=True
)


@given(st.lists(st.tuples(st.sampled_from(NAMES), TERMS, st.booleans()), max_size=6))
def test_it_says_what_it_says_once_the_pods_are_gone(placed: list[tuple[str, list[PodAffinityTerm], bool]]):
    cluster = fresh_cluster()
    pods = [
        (cluster.rows[name], Task(f"u{at}", "shop", f"p{at}", anti_affinity_terms=tuple(terms)), is_removed)
        for at, (name, terms, is_removed) in enumerate(placed)
    ]
    for row, pod, _ in pods:
        cluster.hold(row, pod)
    if not cluster.anti_affinity.matching("shop", WEB):
        return
    mask = mask_of(cluster)
    for row in cluster.rows.values():
        removed = [pod for on, pod, is_removed in pods if is_removed and on == row]
        asked = not mask.refusal_without(row, removed)
        for pod in removed:
            cluster.release(row, pod)
        assert asked == mask.allows(row)
        for pod in removed:
            cluster.hold(row, pod)


@pytest.mark.parametrize("owner", ["a2", "b1"])
def test_a_node_costs_the_pods_removed_and_not_the_terms_that_match(owner: str) -> None:
    """A search for victims asks about thousands of nodes, and one pod may have thousands of terms."""

    def work(terms: int) -> int:
        cluster = fresh_cluster()
        holder = Task("h", "shop", "h", anti_affinity_terms=tuple(term("zone", at) for at in range(terms)))
        small = Task("s", "shop", "s")
        cluster.hold(cluster.rows[owner], holder)
        cluster.hold(cluster.rows["a1"], small)
        mask = mask_of(cluster)
        mask.refusal_without(cluster.rows["a2"], [small])
        return operations(lambda: mask.refusal_without(cluster.rows["a1"], [small]))

    assert work(400) <= work(4) + 10


def test_pods_put_back_one_by_one_cost_their_number_and_not_its_square() -> None:
    def work(count: int) -> int:
        cluster = cluster_of(Node("a1", (("pods", 100),), (("zone", "a"),)))
        pods = [Task(f"u{at}", "shop", f"p{at}") for at in range(count)]
        holder = Task("h", "shop", "h", anti_affinity_terms=(term("zone"),))
        for pod in (holder, *pods):
            cluster.hold(0, pod)
        spec = Spec(matched_terms=cluster.anti_affinity.matching("shop", WEB))
        task_class = TaskClass(cluster, spec, "w")
        room = RoomWithout(task_class, 0)
        for pod in (holder, *pods):
            room.remove(pod)

        def put_back() -> None:
            for pod in pods:
                room.restore(pod)
                assert room.fits

        return operations(put_back)

    assert work(80) <= 2.2 * work(40)
