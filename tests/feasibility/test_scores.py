"""The scores of kube-scheduler's plugins as functions: worked examples, bounds, rounding."""

from __future__ import annotations

import numpy as np
import pytest

from eclectus.feasibility.scores import (
    MIB,
    Ints,
    balanced_allocation,
    crowding,
    image_locality,
    inter_pod_affinity,
    least_allocated,
    pod_topology_spread,
    share_of_most,
    taint_toleration,
    untolerated,
    volume_binding,
    weight_of,
)
from eclectus.model.objects import Taint, Toleration
from operation_counts import operations
from small_clusters import cluster_of, node


def whole(*numbers: object) -> Ints:
    return np.array(numbers, dtype=np.int64)


def test_taints_that_are_not_tolerated_lower_the_score_relative_to_the_worst_node() -> None:
    assert taint_toleration(whole(0, 1, 2, 3), 3).tolist() == [100, 67, 34, 0]
    assert taint_toleration(whole(0, 0), 0).tolist() == [100, 100]


def test_taints_that_differ_from_node_to_node_cost_a_new_pod_little() -> None:
    """A pod of anybody pays for them, and a node may have hundreds."""

    def work(taints: int, *tolerations: Toleration) -> int:
        of_node = tuple(Taint(f"t{at}", "x", "PreferNoSchedule") for at in range(taints))
        cluster, rows = cluster_of(node("n", of_node)), np.zeros(1, dtype=np.intp)
        return operations(lambda: untolerated(cluster, tolerations, rows))

    assert work(400) - work(100) <= 15 * 300
    other = Toleration("other", "Exists")
    assert work(400, other) - work(100, other) <= 50 * 300


def test_preferred_weights_count_relative_to_the_best_node() -> None:
    assert share_of_most(whole(0, 1, 30, 70), 70).tolist() == [0, 1, 42, 100]
    assert share_of_most(whole(0, 0), 0).tolist() == [0, 0]


def test_attraction_is_stretched_between_the_least_and_the_most() -> None:
    assert inter_pod_affinity(whole(-20, -10, 10), -20, 10).tolist() == [0, 33, 100]
    assert inter_pod_affinity(whole(7, 7), 7, 7).tolist() == [0, 0]


def test_a_greater_skew_makes_a_difference_of_counts_matter_less() -> None:
    for max_skew, worst in ((1, 0), (5, 80)):
        raw = crowding(((whole(0, 1), max_skew, weight_of(1)),), 2)
        assert pod_topology_spread(raw, int(raw.min()), int(raw.max())).tolist() == [100, worst]


def test_counts_of_several_constraints_add_up_before_they_are_rounded() -> None:
    zones, hosts = (whole(2, 0), 1, weight_of(3)), (whole(1, 0), 2, weight_of(100))
    # 2 ln 5 + ln 102 + 1 = 8.84
    assert crowding((zones, hosts), 2).tolist() == [9, 1]
    assert pod_topology_spread(whole(0, 0), 0, 0).tolist() == [100, 100]


@pytest.mark.parametrize(
    ("allocatable", "requested", "score"),
    [
        ((4000, 100), (1000, 50), 62),  # (75 + 50) / 2, rounded down
        ((4000, 100), (5000, 50), 25),  # more than there is counts as full
        ((4000, 0), (1000, 50), 75),  # a resource that the node does not have is left out
        ((0, 0), (1, 1), 0),
        ((4000, 2**50), (0, 1), 99),  # whole arithmetic: 99.99… is not 100
    ],
)
def test_the_free_share_of_cpu_and_memory(
    allocatable: tuple[int, int], requested: tuple[int, int], score: int
) -> None:
    assert least_allocated(whole(allocatable), whole(requested)).tolist() == [score]


def test_a_pod_that_evens_out_the_use_of_a_node_scores_high() -> None:
    allocatable, asked = whole((100, 100), (100, 100), (100, 100), (100, 0)), whole(40, 0)
    used = whole((0, 40), (0, 0), (40, 0), (0, 0))
    # Without the pod 80, 100, 80 and 100 (one resource alone is balanced); with it 100, 80, 60 and 100.
    assert balanced_allocation(allocatable, used, asked).tolist() == [85, 65, 65, 75]


def test_images_count_by_size_and_by_how_many_nodes_have_them() -> None:
    sizes = whole(0, 500 * MIB, 2000 * MIB)
    assert image_locality([(sizes, 3)], nodes=3, rows=3).tolist() == [0, 48, 100]
    assert image_locality([(sizes, 1)], nodes=3, rows=3).tolist() == [0, 14, 65]
    # With a second container the same image is less of what there is to pull.
    assert image_locality([(sizes, 3), (whole(0, 0, 0), 0)], nodes=3, rows=3).tolist() == [0, 24, 100]


def test_storage_that_stays_free_is_the_mean_of_the_classes_that_are_asked() -> None:
    one = (whole(50, 0, 3, 101, 5), whole(100, 100, 8, 100, 0))  # requested on five nodes, and what there is
    assert volume_binding([one], rows=5).tolist() == [50, 0, 63, 0, 0]
    other = (whole(10, 10, 0, 100, 0), whole(40, 40, 0, 100, 0))
    assert volume_binding([one, other], rows=5).tolist() == [63, 75, 63, 0, 0]
    assert volume_binding([], rows=1).tolist() == [0]


def test_a_small_image_and_no_image_are_the_same() -> None:
    assert image_locality([(whole(22 * MIB), 1)], nodes=1, rows=1).tolist() == [0]
    assert image_locality([], nodes=0, rows=1).tolist() == [0]
