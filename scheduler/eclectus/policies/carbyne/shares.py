"""The shares of DAG jobs and of the pods beside them (line 8 to 15 of the paper's algorithm)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eclectus.maths.fair_shares import PoolTree, hierarchical_shares, pool_tree
from eclectus.policies.carbyne.plain_pods import PodsOfNamespace
from eclectus.policies.carbyne.planned_job import PlannedJob
from eclectus.policies.shared.portions import Vector, added


def set_shares(
    jobs: Mapping[str, PlannedJob],
    plain: Mapping[str, PodsOfNamespace],
    capacity: Vector,
    services: Vector,
    *,
    by_namespace: bool,
) -> None:
    """Set `share` of all jobs and of all plain pods, which are given by path; there are some.

    `capacity`: of all nodes; `services`: what pods hold that take part in no sharing. `by_namespace`:
    namespaces share equally, and pools and jobs within them; otherwise jobs alone.
    """
    sharing: list[PlannedJob | PodsOfNamespace] = [*jobs.values(), *plain.values()]
    remaining = [job.remaining() for job in jobs.values()]
    alike = [added(each.waiting, each.usage) for each in plain.values()]
    work = np.array([each for each, _ in remaining] + alike)
    most = np.array([each for _, each in remaining] + alike)
    weights = np.array([job.known.job.weight for job in jobs.values()] + [1.0] * len(plain))
    shared = np.maximum(np.array(capacity) - np.array(services), 0.0)
    tree = _pools(jobs, plain) if by_namespace else pool_tree([()] * len(sharing), {})
    shares = hierarchical_shares(work, weights, shared, tree, most)
    for each, share in zip(sharing, shares.tolist(), strict=True):
        each.share = tuple(share)


def _pools(jobs: Mapping[str, PlannedJob], plain: Mapping[str, PodsOfNamespace]) -> PoolTree:
    """Whose the jobs are, then whose the plain pods: namespaces, and pools within them."""
    owners = [(job.known.job.namespace, job.known.job.pool) for job in jobs.values()]
    owners += [(path.partition("/")[0], "") for path in plain]
    return pool_tree([(namespace, pool) if pool else (namespace,) for namespace, pool in owners], {})
