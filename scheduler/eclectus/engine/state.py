"""All that the engine knows, in one place that the engine's parts share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.shares import GroupShares
from eclectus.engine.assumed import PlacedPods
from eclectus.engine.backoff import Backoff
from eclectus.engine.class_queues import ClassQueues
from eclectus.engine.node_queues import Deferrals, NodeQueues
from eclectus.engine.report_timing import ReportSchedule
from eclectus.framework import Learn, Profile, View
from eclectus.framework.job_work import JobWork
from eclectus.model.commands import Bind, Command, Fault, Report
from eclectus.model.objects import Task


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many pods stand where, and what has been counted since the start."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    node_queues: int
    binding: int
    nodes: int
    classes: int
    counts: dict[str, int]


class State:
    """The picture of the cluster, the queues, and the commands of the step under way."""

    def __init__(self, profiles: Sequence[Profile], learn: Learn, seed: int) -> None:
        self.profiles = {profile.scheduler_name: profile for profile in profiles}
        self.learn = learn
        self.cluster = Cluster()
        self.view = View(self.cluster, learn, Random(seed))
        self.view.shares_by_policy = self._usages()
        self.view.job_work = self.work = self._work()
        self.placed = PlacedPods(self.cluster, self.view.shares_by_policy.values())
        self.class_queues = ClassQueues()
        self.node_queues = NodeQueues(self.cluster)
        self.deferrals = Deferrals(self.cluster)
        self.backoff = Backoff()
        self.reports = ReportSchedule()
        self.gated: set[str] = set()
        self.held: dict[str, float] = {}  # uid -> until when a Hold policy keeps it back, in the newest round
        self.pending: dict[str, Task] = {}  # ours and not bound, as last seen, in flight or not
        self.commands: list[Command] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.view.node_queues = self.node_queues.by_row
        self.view.placed_pods = self.placed.on_row
        self.now = 0.0  # the time of the step, seconds

    def _usages(self) -> dict[int, GroupShares]:
        """By the identity of each policy that asks for one."""
        asking = [policy for each in self.profiles.values() for policy in (each.order, each.place)]
        return {
            id(policy): GroupShares(self.cluster, policy.counted_by, partial(self.fault, policy))
            for policy in asking
            if policy.counted_by is not None
        }

    def _work(self) -> JobWork | None:
        profiles = self.profiles.values()
        return JobWork() if any(each.order.wants_work or each.place.wants_work for each in profiles) else None

    # -- moving pods between queues --------------------------------------------------------------

    def enqueue(self, task: Task, cause: str) -> None:
        """The pod waits for its turn."""
        order = self.profiles[task.profile].order
        try:
            lane = self.class_queues.add(task, order)
        except Exception as error:  # a plug-in's defect must not stop the others
            problem = f"{type(error).__name__}: {error}"
            self.fault(order, problem)
            self.back_off(task, "SchedulerError", f"policy {type(order).__name__} failed: {problem}")
            return
        self.reports.add(task.uid, self.now, at_once=lane.never_feasible)
        self.counts[f"incoming:active:{cause}"] += 1

    def dequeue(self, uid: str) -> None:
        """The pod stands in no queue."""
        self.class_queues.discard(uid)
        self.node_queues.remove(uid)
        self.deferrals.discard(uid)
        self.backoff.discard(uid)
        self.reports.cancel(uid)
        self.gated.discard(uid)

    def forget(self, uid: str) -> Task | None:
        """The pod is bound or gone: nothing of it stays. Returns it as it was pending, if it was."""
        task = self.pending.pop(uid, None)
        if task is None:
            return None  # whoever is not pending stands in no queue
        if uid not in self.placed.assumed:  # nor does whoever is in flight, of whom nothing is said
            self.dequeue(uid)
            self.reports.forget(uid)
        self.backoff.forget(uid)
        if self.work is not None:
            self.work.vanish(task)
        return task

    def back_off(self, task: Task, reason: str, message: str) -> None:
        """The pod failed for a reason that no cluster event will cure: say so and try again later."""
        self.reports.cancel(task.uid)
        self.backoff.add(task, self.now)
        self.counts["incoming:backoff:ScheduleAttemptFailure"] += 1
        self.attempted("error" if reason == "SchedulerError" else "unschedulable", task)
        self.report(task, reason, message)

    def attempted(self, result: str, task: Task, pods: int = 1) -> None:
        """Count attempts by result and profile."""
        self.counts[f"attempts:{result}:{task.profile}"] += pods

    # -- speaking ------------------------------------------------------------------------------

    def bind(self, task: Task, row: int, devices: tuple[int, ...] = ()) -> None:
        """Assume the pod on the node, on these of its devices if it asks for some, and ask for the bind."""
        node = self.cluster.names[row]
        if self.cluster.devices is not None:
            task = self.cluster.devices.with_devices(row, task, devices)
        self.reports.forget(task.uid)
        self.placed.assume(task, node, self.now)
        if self.work is not None:
            self.work.begin(task)
        self.commands.append(Bind(task.uid, task.namespace, task.name, node, task.profile, task.devices))

    def report(self, task: Task, reason: str, message: str) -> None:
        """Tell the pod why it waits, unless that stands there already."""
        standing = self.pending.get(task.uid, task).reported
        if self.reports.record(task.uid, message, standing, self.now):
            self.commands.append(
                Report(task.uid, task.namespace, task.name, task.profile, reason, message)  # type: ignore[arg-type]
            )

    def fault(self, policy: object, message: str) -> None:
        """A policy has misbehaved."""
        self.commands.append(Fault(type(policy).__name__, message))
        self.counts["faults"] += 1

    def queue_counts(self) -> QueueCounts:
        """Count everybody; O(lanes)."""
        parked = sum(len(lane) for lane in self.class_queues if lane.unschedulable_since is not None)
        return QueueCounts(
            active=len(self.class_queues) - parked,
            backoff=len(self.backoff),
            unschedulable=parked,
            gated=len(self.gated),
            node_queues=len(self.node_queues),
            binding=len(self.placed.assumed),
            nodes=len(self.cluster),
            classes=len(self.view.classes),
            counts=dict(self.counts),
        )
