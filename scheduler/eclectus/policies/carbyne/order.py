"""Carbyne's order: first what jobs must start now to end in time in their shares, then what others leave.

R. Grandl, M. Chowdhury, A. Akella, G. Ananthanarayanan, "Altruistic Scheduling in Multi-Resource Clusters",
OSDI 2016. Every job has a fair share of the cluster (DRF), plans its remaining stages in it, and starts only
what must start now for its end not to be later; it lends the rest. What is lent, and what nobody is entitled
to, goes to the job with the least remaining work, larger tasks first (`leftover` has other ways).

    rank of a stage = (-priority, 0, used part of the share, latest start, -size)   if due within the share
                      (-priority, 1, remaining work, -size)                         otherwise
                      withheld                                 if it would take what is needed again

Departures:
- deadlines are absolute (`maths/dag_plan.py`). They move to a later time only when the share shrinks
  or work is lost; such slips are counted. They move to an earlier time only as the dominant share grows: a
  job that has gained time with room of others lends that time too, but for the
  tenth of the jobs with the latest deadlines, on which the end of all work depends. A plan made anew from the
  present at each event, as in the paper, passes over what was lost before and keeps what was gained.
- latest starts come from moving the forward schedule to the right (`maths/dag_plan`): the paper packs
  the reversed job, which may be longer or shorter than the schedule, and line 20 has the wrong sign.
- the forward schedule takes the stage with the longest path first. The paper packs it by Tetris' score,
  which is a choice of `intra`; of that score only the alignment is left within one job.
- of what is left over a job's largest task is first, by the length of its demand (`leftover: srtf`). The
  paper compares how well tasks fill what is left, after the remaining work or before it (`srtf-packing`,
  `packing`). With these what is free is added up over all nodes, because an order names a task before a node
  is known, and is that of the last time when it changed by more than a quarter (`leftover`).
- due tasks are clipped to the share less what the job holds; a first task may exceed a smaller share.
- a due task that no node has room for is first wherever one gets room, but smaller tasks that fit meanwhile
  go before it. After `reserve_after` one node is kept free for it, as Tetris (2014) keeps a machine for a
  task that starves. The paper does not say what happens to such tasks.
- nothing is preempted: with `overhang: free`, as in the paper, a job may end later than in its share, by up
  to one longest task for each of its tasks that become due. With `bounded` no start before its time may delay
  what plans have booked (`bookings`, which has the theorem), and a plan goes on unless a new one is as good.
- what a job keeps of its share it fills in the order of latest starts: the order of its plan.
- a job is planned again when one of its tasks has ended or failed, or its share has changed by a twentieth.
  The paper does so for every job at every event.
- P(altruism) is drawn for the room that has become free, and only where a task could start in it; the paper's
  draw at each event is for the whole job (`lent_room`).
- a job that is alone, or of which a run time is unknown, lends nothing.
- a job with `altruism: 0` still gets what is left over, so it is DRF only with `leftover: none`.
- tasks that are due are not packed: the job that uses the least part of its share is first, and of its tasks
  the largest. The paper has a score of Tetris with the job's own priorities, machine by machine.
- a task becomes due at its latest start. The paper looks at latest starts only when something happens.
- what running tasks hold is free again in a plan at their expected ends, and the run times of a plan are
  those on the nodes that may run the stage, by learned speeds.
- of large jobs groups of tasks are planned (`maths/dag_plan`, GRAINS).
- of many resources the 32 that were seen first are shared.
- a share follows the remaining work, weighted by run time; the paper takes the mean demand of all tasks. A
  job has no share of what is of no use to it: others have that as a share, and not only as what is left over.
- pods of no DAG job share as one job a namespace, and services keep what they hold; probes do not share.
- `spec.priority` is compared first, as everywhere in Kubernetes. Where there are Pools it is compared among
  tasks that are due in the shares of their pools, so that no tenant's priorities take another's share.
- where there are Pools shares are theirs (`shares_by_pool`), and a pool may lend less (`spec.altruism`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from typing_extensions import override

from eclectus.cluster.changelog import ChangeLog
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import JobPlanner, Nominate, OrderTraits, Reason, Refused, View, Wait
from eclectus.maths.stage_rank_rules import STAGE_ORDERS
from eclectus.model.job import JobPlan
from eclectus.model.objects import Task
from eclectus.model.settings import setting
from eclectus.policies.carbyne.bookings import FOREVER, Booking
from eclectus.policies.carbyne.leftover import LeftOver
from eclectus.policies.carbyne.paces import node_paces
from eclectus.policies.carbyne.planned_job import (
    PROBES,
    PlannedJob,
    Vector,
    account_of,
    fits_beside,
    path_of,
    size_of,
    time_left,
    used_part,
)
from eclectus.policies.carbyne.planner import Planner

# The nodes that are kept free for due tasks which have found no room for long.
#
# What a reservation costs others is bounded: it counts as held by its job, so it stays within the job's
# share; a job has one at a time; and all of them together take a small part of the nodes.

NODES_MOST = 32  # compared by the ends of their pods: those that lack least


def node_with_room_soonest(view: View, task_class: TaskClass) -> tuple[int, float] | None:
    """The row that is expected to have room first, and when, seconds; None if no end of pods makes room.

    Where no end is known (inf), the node that lacks least. Nodes on which room is held for others are left
    out.
    """
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")][: 2 * NODES_MOST].tolist()
    placed = view.placed
    without_others = [
        row for row in nearest if not any(placed.is_nominated(pod.uid) for pod, _ in placed.on_row(row))
    ][:NODES_MOST]
    paces = node_paces(view, task_class) if without_others else ()
    times = {row: room_at(view, task_class, row, paces[row]) for row in without_others}
    found = [(row, at) for row, at in times.items() if at is not None]
    return min(found, key=lambda each: each[1], default=None)  # of equal times the first


def room_at(
    view: View, task_class: TaskClass, row: int, pace: float, task: Task | None = None
) -> float | None:
    """When the pods on a row are expected to have left room for a task of the class, seconds.

    By their estimates, over the node's `pace` for the class; inf where the end of one is unknown, None where
    services are in the way. `task`: one that is nominated to the node itself.
    """
    room, ends = RoomWithout(task_class, row), list[tuple[float, Task]]()
    for pod, since in view.placed.on_row(row):
        if task is not None and pod.uid == task.uid:
            room.remove(pod)
        elif not pod.spec.long_running and not view.placed.is_nominated(pod.uid):
            run_seconds = inf if pod.estimate is None or pace <= 0.0 else pod.estimate / pace
            seconds = run_seconds + view.learn.turnaround(pod.workload)
            ends.append((view.now + time_left(seconds, view.now, since), pod))
    for end, pod in sorted(ends, key=lambda each: each[0]):
        room.remove(pod)
        if room.fits:
            return end
    return None


NODES_PART = 0.1  # of all nodes, that are kept free at a time; one at least
# A node is kept free for this time, or for so many times what room is expected to take if that is longer.
LEAST_SECONDS, MOST_TIMES = 300.0, 2.0


class _Reservation(NamedTuple):
    task: str  # uid
    node: str
    until: float  # seconds


class _Wait(NamedTuple):
    task: str  # uid of the first task of a stage
    since: float  # when it was first found to be due and without room, seconds


class ReservedNodes:
    """The tasks for which nodes are kept free, and since when others have waited for one.

    `after`: how long a due task finds no room before a node is reserved for it, seconds.
    """

    def __init__(self, planner: Planner, after: float) -> None:
        self._planner = planner
        self._after = after
        self._waits: dict[str, dict[int, _Wait]] = {}  # by job and stage
        self._reserved: dict[str, _Reservation] = {}  # by job

    def reserve(self, view: View, refused: Refused) -> Iterator[Nominate]:
        """Reserve a node for each job of which the first task has waited for long enough."""
        self._forget_ended(view)
        for task in refused.tasks:
            if not self._has_waited(view, task) or not self._may_reserve(view, task):
                continue
            found = node_with_room_soonest(view, view.task_class(task))
            if found is None:
                return  # nor would any node have room for another task of the class
            self._set(view, task, *found)
            yield Nominate(task, found[0])

    def keeps(self, view: View, task: Task, row: int) -> bool:
        """Whether the node of this row is still kept free for the task, which is nominated to it."""
        self._forget_ended(view)
        found = self._planner.stage_of(view, task)
        if found is None:
            return False
        if self._may_reserve(view, task):  # of a process before, of which only the task's status tells
            task_class = view.task_class(task)
            at_time = room_at(view, task_class, row, node_paces(view, task_class)[row], task)
            if at_time is not None:
                self._set(view, task, row, at_time)
        reservation = self._reserved.get(task.job)
        if reservation is None or reservation.task != task.uid:
            return False
        job, at = found
        is_due = job.known.is_ready(job.known.stages[at]) and not job.known.job.suspended
        held = self._planner.offered.vector(task.spec.requests)  # which need not be what its stage says
        if is_due and job.has_share_for(at, held) and view.now < reservation.until:
            return True
        del self._reserved[task.job]
        self._waits.setdefault(task.job, {})[at] = _Wait(task.uid, view.now)
        return False

    def placed(self, task: Task) -> None:
        """The task is bound, to the node that was reserved for it or to another."""
        reservation = self._reserved.get(task.job)
        if reservation is not None and reservation.task == task.uid:
            del self._reserved[task.job]
            self._planner.changed_plans.record(task.job)

    def node_for(self, view: View, job: str) -> str:
        """The node that is kept free for a task of the job; empty for none."""
        reservation = self._reserved.get(job)
        if reservation is None or not view.placed.is_nominated(reservation.task):
            return ""
        return reservation.node

    def _set(self, view: View, task: Task, row: int, at: float) -> None:
        """Reserve the node of this row. `at`: when it should have room, seconds; inf if that is unknown."""
        expected = 0.0 if at == inf else MOST_TIMES * (at - view.now)
        until = view.now + max(expected, LEAST_SECONDS)
        self._reserved[task.job] = _Reservation(task.uid, view.cluster.names[row], until)

    def _may_reserve(self, view: View, task: Task) -> bool:
        """Whether the job of the task has no node yet, and all jobs have few."""
        most = max(int(len(view.cluster) * NODES_PART), 1)
        return task.job not in self._reserved and len(self._reserved) < most

    def _has_waited(self, view: View, task: Task) -> bool:
        """Whether the task, which has no room now, has been due without room for long enough."""
        found = self._planner.stage_of(view, task)
        if found is None:
            return False
        job, at = found
        waits = self._waits.setdefault(task.job, {})
        if job.known.job.suspended or not (job.has_share_for(at) and job.due(at, view.now)):
            waits.pop(at, None)
            return False
        if at not in waits or waits[at].task != task.uid:
            waits[at] = _Wait(task.uid, view.now)
        return view.now - waits[at].since >= self._after

    def _forget_ended(self, view: View) -> None:
        """Reservations whose tasks are not nominated any more, and jobs that are gone."""
        for job in [job for job, each in self._reserved.items() if not view.placed.is_nominated(each.task)]:
            del self._reserved[job]
        if len(self._waits) > len(self._planner.jobs):
            self._waits = {job: each for job, each in self._waits.items() if job in self._planner.jobs}


DUE, LEFT_OVER = 0, 1
RETRY_SECONDS = 5.0  # after which what is withheld is asked about again although nothing has changed

STRICT = Reason("its job may start no more of its tasks now: what is left over is given to nobody")
NEW_JOB = Reason("its job is new or defined anew, and is planned in one of the next steps")
OVERHANG = Reason("the room is needed again before this pod would end: by its own job, or by others")


@dataclass(eq=False)
class Carbyne(JobPlanner):
    """Priority, then what is due within its job's share, then the job with the least remaining work."""

    altruism: float = setting(
        1.0,
        "probability with which a job lends what it need not start now, times its own `spec.altruism`",
        why="the paper's default; the gain grows with it",
        least=0,
        most=1,
    )
    leftover: Literal["srtf", "srtf-packing", "packing", "none"] = setting(
        "srtf",
        "who gets what is left over: the job with the least remaining work and of it the largest task (srtf) "
        "or, as in the paper, the task that fills best what is left (srtf-packing); first that task and of "
        "equal ones the job with the least remaining work (packing); or nobody (none)",
        why="a size does not change with what is free, so a bind changes the ranks of no other tasks; none, "
        "with altruism 0, is strict fair sharing, for comparison",
    )
    overhang: Literal["free", "bounded"] = setting(
        "free",
        "whether a task may start before its time only if it delays nothing that plans have booked",
        why="as in the paper. bounded keeps jobs that come together within the times of their shares, as far "
        "as estimates hold; in three runs each of 30 jobs mean completion times differed by less than 1 %, "
        "and 200 jobs at once took six times the processor time",
    )
    intra: Literal["cp", "bfs", "dagps", "tetris"] = setting(
        "cp",
        "which of a job's ready stages is planned first: that of the longest path to the job's end (cp), "
        "the one with the fewest stages before it (bfs), what is hard to pack (dagps), or what fits best "
        "into what is free of the share (tetris, as in the paper)",
        why="plans by dagps are 1 to 2 % shorter, but the first of a job takes some milliseconds",
    )
    by: Literal["namespace", "job"] = setting(
        "namespace",
        "what has equal shares: namespaces, and jobs within them, or all jobs; with `namespace`, Pools where "
        "there are any, as their weights and minima say",
        why="a tenant gains nothing by dividing its work into more jobs",
    )
    reserve_after: float = setting(
        30.0,
        "for how long a due task finds no room before one node is kept free for it; 0: none is",
        why="TPC-H's queries, whose tasks are alike, never come to it; beside small tasks of 7 to 12 s a "
        "large one waited 37 s instead of 72, and they took 0.3 % longer",
        unit="s",
        least=0,
    )

    def __post_init__(self) -> None:
        self._planner = Planner(
            self,
            self.altruism,
            by_namespace=self.by == "namespace",
            is_bounded=self.overhang == "bounded",
            stage_order=STAGE_ORDERS[self.intra],
        )
        self._reserved_nodes = ReservedNodes(self._planner, self.reserve_after)
        self._left_over = LeftOver()
        self._traits = OrderTraits(
            needs_one_at_a_time=True,
            ranks_by_time=self.overhang == "bounded",
            ranks_by_path=True,
            withholds=True,
            reserves_nodes=self.reserve_after > 0.0,
            needs=frozenset({"jobs", "shares", "binds"}),
        )

    @property
    def traits(self) -> OrderTraits:
        """What is due, `changes` tells; whether a start above a share would end in time, only the time."""
        return self._traits

    @override
    def counted_by(self, task: Task) -> str:
        return account_of(task)

    def group(self, task: Task) -> str:
        """The stage, below its job and namespace."""
        path = path_of(task)
        return path if path == PROBES else f"{path}/{task.stage}"

    def changes(self, view: View) -> ChangeLog[str]:
        """Shares and plans are brought up to date; the jobs whose tasks may have other ranks."""
        self._update(view)
        return self._planner.changes

    def plans(self, view: View) -> Iterator[tuple[str, JobPlan]]:
        """The plans that have changed."""
        self._update(view)
        for uid, plan in self._planner.changed_plans.take(self._planner.jobs, self._planner.offered):
            yield uid, replace(plan, reserved_node=self._reserved_nodes.node_for(view, uid))

    def _update(self, view: View) -> None:
        """Bring shares and plans up to date, and what is left over where ranks follow it."""
        self._planner.update(view)
        if self.leftover in ("srtf-packing", "packing"):
            offered = self._planner.offered
            held = offered.vector(view.shares(self).held("").items())
            for group in self._left_over.update(held, offered.capacity):
                self._planner.changes.record(group)

    @property
    def is_behind(self) -> bool:
        """Whether jobs that have changed are left to the next step."""
        return self._planner.is_behind

    def placed(self, view: View, task: Task, row: int) -> None:
        """A reserved node has served its purpose."""
        self._reserved_nodes.placed(task)

    def reserve_nodes(self, view: View, refused: Refused) -> Iterator[Nominate]:
        """For due tasks that have found no room for `reserve_after`."""
        self._update(view)
        return self._reserved_nodes.reserve(view, refused)

    def keeps_node(self, view: View, task: Task, row: int) -> bool:
        """While the job's share holds the task, until a time by which there should have been room."""
        self._update(view)
        return self._reserved_nodes.keeps(view, task, row)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        """Due within the share, left over, or withheld."""
        found = self._planner.stage_of(view, head)
        if found is None and head.job in self._planner.new_jobs:
            return Wait(NEW_JOB, view.now + RETRY_SECONDS)
        if found is None:
            return self._rank_plain(view, group, head)
        job, at = found
        now, has_share = self._planner.now, job.has_share_for(at)
        is_due, free_at = has_share and job.due(at, now) > 0, now
        if self.overhang == "bounded":
            is_due, free_at = self._is_due_beside(group, job, at, is_due=is_due)
        if is_due:
            # What is due of a job that lends all must start now, the largest task, hardest to place, first.
            latest_start = -inf if job.lent_room.is_all else job.latest_start(at)
            used = used_part(job.usage, job.share)
            return (*self._first(head), DUE, *self._later(head), used, latest_start, -job.sizes[at])
        if self.leftover == "none":
            starts = (job.next_start(now) if has_share else inf, free_at)
            retry = now + RETRY_SECONDS if has_share else inf
            return Wait(STRICT, min((start for start in starts if start > now), default=retry))
        if free_at > now:
            return Wait(OVERHANG, free_at)
        return self._rank_left_over(group, head, job.work_left(), job.demands[at], job.sizes[at])

    def _first(self, head: Task) -> tuple[float, ...]:
        """By what a task is ranked before its share: its priority, and where there are Pools only those of
        the system's own."""
        return (0.0,) if head.pool and self._planner.by_pool else (-head.priority,)

    def _later(self, head: Task) -> tuple[float, ...]:
        """Where there are Pools, its priority: it counts among what is due, and among equals."""
        return (-head.priority,) if self._planner.by_pool else ()

    def _is_due_beside(self, group: str, job: PlannedJob, at: int, *, is_due: bool) -> tuple[bool, float]:
        """Whether a task of a stage is due beside what is booked, and when it may start, seconds.

        The latter is now, or when to ask again. `is_due`: whether the job wants to start it and its share
        holds it.
        """
        now, seconds = self._planner.now, job.seconds[at]
        has_come = job.latest_start_has_come(at, now)
        if (has_come and job.has_share_for(at)) or (is_due and job.plan is None):
            return True, now  # this is booked itself
        self._planner.beside[group] = None
        moved = job.booking_of_next(at, now)
        booking = Booking(now, FOREVER if seconds is None else now + seconds, job.demands[at])
        free_at = self._planner.bookings.free_at(booking, moved)
        if free_at <= now and (is_due or has_come):
            return True, now
        if free_at <= now and self.leftover != "none":
            return False, now
        later = free_at, inf if moved is None else moved.start
        return False, min((each for each in later if each > now), default=inf)

    def _rank_plain(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        """Of a pod that belongs to no DAG job."""
        if group == PROBES:
            return (-head.priority, DUE, 0.0, 0.0)
        demand = self._planner.offered.vector(head.spec.requests)
        pods = self._planner.plain.by_path.get(path_of(head))
        if pods is not None and (not any(pods.usage) or fits_beside(demand, pods.usage, pods.share)):
            used = used_part(pods.usage, pods.share)
            return (*self._first(head), DUE, *self._later(head), used, inf)
        if self.leftover == "none":
            return Wait(STRICT, inf)
        if self.overhang == "bounded":
            self._planner.beside[group] = None
            end = FOREVER if head.estimate is None else view.now + head.estimate
            free_at = self._planner.bookings.free_at(Booking(view.now, end, demand))
            if free_at > view.now:
                return Wait(OVERHANG, free_at)
        return self._rank_left_over(group, head, inf, demand, size_of(demand, self._planner.offered.capacity))

    def _rank_left_over(
        self, group: str, head: Task, work: float, demand: Vector, size: float
    ) -> tuple[float, ...]:
        """Of what is not due: by the remaining work of its job, and by packing."""
        if self.leftover == "srtf":
            return (*self._first(head), LEFT_OVER, work, *self._later(head), -size)
        alignment = self._left_over.alignment(group, demand, self._planner.offered.capacity)
        if self.leftover == "srtf-packing":
            return (*self._first(head), LEFT_OVER, work, *self._later(head), -alignment)
        return (*self._first(head), LEFT_OVER, -alignment, work, *self._later(head))
