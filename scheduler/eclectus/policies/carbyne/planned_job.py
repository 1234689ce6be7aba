"""One DAG job in its share: its plan, what of it is due and what it lends; and the shares of all."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf, log2, sqrt
from operator import itemgetter, mul
from typing import ClassVar, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.accounts.group_shares import GroupShares
from eclectus.accounts.known_jobs import KnownJob, StageCounts
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.framework import Amounts, Task
from eclectus.maths.dag_plan import WAVES_MOST, Chunk, Deadline, Plan, StageLeft, planned
from eclectus.maths.fair_shares import Path, hierarchical_shares, pool_tree
from eclectus.maths.numbers import Floats
from eclectus.maths.stage_rank_rules import StageOrder
from eclectus.policies.carbyne.bookings import FOREVER, SAME, Booking, Bookings
from eclectus.policies.carbyne.lent_room import LentRoom

# The shares of DAG jobs and of the pods beside them, and amounts by resource in one order.

Vector = tuple[float, ...]
"""Amounts by resource, in an order that its owner knows."""


def used_part(usage: Vector, share: Vector) -> float:
    """How much of a share is used: the largest part of any resource that the share has."""
    return max((used / most for used, most in zip(usage, share, strict=True) if most), default=0.0)


def added(one: Vector, other: Vector) -> Vector:
    """The sum of two vectors."""
    return tuple(map(float.__add__, one, other))


def magnitude(amount: float) -> int:
    """Equal for amounts that differ by less than a fifth or so: shares follow these, and not every pod."""
    return round(4.0 * log2(1.0 + amount))


class Offered(NamedTuple):
    """The resources that nodes offer, and how much of each all nodes have."""

    resources: tuple[str, ...] = ()
    capacity: Vector = ()

    def vector(self, amounts: Iterable[tuple[str, int]]) -> Vector:
        """Amounts in the order of `resources`; of resources that no node offers nothing."""
        found = dict(amounts)
        return tuple(float(found.get(name, 0)) for name in self.resources)

    def amounts(self, vector: Vector) -> Amounts:
        """The same back, in whole numbers and without those that are 0."""
        named = ((name, int(amount)) for name, amount in zip(self.resources, vector, strict=True))
        return tuple(sorted((name, amount) for name, amount in named if amount))


RESOURCES_MOST = 32  # that are shared: each costs each job, and a kubelet may invent names


def offered_by(cluster: Cluster) -> Offered:
    """What all nodes of a cluster offer together, of the resources that were seen first.

    Places for pods are left out: no plan needs them.
    """
    sums = cluster.allocatable.sum(axis=0)
    found = (name for name, column in cluster.columns.items() if sums[column] > 0 and name != PODS)
    names = tuple(islice(found, RESOURCES_MOST))
    return Offered(names, tuple(float(sums[cluster.columns[name]]) for name in names))


# Pods that belong to no DAG job: those of a namespace, or of a pool, share as one job that lends nothing.
#
# Services are among them, because only the creator says that a pod does not end; they keep what they hold.
# A probe requests nothing and takes no part; one that requests something counts to its namespace, where
# anybody may have given it the label.

PROBES = "-"  # the path of pods that take part in no sharing; no namespace has this name
SERVICES = "-"  # is added to the path of a namespace's pods: what its services hold is counted there
POOL = ":"  # begins the path of a pool's pods; no namespace has it in its name


def path_of(task: Task) -> str:
    """The path by which a task is ranked: `namespace/job`.

    Of pods that belong to no DAG job `namespace/`, and where they are in a pool `:path/of/the/pool/`.
    """
    if task.spec.probe and all(name == PODS for name, _ in task.spec.requests):
        return PROBES
    if task.pool and not (task.job and task.stage):
        return f"{POOL}{task.pool}/"
    return f"{task.namespace}/{task.job if task.stage else ''}"


def account_of(task: Task) -> str:
    """The path by which a task is counted: services have one of their own."""
    path = path_of(task)
    return path + SERVICES if task.spec.long_running and path.endswith("/") else path


@dataclass(eq=False, slots=True)
class PodsOfNamespace:
    """Or of a pool: what they wait for and hold, what of that its services hold, and their share."""

    waiting: Vector
    usage: Vector
    services: Vector
    share: Vector
    weight: ClassVar = 1.0

    @property
    def claims(self) -> Vector:
        """What shares follow."""
        return *added(self.waiting, self.usage), *self.services

    def remaining(self) -> tuple[Vector, Vector]:
        """As of a job: work, of which no run time is known, and what is useful to it of each resource."""
        wanted = added(self.waiting, self.usage)
        return wanted, wanted


class PlainPods:
    """By path, `namespace/`; and the paths of which a pod waits for something."""

    def __init__(self) -> None:
        self.by_path: dict[str, PodsOfNamespace] = {}  # sorted, so that sums are always of one order
        self.waiting: set[str] = set()

    def count(
        self, shares: GroupShares, offered: Offered, accounts: Iterable[str]
    ) -> tuple[list[str], bool, bool]:
        """Count those of these accounts anew.

        Returns the paths whose amounts have changed, whether any has other claims, and whether by enough to
        share again.
        """
        changed, is_other, differs, are_new = list[str](), False, False, False
        ends = "/", "/" + SERVICES
        for path in sorted({each.removesuffix(SERVICES) for each in accounts if each.endswith(ends)}):
            old, new = self.by_path.get(path), self._count(path, shares, offered)
            before, after = (() if each is None else each.claims for each in (old, new))
            is_other = is_other or before != after
            differs = differs or [*map(magnitude, before)] != [*map(magnitude, after)]
            are_new = are_new or old is None
            if new is not None and (old is None or (old.waiting, old.usage) != (new.waiting, new.usage)):
                changed.append(path)
        if are_new:
            self.by_path = dict(sorted(self.by_path.items(), key=itemgetter(0)))
        return changed, is_other, differs

    def _count(self, path: str, shares: GroupShares, offered: Offered) -> PodsOfNamespace | None:
        """None if there are no pods any more."""
        accounts = path, path + SERVICES
        if not any(shares.waiting(each) or shares.held(each) for each in accounts):
            self.by_path.pop(path, None)
            self.waiting.discard(path)
            return None
        waiting = added(*(offered.vector(shares.waiting(each).items()) for each in accounts))
        of_tasks, services = (offered.vector(shares.held(each).items()) for each in accounts)
        old, share = self.by_path.get(path), (0.0,) * len(waiting)
        if old is not None and len(old.share) == len(share):
            share = old.share
        found = PodsOfNamespace(waiting, added(of_tasks, services), services, share)
        self.by_path[path] = found
        (self.waiting.add if any(waiting) else self.waiting.discard)(path)
        return found


# One DAG job in its share: its plan, its deadline, what of it is due, and what it leaves to others.

RESIDUAL = 0.1  # of its estimate, for a running task that has exceeded it
TOLERANCE = 1e-9  # of a share: shares are divided, demands are whole numbers


class PlannedJob:
    """A job as of its last plan. Changed by the planner only.

    `share`: what it is entitled to; `planned_share`: when it was planned. `usage`: what its pods hold.
    `seconds`: by stage, how long a task is expected to run; None where that is unknown. `stage_order`: which
    stage is planned first.
    """

    def __init__(
        self, known: KnownJob, capacity: Vector, vector: Callable[[Amounts], Vector], stage_order: StageOrder
    ) -> None:
        self.known = known
        job = known.job
        self._capacity = capacity
        self.path = f"{job.namespace}/{job.uid}"
        self.demands = [vector(stage.spec.requests) for stage in job.stages]
        self._by_resource = [[each[at] for each in self.demands] for at in range(len(capacity))]
        self.sizes = [size_of(demand, capacity) for demand in self.demands]
        self.seconds: Sequence[float | None] = [stage.seconds for stage in job.stages]
        self.share: Vector = (0.0,) * len(capacity)
        self.weight = job.weight
        self.services = self.share  # of which it has none: its tasks end
        self.may_exceed = True  # whether the share holds a first task that is larger than it
        self.pool = ""  # in which it shares, where there are Pools
        self.usage: Vector = self.share
        self.plan: Plan | None = None
        self.deadline = Deadline(inf if job.deadline is None else job.deadline, job.slips, job.slip_seconds)
        self.signature: tuple[object, ...] = ()  # what of it makes that all shares are computed again
        self.claims: tuple[object, ...] = ()  # what of it they follow then
        self._stage_order = stage_order
        self._ranks: Sequence[float] | None = None  # of its stages, since its first plan: they may cost much
        self.lent_room = LentRoom()
        self.lends_gains = True  # the time that it has gained with room of others, too
        self.counts = self.count()
        # What `remaining` has found, after the counts and the seconds that it is for.
        self._remaining: tuple[object, object, tuple[Vector, Vector]] | None = None
        self.planned_limit = job.max_parallel  # of tasks at a time, with which it was planned
        self._planned_at = 0.0  # seconds
        self.planned_share = self.share
        self._to_start = [0] * len(job.stages)  # at that time
        self._dues: dict[int, int] = {}  # by stage, of the plan, up to `_dues_until`
        self._dues_until = -inf  # seconds

    def count(self) -> tuple[StageCounts, ...]:
        """By stage."""
        return tuple([each.counts for each in self.known.stages])

    def takes_other_limit(self) -> bool:
        """Whether another number of tasks may run at a time than when it was planned, as from now on."""
        before, self.planned_limit = self.planned_limit, self.known.job.max_parallel
        return before != self.planned_limit

    @property
    def wants_more(self) -> bool:
        """Whether there are tasks to start."""
        return any(each.to_start for each in self.counts) and not self.known.job.suspended

    def remaining(self) -> tuple[Vector, Vector]:
        """The resources of all its remaining tasks, added up: weighted by run time, and as they are."""
        known = self._remaining
        if known is not None and known[0] is self.counts and known[1] is self.seconds:
            return known[2]
        worth = [1.0 if None in self.seconds else seconds or 0.0 for seconds in self.seconds]
        work = [0.0] * len(self.share)
        for at, count in enumerate(self.counts):
            tasks = count.to_start + count.on_nodes
            for resource, amount in enumerate(self.demands[at]):
                work[resource] += tasks * amount * worth[at]
        found = tuple(work), self._useful()
        self._remaining = self.counts, self.seconds, found
        return found

    def _useful(self) -> Vector:
        """The resources of all its remaining tasks; of no more than may run at a time, the largest."""
        tasks, of_job = list[int](), self.known.job.max_parallel
        for stage, count in zip(self.known.job.stages, self.counts, strict=True):
            left, most = count.to_start + count.on_nodes, stage.max_parallel
            tasks.append(left if most is None else min(left, max(most, count.on_nodes)))
        if of_job is not None:
            of_job = max(of_job, sum(count.on_nodes for count in self.counts))
        return self._most_of(tasks, of_job)

    def _most_of(self, tasks: Sequence[int], most: int | None) -> Vector:
        """Of each resource what so many tasks of each stage request, at most `most` of all: the largest."""
        if most is None or sum(tasks) <= most:
            return tuple(self._requests(tasks))
        found = []
        for amounts in self._by_resource:
            left, total = most, 0.0
            for amount, count in sorted(zip(amounts, tasks, strict=True), reverse=True):
                taken = min(count, left)
                left, total = left - taken, total + taken * amount
            found.append(total)
        return tuple(found)

    def work_left(self) -> float:
        """Work of its tasks that have not started: sizes times seconds; inf if an estimate is missing."""
        left = 0.0
        for at, count in enumerate(self.counts):
            seconds = self.seconds[at]
            if count.to_start:
                left += inf if seconds is None else count.to_start * seconds * self.sizes[at]
        return left

    def replan(
        self,
        now: float,
        since: Callable[[str], float | None],
        *,
        work_lost: bool,
        beside: Bookings | None = None,
    ) -> None:
        """Plan what remains. `since`: since when a pod runs. `work_lost`: tasks that had started failed.

        `beside`: the bookings of all. Where they are given, a new plan that ends later, or has no room beside
        them, is dropped if what remains can go on as planned before.
        """
        excused = self._has_shrunk() or work_lost
        goes_on = beside is not None and not excused and self.follows_plan(now, since)
        before = self.plan, self._planned_at, self.planned_share, self._to_start, self.deadline
        finish = self._plan_anew(now, since, excused=excused)
        if goes_on and beside is not None:
            is_later = finish > self.deadline.at + SAME
            if is_later or not beside.allow(self.known.job.uid, self.bookings(now, since)):
                self.plan, self._planned_at, self.planned_share, self._to_start, self.deadline = before

    def _plan_anew(self, now: float, since: Callable[[str], float | None], *, excused: bool) -> float:
        """Returns when the plan ends, seconds; inf if there is none because a run time is unknown."""
        is_first = not any(self.planned_share)
        dominant, before = (used_part(each, self._capacity) for each in (self.share, self.planned_share))
        growth = inf if is_first else dominant / before
        stages = self._stages_left(now, since)
        if stages is not None and self._ranks is None:
            self._ranks = self._stage_order.ranks(stages, self.share)
        by_alignment = self._stage_order.by_alignment
        self.plan = (
            None
            if stages is None
            else planned(stages, self.share, self._ranks, by_alignment=by_alignment, most=self.planned_limit)
        )
        self._planned_at, self.planned_share = now, self.share
        self._dues_until = -inf
        self._to_start = [each.to_start for each in self.counts]
        if self.plan is None:
            return inf
        finish = now + self.plan.finish_seconds
        self.deadline = self.deadline.replanned(now, finish, growth=growth, excused=excused)
        return finish

    def _has_shrunk(self) -> bool:
        """Whether the share is smaller than planned, and not only because less is useful to the job."""
        useful = self.remaining()[1]
        return any(
            new < min(old, most) * (1.0 - TOLERANCE)
            for new, old, most in zip(self.share, self.planned_share, useful, strict=True)
        )

    def _stages_left(self, now: float, since: Callable[[str], float | None]) -> list[StageLeft] | None:
        """What remains; None if the run time of a stage of which something remains is unknown."""
        stages = []
        for at, stage in enumerate(self.known.stages):
            seconds = self.seconds[at]
            if seconds is None:
                if not stage.counts.is_done:
                    return None
                seconds = 0.0
            running = Counter(time_left(seconds, now, since(uid)) for uid in stage.on_nodes)
            whole, ends = tuple(map(int, self.demands[at])), tuple(running.items())
            parents, most = stage.stage.parents, stage.stage.max_parallel
            stages.append(StageLeft(stage.counts.to_start, whole, seconds, parents, ends, most))
        return stages

    def let_lend_gains(self, *, lends: bool) -> None:
        """Whether it lends the time, too, that it has gained with room of others."""
        self.lends_gains, self._dues_until = lends, -inf

    def _elapsed(self, now: float) -> float:
        """The time of the plan at which the job must be, so that it ends by its deadline. Below 0 while it
        may wait: with room of others it has gained time."""
        plan = self.plan
        late = 0.0 if plan is None else self._planned_at + plan.finish_seconds - self.deadline.at
        return now - self._planned_at + (late if self.lends_gains else max(late, 0.0))

    def due(self, at: int, now: float) -> int:
        """How many tasks of a stage are to start now: those whose latest start has come, or all if it keeps
        room for one."""
        to_start = self.counts[at].to_start
        if not self.known.is_ready(self.known.stages[at]):
            return 0
        if self.plan is None or self.keeps_room_for(at):
            return to_start
        if now >= self._dues_until:
            self._dues, self._dues_until = self.plan.due(self._elapsed(now)), self.next_start(now)
        return max(min(self._dues.get(at, 0) - self._started(at), to_start), 0)

    def latest_start(self, at: int) -> float:
        """When the next task of a stage must start at the latest, seconds; 0 where run times are unknown."""
        if self.plan is None:
            return 0.0
        found = self.plan.next_of(at, self._started(at))
        return self.deadline.at if found is None else self._plan_zero + found.start

    def latest_start_has_come(self, at: int, now: float) -> bool:
        """Whether a task of a stage must start now for the job to end by its deadline."""
        if self.plan is None or not self.known.is_ready(self.known.stages[at]):
            return False
        return self.latest_start(at) <= now + SAME

    @property
    def _plan_zero(self) -> float:
        """When the plan begins if it is to end at the deadline, seconds."""
        return self.deadline.at - (0.0 if self.plan is None else self.plan.finish_seconds)

    def _started(self, at: int) -> int:
        """How many tasks of a stage have started since the plan."""
        return self._to_start[at] - self.counts[at].to_start

    @property
    def starts_of_plan(self) -> int:
        """How many starts its last plan has; without one, the most that it may get."""
        if self.plan is not None:
            return len(self.plan.latest)
        return sum(min(count.to_start, WAVES_MOST) for count in self.counts)

    def next_booking(self, now: float) -> float:
        """The next latest start by the deadline, seconds; inf for none."""
        start = None if self.plan is None else self.plan.next_start(now - self._plan_zero)
        return inf if start is None else self._plan_zero + start

    def booking_of_next(self, at: int, now: float) -> Booking | None:
        """What the plan has for the next task of a stage; None for nothing."""
        chunk = None if self.plan is None else self.plan.next_of(at, self._started(at))
        if chunk is None or self.known.job.suspended:
            return None
        start = max(self._plan_zero + chunk.start, now)
        return Booking(start, start + chunk.end - chunk.start, self.demands[at])

    def bookings(self, now: float, since: Callable[[str], float | None]) -> list[Booking]:
        """What it holds, and what its plan has still to start; its share for ever if it has no plan."""
        if self.plan is None:
            wanted = added(self.usage, tuple(self._requests([each.to_start for each in self.counts])))
            most = map(max, self.usage, map(min, self.share, wanted))
            return [Booking(-FOREVER, FOREVER, tuple(most))]
        found = []
        for at, stage in enumerate(self.known.stages):
            seconds = self.seconds[at]
            ends = Counter(
                FOREVER if seconds is None else now + time_left(seconds, now, since(uid))
                for uid in stage.on_nodes
            )
            found += [Booking(-FOREVER, end, self._times(at, tasks)) for end, tasks in ends.items()]
        if not self.known.job.suspended:
            for chunk in self._not_started():
                start = max(self._plan_zero + chunk.start, now)
                amounts = self._times(chunk.stage, chunk.tasks)
                found.append(Booking(start, start + chunk.end - chunk.start, amounts))
        return found

    def _times(self, at: int, tasks: int) -> Vector:
        return tuple(tasks * amount for amount in self.demands[at])

    def _not_started(self) -> Iterator[Chunk]:
        """What the plan has still to start: of each stage, the tasks after those that have started."""
        started = [self._started(at) for at in range(len(self.demands))]
        for chunk in () if self.plan is None else self.plan.latest:
            before = min(max(started[chunk.stage], 0), chunk.tasks)
            started[chunk.stage] -= before
            if before < chunk.tasks:
                yield replace(chunk, tasks=chunk.tasks - before)

    def follows_plan(self, now: float, since: Callable[[str], float | None]) -> bool:
        """Whether what remains can go on as planned: no latest start has passed, each is after its parents'
        expected ends, and the plan has all tasks one by one."""
        if self.plan is None:
            return False
        ends, left = [now] * len(self.demands), [0] * len(self.demands)
        for at, stage in enumerate(self.known.stages):
            seconds = self.seconds[at]
            if seconds is None:
                return False
            for uid in stage.on_nodes:
                ends[at] = max(ends[at], now + time_left(seconds, now, since(uid)))
        chunks = list(self._not_started())
        for chunk in chunks:
            left[chunk.stage] += chunk.tasks
            ends[chunk.stage] = max(ends[chunk.stage], self._plan_zero + chunk.end)
        return left == [each.to_start for each in self.counts] and all(
            self._plan_zero + chunk.start + SAME >= max([now, *(ends[of] for of in self._parents(chunk))])
            for chunk in chunks
        )

    def _parents(self, chunk: Chunk) -> Sequence[int]:
        return self.known.stages[chunk.stage].stage.parents

    def next_start(self, now: float) -> float:
        """The next latest start that is not due yet, seconds; inf for none."""
        elapsed = self._elapsed(now)
        start = None if self.plan is None else self.plan.next_start(elapsed)
        return inf if start is None else now + start - elapsed

    def has_share_for(self, at: int, held: Vector = ()) -> bool:
        """Whether its share holds one more task of a stage, or one that has `held`.

        A first may exceed the share if the job may.
        """
        usage = self.usage
        if held:
            usage = tuple(all_ - own for all_, own in zip(usage, held, strict=True))
        return self._holds(at, usage)

    def _holds(self, at: int, usage: Vector) -> bool:
        return (self.may_exceed and not any(usage)) or fits_beside(self.demands[at], usage, self.share)

    def keeps_room_for(self, at: int) -> bool:
        """Whether its share holds one more task of a stage beside what it uses and what it has lent."""
        lent = self.lent_room.amounts
        return lent is not None and self._holds(at, added(self.usage, lent) if lent else self.usage)

    @property
    def keeps_room(self) -> bool:
        """Whether a task that waits could start in what it has not lent."""
        return not self.known.job.suspended and any(
            stage.waiting and self.known.is_ready(stage) and self.keeps_room_for(at)
            for at, stage in enumerate(self.known.stages)
        )

    @property
    def free(self) -> Vector:
        """What it does not use of its share."""
        return tuple(max(share - used, 0.0) for share, used in zip(self.share, self.usage, strict=True))

    def largest_demand(self) -> Vector:
        """Of each resource, the most that one of its tasks requests that are still to start."""
        left = [demand for demand, count in zip(self.demands, self.counts, strict=True) if count.to_start]
        return tuple(map(max, zip(*left, strict=True))) if left else (0.0,) * len(self.share)

    def entitled(self) -> Vector:
        """What it may still take of its share: no more than its tasks that have not started request."""
        wanted = self._requests([each.to_start for each in self.counts])
        amounts = zip(self.share, self.usage, wanted, strict=True)
        return tuple(max(min(share - usage, want), 0.0) for share, usage, want in amounts)

    def lent(self) -> Vector:
        """What it leaves to others of its share: what its ready tasks could take of it and have not taken.

        Whether because the job lends or because others have the room, which they do not give back.
        """
        idle, most = list[int](), self.known.job.max_parallel
        for count, stage in zip(self.counts, self.known.stages, strict=True):
            left, limit = count.to_start, stage.stage.max_parallel
            if left and limit is not None:
                left = min(left, max(limit - count.on_nodes, 0))
            idle.append(left if left and self.known.is_ready(stage) else 0)
        if most is not None:
            most = max(most - sum(count.on_nodes for count in self.counts), 0)
        return tuple(map(min, self._most_of(idle, most), self.entitled()))

    def _requests(self, tasks: Sequence[int]) -> list[float]:
        """What so many tasks of each stage request together."""
        return [sum(map(mul, tasks, demands)) for demands in self._by_resource]


def fits_beside(demand: Vector, usage: Vector, share: Vector) -> bool:
    """Whether a demand fits into a share beside what is used of it."""
    return all(
        amount + used <= most * (1.0 + TOLERANCE) + TOLERANCE or not amount
        for amount, used, most in zip(demand, usage, share, strict=True)
    )


def size_of(demand: Vector, capacity: Vector) -> float:
    """The length of a demand as shares of the cluster (Euclidean norm, as in the authors' code)."""
    return sqrt(sum((amount / most) ** 2 for amount, most in zip(demand, capacity, strict=True) if most))


def time_left(seconds: float, now: float, since: float | None) -> float:
    """How long a task of this run time is still expected to run; `since`: its start, None for none yet."""
    left = seconds if since is None else since + seconds - now
    return max(left, 0.0) if left > -SAME else RESIDUAL * seconds


Sharing = PlannedJob | PodsOfNamespace


def set_shares(
    jobs: Mapping[str, PlannedJob], plain: Mapping[str, PodsOfNamespace], capacity: Vector, by_namespace: bool
) -> None:
    """Set `share` of all jobs and of all plain pods, which are given by path; there are some.

    `by_namespace`: namespaces share equally, and pools and jobs within them; otherwise jobs alone.
    """
    sharing: list[Sharing] = [*jobs.values(), *plain.values()]
    work, most, weights = wants(sharing)
    paths: list[Path] = [()] * len(sharing)
    if by_namespace:  # whose the jobs are, then whose the plain pods
        owners = [(job.known.job.namespace, job.known.job.pool) for job in jobs.values()]
        owners += [(path.partition("/")[0], "") for path in plain]
        paths = [(namespace, pool) if pool else (namespace,) for namespace, pool in owners]
    tree = pool_tree(paths, {})
    shares = hierarchical_shares(work, weights, np.array(capacity), tree, most)
    shares = beside_services(shares, services_of(sharing), np.array(capacity), tree.pool_of)
    for each, share in zip(sharing, shares.tolist(), strict=True):
        each.share = tuple(share)
    for job in jobs.values():
        job.may_exceed = True


def with_other_shares(jobs: Sequence[PlannedJob], part: float) -> list[PlannedJob]:
    """Those whose share differs from the planned one by more than this part of it in any resource.

    All at once: one job more changes the shares of all.
    """
    if not jobs:
        return []
    now, planned = (
        np.array(each) for each in zip(*[(job.share, job.planned_share) for job in jobs], strict=True)
    )
    differ = (abs(now - planned) > part * np.maximum(planned, 1.0)).any(axis=1)
    return [job for job, is_other in zip(jobs, differ.tolist(), strict=True) if is_other]


def wants(sharing: Sequence[Sharing]) -> tuple[Floats, Floats, Floats]:
    """Of each, its remaining work, what is useful to it of each resource, and its weight."""
    remaining = [each.remaining() for each in sharing]
    weights = [each.weight for each in sharing]
    return (
        np.array([work for work, _ in remaining]),
        np.array([most for _, most in remaining]),
        np.array(weights),
    )


def services_of(sharing: Sequence[Sharing]) -> Floats:
    """What services of each hold."""
    return np.array([each.services for each in sharing])


def beside_services(shares: Floats, services: Floats, capacity: Floats, pool_of: NDArray[np.intp]) -> Floats:
    """The shares, none below what services hold: others of the pool give what is lacking first, then all."""
    lacking = np.maximum(services - shares, 0.0)
    if not lacking.any():
        return shares
    kept, giving = np.where(lacking, services, 0.0), np.where(lacking, 0.0, shares)
    needed, given = np.zeros((2, int(pool_of.max()) + 1, len(capacity)))
    np.add.at(needed, pool_of, lacking)
    np.add.at(given, pool_of, giving)
    giving *= _left(given, needed)[pool_of]
    total = giving.sum(axis=0)
    return np.asarray(kept + giving * _left(total, kept.sum(axis=0) + total - capacity))


def _left(amounts: Floats, taken: Floats) -> Floats:
    """The part of the amounts that is left, 0 to 1."""
    found = np.divide(amounts - taken, amounts, out=np.zeros_like(amounts), where=amounts > 0.0)
    return np.asarray(found.clip(0.0, 1.0))
