"""What makes a node less welcome and forbids nothing: soft taints, preferences."""

from __future__ import annotations

import numpy as np
import pytest

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.preferences import preference_scores
from eclectus.model.objects import Preference, Requirement, Spec, Taint, Term, Toleration
from small_clusters import cluster_of, node


def soft(cluster: Cluster, spec: Spec) -> list[float]:
    return preference_scores(cluster, spec, np.arange(len(cluster))).tolist()


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
