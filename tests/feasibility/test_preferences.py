"""What lowers a node's score and excludes it for no pod: PreferNoSchedule taints and preferences."""

from __future__ import annotations

import pytest

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Preference, Requirement, Spec, Taint, Term, Toleration
from small_clusters import cluster_of, node


def scores(cluster: Cluster, spec: Spec) -> list[float]:
    return TaskClass(cluster, spec, "").preference_score[: len(cluster)].tolist()


def test_without_preferences_every_score_is_one() -> None:
    assert scores(cluster_of(node("a"), node("b")), Spec()) == [1.0, 1.0]


def test_each_soft_taint_lowers_the_score() -> None:
    one, two = Taint("k", effect="PreferNoSchedule"), Taint("j", effect="PreferNoSchedule")
    cluster = cluster_of(node("a"), node("b", taints=(one,)), node("c", taints=(one, two, Taint("hard"))))
    assert scores(cluster, Spec()) == [1.0, 1 / 2, 1 / 3]
    assert scores(cluster, Spec(tolerations=(Toleration("k", "Exists"),))) == [1.0, 1.0, 1 / 2]
    only_hard = Toleration("k", "Exists", effect="NoSchedule")
    assert scores(cluster, Spec(tolerations=(only_hard,))) == [1.0, 1 / 2, 1 / 3]


def test_preferences_count_by_weight_beside_taints() -> None:
    preferences = (
        Preference(30, Term((Requirement("zone", "In", ("z1",)),))),
        Preference(10, Term((Requirement("gpu", "Exists"),))),
    )
    cluster = cluster_of(
        node("a", zone="z1", gpu=""),
        node("b", zone="z1"),
        node("c"),
        node("d", (Taint("k", effect="PreferNoSchedule"),), gpu=""),
    )
    assert scores(cluster, Spec(preferences=preferences)) == pytest.approx(
        [1.0, 0.6 + 0.4 * 0.75, 0.6, 0.6 / 2 + 0.4 * 0.25]
    )
