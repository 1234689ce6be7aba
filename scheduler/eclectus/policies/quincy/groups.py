"""What is equal among the pods of a round: groups, each of which is one source of the network.

Pods of one job and class that have waited about as long and read the same data cost the same everywhere. A
tenant may give each pod data of its own, so at most `DATA_MOST` groups of a round have arcs by their data, an
equal part for each namespace that has such pods. The rest is grouped by how much it reads, and costs
everywhere what it costs on the worst node: most of it stays until others have been placed.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from eclectus.framework import COST_MOST, ClassKey, Task, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import WHOLE_MOST, DataCosts, Nearness
from eclectus.policies.quincy.graph import Group, Reach, Running

BUCKETS = 4  # of waiting time, for each doubling of it: pods in one are equal
DATA_MOST = 1000  # groups of a round that have arcs by their data


class GroupKey(NamedTuple):
    """What equal pods have in common."""

    job: str
    of_class: ClassKey
    precedence: tuple[int, bool]  # priority, and whether it is no copy
    bucket: int  # of the time that they have waited
    data: Hashable = None  # bytes and nodes of its inputs; None of none
    is_beyond: bool = (
        False  # what groups may have arcs by their data was used up: `data` is how much they cost
    )


class Waiting:
    """The tasks of a round. `jobs`: their positions."""

    def __init__(self, view: View, taken: Sequence[Task], data: DataCosts | None) -> None:
        self._data = data
        self.groups: dict[GroupKey, list[Task]] = {}
        self.jobs: dict[str, int] = {}
        self.classes: dict[ClassKey, TaskClass] = {}
        namespaces = {task.namespace for task in taken if task.inputs}
        self._most = max(DATA_MOST // max(len(namespaces), 1), 1)  # groups of a namespace
        self._with_data = Counter[str]()  # groups, by namespace
        for task in taken:
            job, class_key = job_of(task), (task.spec, task.workload)
            self.jobs.setdefault(job, len(self.jobs))
            if class_key not in self.classes:
                self.classes[class_key] = view.task_class(task)
            bucket = int(BUCKETS * log2(1.0 + max(view.now - task.created, 0.0)))
            key = GroupKey(job, class_key, precedence_of(task), bucket)
            self.groups.setdefault(self._by_data(key, task), []).append(task)

    def _by_data(self, key: GroupKey, task: Task) -> GroupKey:
        """The key with what the task reads."""
        if self._data is None or not task.inputs:
            return key
        found = key._replace(data=tuple((each.size, each.nodes) for each in task.inputs))
        if found in self.groups:
            return found
        if self._with_data[task.namespace] < self._most and self._with_data.total() < DATA_MOST:
            self._with_data[task.namespace] += 1
            return found
        return key._replace(data=int(log2(1.0 + self._data.worst(task.inputs))), is_beyond=True)

    def nearness(self) -> list[Nearness]:
        """Of each group."""
        found = []
        for key, (task, *_) in self.groups.items():
            if self._data is None or not task.inputs:
                found.append(Nearness())
            elif key.is_beyond:
                found.append(Nearness(self._data.worst(task.inputs)))
            else:
                found.append(self._data.nearness(task.inputs))
        return found


def precedence_of(task: Task) -> tuple[int, bool]:
    """Its priority, and whether it is no copy: the greater comes first."""
    return task.priority, not task.copy_of


def outranked(
    groups: Sequence[Group],
    running: Sequence[Running],
    precedence: Sequence[tuple[int, bool]],
    reaches: Sequence[Reach],
) -> tuple[list[Group], list[Running]]:
    """Both, with such costs of having no node that no pod has none so that one of lower precedence has one.

    Each step of precedence adds more than what two of them can differ in. Nodes that count as dead are left
    out of that: no pod has to go there. `precedence`: of the groups, then of those that run.
    """
    ranks = {each: rank for rank, each in enumerate(sorted(set(precedence)))}
    if len(ranks) == 1:
        return list(groups), list(running)
    costs = np.concatenate([reach.costs for reach in reaches])
    costs = costs[costs < WHOLE_MOST]
    without = [group.waits_at for group in groups] + [each.ends_at for each in running]
    stays = [0, *(each.stays_at for each in running)]
    by_data = max(group.elsewhere or 0 for group in groups) + max(stays) - min(stays)
    step = (int(np.ptp(costs)) if len(costs) else 0) + by_data + max(without) - min(without) + 1
    more = [ranks[each] * step for each in precedence]
    return (
        [
            group._replace(waits_at=min(group.waits_at + above, COST_MOST))
            for group, above in zip(groups, more, strict=False)
        ],
        [
            each._replace(ends_at=min(each.ends_at + above, COST_MOST))
            for each, above in zip(running, more[len(groups) :], strict=True)
        ],
    )


def spared_for_siblings(
    groups: Sequence[Group], running: Sequence[Running], precedence: Sequence[tuple[int, bool]]
) -> list[Running]:
    """Those that run, with such costs of being ended that no pod of their job gains by what they have done.

    A pod that is ended leaves its job with one more that waits, as much as its sibling that has waited for
    longest: without that, siblings would take each other's places in turn. `precedence` as in `outranked`.
    """
    longest: dict[tuple[int, tuple[int, bool]], int] = {}
    for group, own in zip(groups, precedence, strict=False):
        key = group.job, own
        longest[key] = max(group.waits_at, longest.get(key, 0))
    return [
        each._replace(ends_at=max(each.ends_at, longest.get((each.job, own), 0)))
        for each, own in zip(running, precedence[len(groups) :], strict=True)
    ]


def job_of(task: Task) -> str:
    """Its namespace and controller; of a pod without one, whose job is itself, the kind of its work."""
    alone = task.job in ("", task.uid)
    return f"{task.namespace}/{task.workload if alone else task.job}"
