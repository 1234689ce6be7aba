"""Sets of taints are kept as long as a node has them."""

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Node, Taint


def node(name: str, *values: str) -> Node:
    taints = tuple(
        Taint("DeletionCandidateOfClusterAutoscaler", value, "PreferNoSchedule") for value in values
    )
    return Node(name=name, allocatable=(("cpu", 4000),), taints=taints)


def taints(cluster: Cluster, name: str) -> list[str]:
    return [taint.value for taint in cluster.taint_sets[cluster.taint_set[cluster.rows[name]]]]


def test_a_taint_whose_value_is_a_time_leaves_nothing_behind() -> None:
    cluster = Cluster()
    for second in range(1000):
        cluster.set_node(node("a", str(second)))
        assert taints(cluster, "a") == [str(second)]
    assert len(cluster.taint_sets) <= 3


def test_nodes_share_a_set_until_the_last_has_another() -> None:
    cluster = Cluster()
    for name in "ab":
        cluster.set_node(node(name, "1"))
    cluster.set_node(node("a", "2"))
    cluster.set_node(node("c", "3"))
    assert [taints(cluster, name) for name in "abc"] == [["2"], ["1"], ["3"]]
    cluster.drop_node("b")
    cluster.set_node(node("d", "4"))
    assert [taints(cluster, name) for name in "acd"] == [["2"], ["3"], ["4"]]
    assert len(cluster.taint_sets) == 4


def test_a_row_that_is_used_again_has_no_taints_of_the_node_before() -> None:
    cluster = Cluster()
    cluster.set_node(node("a", "1"))
    cluster.drop_node("a")
    cluster.set_node(node("b"))
    assert taints(cluster, "b") == []
