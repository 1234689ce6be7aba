"""How much of each resource of a node is allocated: what kube-scheduler's NodeResourcesFit scores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.framework import Floats, Rows, Spec, TaskClass
from eclectus.model.objects import amount_of

SCORED = ("cpu", "memory")  # a container without requests counts with Kubernetes' defaults for scores
_OF_EVERY_POD = "ephemeral-storage"  # other resources count only for pods that request them


def allocated_shares(
    task_class: TaskClass, rows: Rows, weights: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """The allocated share of each resource that counts, with one more task, 0..1, and the resources' weights.

    Shapes [len(rows), resources] and [resources]. A node that offers none of a resource counts as full.
    """
    cluster, spec = task_class.cluster, task_class.spec
    others = [name for name in weights if name not in SCORED and _counts(cluster, spec, name)]
    columns = [cluster.columns[name] for name in (*SCORED, *others)]
    allocatable = cluster.allocatable.take(rows, axis=0).take(columns, axis=1)
    held = cluster.scored[rows] + spec.score_requests
    if others:
        used = cluster.used.take(rows, axis=0).take(columns[len(SCORED) :], axis=1)
        held = np.hstack([held, used + [amount_of(spec.requests, name) for name in others]])
    shares = np.where(allocatable > 0, np.minimum(held / allocatable, 1.0), 1.0)
    return shares, np.array([weights.get(name, 0.0) for name in (*SCORED, *others)])


def _counts(cluster: Cluster, spec: Spec, resource: str) -> bool:
    is_asked = resource == _OF_EVERY_POD or amount_of(spec.requests, resource) > 0
    return is_asked and resource in cluster.columns
