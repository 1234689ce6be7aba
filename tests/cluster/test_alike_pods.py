"""Pods that rules about other pods cannot tell apart: what is remembered of them is bounded."""

from __future__ import annotations

import pytest

from builders import make_task
from eclectus.cluster import alike_pods
from eclectus.model.objects import Requirement, Task
from small_clusters import cluster_of, node


def labelled(at: int) -> Task:
    return make_task(f"t{at}", labels=tuple((f"k{key}", "v") for key in range(6)))


def test_pods_are_filed_by_the_labels_that_were_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_pods, "MAX_KEYS", 2)
    cluster = cluster_of(node("n"))
    cluster.hold(0, labelled(0))
    groups = cluster.pods
    for key in range(6):
        selector = (Requirement(f"k{key}", "In", ("v",)),)
        assert len(list(groups.matching(None, selector))) == 1
    assert list(groups._by_label) == ["k4", "k5"]
    assert len(list(groups.matching(None, (Requirement("k0", "In", ("v",)),)))) == 1, "filed again"


def test_a_reader_that_is_further_behind_than_is_remembered_starts_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alike_pods, "MAX_CHANGES", 4)
    cluster = cluster_of(node("n"))
    changes = cluster.pods.changes
    cluster.hold(0, labelled(0))
    assert len(changes.entries_since(0) or ()) == 1
    for at in range(1, 20):
        cluster.hold(0, labelled(at))
    assert changes.entries_since(0) is None
    assert len(changes._entries) <= 4


def test_changes_are_kept_by_group_in_their_order() -> None:
    cluster = cluster_of(node("n"), node("m"))
    first, second = labelled(0), make_task("t1", labels=(("a", "b"),))
    for row, task in ((0, first), (1, second), (1, first)):
        cluster.hold(row, task)
    cluster.pods.release(0, first, is_nominated=False)
    pods = cluster.pods
    found = pods.changes_since(0)
    assert found == {pods.of_pod(first): [(0, 1), (1, 1), (0, -1)], pods.of_pod(second): [(1, 1)]}
    assert pods.changes_since(0) is found, "grouped once for all readers"
    assert pods.changes_since(3) == {pods.of_pod(first): [(0, -1)]}
    cluster.hold(0, second)
    assert pods.changes_since(3) == {pods.of_pod(first): [(0, -1)], pods.of_pod(second): [(0, 1)]}
