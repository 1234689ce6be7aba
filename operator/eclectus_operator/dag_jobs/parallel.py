"""How many more pods of a job and of its stages `maxParallel` allows. Pure.

A limit is a promise to something outside, such as a database or a number of licences. So every pod counts
that has not ended: also one that waits, one that is being deleted, and the copy of one that straggles. What
exists when a limit is lowered goes on.

    a pod group   gets all the pods that it lacks, or none: with a part of them it would hold its places
                  and never start. While it lacks places of the job, no pod of another stage is created
                  but of groups that do fit, so it gets them as soon as what runs has ended
    other stages  get the places of the job one by one, first the one with the fewest pods: a stage whose
                  pods find no node does not take those that become free
    copies        get what is left then: no task waits for the copy of another one to be made
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple, Protocol

from eclectus.api.dag_job import DagJob, Stage


class StagePods(Protocol):
    """The pods of a stage, as far as limits concern them."""

    @property
    def stage(self) -> Stage:
        """The stage."""

    @property
    def unended(self) -> int:
        """How many of them have not ended."""


class Asked(NamedTuple):
    """A stage that is ready, and how many pods it would be given without a limit."""

    stage: str
    unended: int  # its pods that have not ended
    pods: int
    is_gang: bool = False


@dataclass
class Rooms:
    """How many more pods there may be of the job, and of each stage with a limit; inf: no limit."""

    of_job: float
    of_stages: dict[str, float]

    @classmethod
    def of(cls, job: DagJob, tasks: Mapping[str, StagePods]) -> Rooms:
        """What is left beside the pods that have not ended."""
        most = job.spec.max_parallel
        of_job = inf if most is None else most - sum(each.unended for each in tasks.values())
        limits = ((each, each.stage.max_parallel) for each in tasks.values())
        return cls(
            of_job, {each.stage.name: most - each.unended for each, most in limits if most is not None}
        )

    def take(self, stage: str) -> bool:
        """Take the place of one pod; False if there is none."""
        if min(self.of_job, self.of_stages.get(stage, inf)) < 1:
            return False
        self.of_job -= 1
        if stage in self.of_stages:
            self.of_stages[stage] -= 1
        return True

    def share(self, asked: Iterable[Asked]) -> dict[str, int]:
        """How many of the pods that stages ask for may be created now, by stage."""
        others, found, left, is_group_waiting = list[Asked](), dict[str, int](), self.of_job, False
        for each in asked:
            of_stage = self.of_stages.get(each.stage, inf)
            if not each.is_gang:
                others.append(each._replace(pods=int(max(0, min(each.pods, of_stage)))))
            elif each.pods <= min(left, of_stage):
                found[each.stage], left = each.pods, left - each.pods
            else:
                found[each.stage], is_group_waiting = 0, is_group_waiting or each.pods > left
        return found | _in_turn(others, 0 if is_group_waiting else left)


def allowed(job: DagJob, tasks: Mapping[str, StagePods], asked: Iterable[Asked]) -> dict[str, int]:
    """How many of the pods that stages ask for may be created now, by stage."""
    return Rooms.of(job, tasks).share(asked)


def _in_turn(asked: list[Asked], places: float) -> dict[str, int]:
    """The places one by one, each to the stage that has the fewest pods then."""
    if places >= sum(each.pods for each in asked):
        return {each.stage: each.pods for each in asked}
    given = [0] * len(asked)
    queue = [(each.unended, at) for at, each in enumerate(asked) if each.pods]
    heapify(queue)
    while queue and sum(given) < places:
        pods, at = heappop(queue)
        given[at] += 1
        if given[at] < asked[at].pods:
            heappush(queue, (pods + 1, at))
    return {each.stage: count for each, count in zip(asked, given, strict=True)}
