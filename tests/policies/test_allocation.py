"""Placement by allocated shares: kube-scheduler's formulas, computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from builders import make_cluster, make_node, make_spec, make_task
from configurations import HEAD, error_of
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec
from eclectus.policies.place.allocation import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    ShapePoint,
)

GPU = "nvidia.com/gpu"


def cluster(*, cpu: float = 8, memory: float = 32, gpus: int = 4) -> Cluster:
    """A node with 8 cores, 32 GiB, 4 GPUs and 100 units of storage, of which these amounts are held."""
    node = make_node("n", cpu=8, memory=32)
    offered = tuple(sorted((*node.allocatable, (GPU, 4), ("ephemeral-storage", 100))))
    found = make_cluster(type(node)(name="n", allocatable=offered))
    held = make_spec(cpu=8 - cpu, memory=32 - memory)
    requests = tuple(sorted((*held.requests, (GPU, 4 - gpus)))) if gpus < 4 else held.requests
    found.hold(0, make_task("held", spec=Spec(requests=requests, score_requests=held.score_requests)))
    return found


def asking(**others: int) -> Spec:
    """A pod of 2 cores and 8 GiB that requests these too."""
    spec = make_spec(cpu=2, memory=8)
    named = {GPU if name == "gpu" else name: amount for name, amount in others.items()}
    return Spec(requests=tuple(sorted((*spec.requests, *named.items()))), score_requests=spec.score_requests)


# Held before: 2 of 8 cores, 8 of 32 GiB, 1 of 4 GPUs. With the pod: cpu 1/2, memory 1/2, GPUs 1/2 for one.
NODES: dict[str, Any] = {"cpu": 6, "memory": 24, "gpus": 3}


@pytest.mark.parametrize(
    ("weights", "spec", "share"),
    [
        ({"cpu": 1, "memory": 1}, asking(), 0.5),
        ({"cpu": 3, "memory": 1}, make_spec(cpu=4, memory=8), (3 * 0.75 + 0.5) / 4),
        ({"cpu": 1, GPU: 3}, asking(gpu=2), (0.5 + 3 * 0.75) / 4),
        ({"cpu": 1, GPU: 3}, asking(), 0.5),  # a pod without GPUs is not scored by them
        ({GPU: 1}, asking(), 0.0),
        ({"cpu": 1, "example.com/none": 9}, asking(), 0.5),
    ],
)
def test_shares_are_weighted(weights: dict[str, int], spec: Spec, share: float) -> None:
    nodes = cluster(**NODES)
    least = LeastAllocated(resources=weights).cost(refreshed(nodes, spec), np.array([0]))[0]
    most = MostAllocated(resources=weights).cost(refreshed(nodes, spec), np.array([0]))[0]
    assert least == pytest.approx(1.0 + share)
    assert most == pytest.approx(1.0 - share)


def refreshed(nodes: Cluster, spec: Spec) -> TaskClass:
    task_class = TaskClass(nodes, spec, "w")
    task_class.refresh()
    return task_class


def test_storage_counts_for_pods_that_do_not_request_it() -> None:
    nodes = cluster(**NODES)
    weights = {"cpu": 1, "ephemeral-storage": 1}
    cost = LeastAllocated(resources=weights).cost(refreshed(nodes, asking()), np.array([0]))[0]
    assert cost == pytest.approx(1.0 + 0.25)


PEAK = (ShapePoint(0, 2), ShapePoint(50, 10), ShapePoint(100, 0))


@pytest.mark.parametrize(
    ("shape", "weights", "spec", "expected"),
    [
        ((ShapePoint(0, 0), ShapePoint(100, 10)), {"cpu": 1, "memory": 1}, asking(), 0.5),
        (PEAK, {"cpu": 1}, asking(), 1.0),
        (PEAK, {"cpu": 1}, make_spec(cpu=4), 0.5),  # 3/4 full: half way down
        (PEAK, {"cpu": 1, GPU: 3}, asking(gpu=2), (1.0 + 3 * 0.5) / 4),
        (PEAK, {"cpu": 1, GPU: 3}, asking(gpu=3), 1.0),  # a score of 0 is left out of the mean
        ((ShapePoint(0, 0), ShapePoint(60, 0), ShapePoint(100, 10)), {"cpu": 1}, asking(), 0.0),
        ((ShapePoint(40, 6),), {"cpu": 1, "memory": 1}, asking(), 0.6),  # level beyond the points
    ],
)
def test_a_line_of_points_says_how_full_a_node_should_be(
    shape: Any, weights: dict[str, int], spec: Spec, expected: float
) -> None:
    policy = RequestedToCapacityRatio(shape=shape, resources=weights)
    cost = policy.cost(refreshed(cluster(**NODES), spec), np.array([0]))[0]
    assert cost == pytest.approx(1.0 - expected)


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("{policy: least-allocated, resources: {}}", "place.resources: must name a resource"),
        ("{policy: least-allocated, resources: {cpu: 0}}", "place.resources.cpu: 0 is too small; at least 1"),
        ("{policy: most-allocated, resources: {cpu: 101}}", "101 is too large; at most 100"),
        ("{policy: requested-to-capacity-ratio, shape: []}", "place.shape: must have a point"),
        (
            "{policy: requested-to-capacity-ratio, shape: [{utilization: 5, score: 1}, "
            "{utilization: 5, score: 2}]}",
            "place.shape[1].utilization: must be more than 5",
        ),
        ("{policy: requested-to-capacity-ratio, shape: [{utilization: 101, score: 1}]}", "at most 100 %"),
        ("{policy: requested-to-capacity-ratio, shape: [{utilization: 5}]}", "shape[0].score: is missing"),
        ("{policy: requested-to-capacity-ratio, shape: [{utilization: 5, score: 11}]}", "at most 10"),
    ],
)
def test_absurd_settings_are_refused(place: str, problem: str) -> None:
    assert problem in error_of(f"{HEAD}profiles: [{{schedulerName: a, place: {place}}}]")
