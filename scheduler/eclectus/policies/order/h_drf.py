"""Hierarchical dominant resource fairness (H-DRF): namespaces share the cluster, jobs their namespace's part.

Bhattacharya, Culler, Friedman, Ghodsi, Shenker, Stoica, "Hierarchical Scheduling for Diverse Datacenter
Workloads", SoCC 2013. Adding up shares along a tree starves siblings that need different resources. H-DRF
scales the children of a node to the least of them before it adds them up, and leaves out what is saturated.

Departures:
- the paper fills the tree task by task. Here the shares at the end of that are computed for what waits and
  runs (`maths/shares/hierarchical_shares.py`), and the next task comes from the job that uses the least part
  of its own. So a job that was alone before does not go first when others come.
- shares are computed again when what a job holds and wants has changed by a fifth, and not with every pod.
- every pod with a node counts, as in `drf`; the number of pods is no resource, since nobody asks for pods.
- `spec.priority` is compared first, as everywhere in Kubernetes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from eclectus.cluster.resources import PODS
from eclectus.framework import ChangeLog, Order, OrderTraits, Setting, Task, View
from eclectus.maths.shares.hierarchical_shares import hierarchical_shares, pool_tree
from eclectus.policies.shared.portions import Vector, magnitude, used_part

MAX_CHANGES = 64  # of the shares of all, that are remembered for who ranks groups


@dataclass(eq=False)
class HierarchicalShare(Order):
    """Priority, then the least used part of the job's share, then age."""

    traits = OrderTraits(needs_one_at_a_time=True, ranks_by_path=True, needs=frozenset({"shares"}))

    weights: Annotated[
        dict[str, float],
        Setting(
            "weight of a namespace, by its name: one of weight 2 is entitled to twice as much as one of 1",
            why="1 for every namespace that is not listed",
            least=1e-3,
            most=1e6,
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shares: dict[str, Vector] = {}  # by path
        self._resources: tuple[str, ...] = ()
        self._seen = (-1, -1)  # cursors of the accounts and of the nodes
        self._magnitudes: object = None  # what the shares were computed from
        self._changes = ChangeLog[str](MAX_CHANGES)

    def group(self, task: Task) -> str:
        """The job, below its namespace; a pod without one is a job of its own."""
        return f"{task.namespace}/{task.job or task.uid}"

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Within a job: priority, then age."""
        return (-task.priority, task.created, serial)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority, then by the part of its share that the job uses."""
        held, share = view.shares(self).held(group), self._shares.get(group)
        if share is None:
            return (-head.priority, 0.0)
        usage = tuple(float(held.get(name, 0)) for name in self._resources)
        return (-head.priority, used_part(usage, share))

    def changes(self, view: View) -> ChangeLog[str]:
        """Shares are brought up to date; a change of them concerns all."""
        shares = view.shares(self)
        seen = (shares.changes.head, view.cluster.shape.head)
        if seen != self._seen:
            self._seen = seen
            self._update(view)
        return self._changes

    def _update(self, view: View) -> None:
        cluster, shares = view.cluster, view.shares(self)
        sums = cluster.allocatable.sum(axis=0)
        self._resources = tuple(
            name for name, column in cluster.columns.items() if sums[column] > 0 and name != PODS
        )
        capacity = np.array([sums[cluster.columns[name]] for name in self._resources])
        wanted = {path: self._wanted(view, path) for path in sorted(shares.paths()) if "/" in path}
        magnitudes = capacity.tolist(), {path: tuple(map(magnitude, each)) for path, each in wanted.items()}
        if magnitudes == self._magnitudes or not wanted or not self._resources:
            return
        self._magnitudes = magnitudes
        demands = np.array(list(wanted.values()))
        weights: dict[tuple[str, ...], float] = {(name,): each for name, each in self.weights.items()}
        tree = pool_tree([(path.partition("/")[0],) for path in wanted], weights)
        found = hierarchical_shares(demands, np.ones(len(demands)), capacity, tree, demands)
        self._shares = dict(zip(wanted, map(tuple, found.tolist()), strict=True))
        self._changes.record_all()

    def _wanted(self, view: View, path: str) -> Vector:
        """What a job holds and waits for."""
        held, waiting = view.shares(self).held(path), view.shares(self).waiting(path)
        return tuple(float(held.get(name, 0) + waiting.get(name, 0)) for name in self._resources)
