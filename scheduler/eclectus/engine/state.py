"""The engine's state: its parts, the moves of a pod between queues, and the commands of this step.

Each part changes only by its own methods. What it shows of itself is a read-only mapping that follows its
changes. Its type keeps others from writing (strict mypy); a property would cost a call with every use.

    cluster         nodes as arrays, and what is held on them
    placed          pods on nodes: assumed, bound, or nominated by another scheduler
    pending         pods of our profiles that are not bound, as last seen
    places          where each of them is (`Places` has the table)
    class_queues    pods that wait for their turn, for room or for a time, by class
    node_queues     pods that wait at nodes
    held            class queues that wait for nodes with their data
    deferrals       pods in class_queues that wait for one busy node
    gangs           pods that wait to be placed together
    backoff         pods whose last attempt failed
    evictions       pods for which an eviction was sent, as long as they exist, and those spared for refusals
    held_back       pods that a limit of their pool keeps waiting
    budgets         PodDisruptionBudgets
    relief          classes of refused tasks and gangs, and when Relieve policies are asked about them
    reserving       likewise, and when Orders that reserve nodes are
    reports         pods that get a PodScheduled=False condition, and when
    waiting_times   pods that wait, and when they have waited for longer than their profile allows
    volumes         the claims of pods that wait, and what is decided for them
    probe_validity  probes on nodes, and which of them have lost their room
    expected_waits  pods without room, and how long each was expected to wait
    service_times   run times of each kind of work
    attempts        running pods that may have copies; None where no profile makes any
    accounts        what is counted for policies that ask for it
    starvation      pools that have too little, and since when
    pool_records    what is measured of Pools, and when it is written
    pool_refusals   pods whose labels name pools that do not take them
    plan_records    plans of DAG jobs, and when they are written
    solves          problems that are solved outside of the step, and their answers
    counters        counts for metrics
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from eclectus.accounts.accounts import Accounts
from eclectus.accounts.pools import Limit
from eclectus.accounts.reclaim import Entitlement, Starvation
from eclectus.cluster.budgets import Budgets
from eclectus.cluster.nodes import Cluster
from eclectus.engine.agenda import (
    Backoff,
    RefusedKey,
    ReliefKey,
    ReliefSchedule,
    ReportSchedule,
    WaitingTimes,
)
from eclectus.engine.attempts import Attempts
from eclectus.engine.counters import AttemptResult, Counters, ExpectedWaits
from eclectus.engine.evictions import Evictions
from eclectus.engine.gangs import Gangs, WaitingGang
from eclectus.engine.placed_pods import AssumedBind, Binds, PlacedPods, ProbeValidity
from eclectus.engine.places import Places, PodPlace
from eclectus.engine.plan_records import PlanRecords
from eclectus.engine.pod_specs.data_sets import DataSets
from eclectus.engine.pod_volumes import PodVolumes
from eclectus.engine.pool_records import PoolRecords
from eclectus.engine.pool_refusals import PoolRefusals
from eclectus.engine.queues.class_queues import ClassQueues, PendingClass, Queued
from eclectus.engine.queues.held_queues import HeldQueues
from eclectus.engine.queues.near_slots import NearSlots
from eclectus.engine.queues.node_queues import NodeQueues
from eclectus.engine.queues.waits import Deferrals, TasksBesideRoom
from eclectus.engine.quota import HeldBack
from eclectus.engine.solves import Solves
from eclectus.feasibility.task_class import ClassCache
from eclectus.framework import Ask, Learn, Policy, Profile, View, groupings_of, needs_of
from eclectus.maths.backlog_wait import ServiceTimes
from eclectus.model.commands import (
    Command,
    Evict,
    Fault,
    MarkStraggling,
    Nominate,
    Report,
    ReportReclaim,
    StragglingReason,
)
from eclectus.model.objects import NO_GRANT, ClassKey, GangKey, Grant, Reservation, Task, may_outrank

T = TypeVar("T")
FailureReason = Literal["Unschedulable", "SchedulerError"]
ReportReason = Literal[
    "Unschedulable", "SchedulerError", "WaitingForNode", "WaitingForGang", "WaitingForQuota"
]


class ForeignPod(NamedTuple):
    """A pod that waits for another scheduler."""

    namespace: str
    name: str
    scheduler_name: str


class State:
    """What the engine knows, and what it has decided in this step."""

    def __init__(self, profiles: Sequence[Profile], learn: Learn, seed: int) -> None:
        self.profiles: Mapping[str, Profile] = {profile.scheduler_name: profile for profile in profiles}
        # By profile, of those that need binds.
        self._informed_orders = {
            name: each.order for name, each in self.profiles.items() if "binds" in each.order.traits.needs
        }
        self.learn = learn
        self.now = self.before = 0.0  # the times of the step and of the one before, seconds
        self.cluster = Cluster()
        self.node_queues = NodeQueues(self.cluster)
        self.deferrals = Deferrals(self.cluster)
        self.backoff = Backoff()
        self.gangs = Gangs()
        self.budgets = Budgets()
        self.relief = ReliefSchedule[ReliefKey]()
        self.reserving = ReliefSchedule[RefusedKey]()
        self.reports = ReportSchedule()
        self.waiting_times = WaitingTimes(
            {each.scheduler_name: each.settings.wait_limit for each in profiles}
        )
        self.probe_validity = ProbeValidity(self.cluster)
        self.counters = Counters()
        self.expected_waits = ExpectedWaits(self.counters)
        self.service_times = ServiceTimes()
        makes_copies = any(each.speculate.traits.copies for each in profiles)
        self.attempts = Attempts(self.counters.copies) if makes_copies else None
        self.needs = needs_of(profiles, learn)
        self.accounts = Accounts(self.cluster, self.needs, groupings_of(profiles, self.fault))
        self.pools = self.accounts.pools
        self.has_pools = False  # whether there is a Pool, or was one; written by `use_pools` only
        self.held_back = HeldBack(self.pools)
        self.plan_records = PlanRecords(profiles, self.accounts.jobs, self.counters.plans, self.fault)
        self.solves = Solves()
        self.placed = PlacedPods(self.cluster, self.accounts.of_placed)
        self.evictions = Evictions()
        classes = ClassCache(self.cluster)
        holding = {
            each.scheduler_name
            for each in profiles
            if each.hold.traits.waits or each.place.traits.prices_data
        }
        self.class_queues = ClassQueues(classes, profiles, holding, self._placeable_again)
        self._pending: dict[str, Task] = {}
        self.pending: Mapping[str, Task] = self._pending  # uid -> task, as last seen
        self.data_sets = DataSets(self.cluster, self.pending)
        self.held = self._made_held_queues(classes)
        idle = TasksBesideRoom(classes, self.class_queues, self.deferrals, self.held.followed)
        self.starvation = Starvation(self.pools, self._nominated, idle)
        self.pool_records = PoolRecords(self.pools, self.starvation)
        self.pool_refusals = PoolRefusals(self.pools.tree, self.known_pod)
        self.view = self._made_view(classes, seed)
        self.volumes = PodVolumes(self.cluster, self.pending, self.placed.__contains__)
        self._binds = Binds(self.cluster, self.placed, self.volumes, self.probe_validity)
        self.foreign_pending: dict[str, ForeignPod] = {}  # by uid
        self.places = Places()
        self._leave = self._ways_out()
        self._commands: list[Command] = []

    def _made_held_queues(self, classes: ClassCache) -> HeldQueues:
        """The queues of tasks that wait for nodes with their data."""
        return HeldQueues(
            self.class_queues,
            self.profiles,
            self.cluster,
            self.guarded,
            self.data_sets.resolved,
            counters=self.counters.data,
            near_slots=NearSlots(self.cluster, classes, self.placed, self.service_times),
        )

    def _ways_out(self) -> Mapping[PodPlace | None, Callable[[str, Any], None]]:
        """Place -> what takes a pod out of it, by its uid and handle; other places have no container."""
        return {
            "gang": lambda uid, _: self.gangs.discard(uid),
            "lead": self._leave_class_queue,
            "classQueue": self._leave_class_queue,
            "nodeQueue": lambda uid, reservation: self.node_queues.discard(reservation, uid),
            "heldBack": lambda uid, _: self.held_back.discard(uid),
            "backOff": lambda uid, _: self.backoff.discard(uid),
        }

    def _made_view(self, classes: ClassCache, seed: int) -> View:
        """What policies see: it refers to the parts, and so changes with them."""
        return View(
            now=self.now,
            cluster=self.cluster,
            classes=classes,
            learn=self.learn,
            rng=Random(seed),
            node_queues=self.node_queues.by_row,
            queued_tasks=self.node_queues.tasks_by_class,
            deferred_since=self.deferrals.since,
            placed=self.placed,
            evicted=self.evictions.sent,
            spared=self.evictions.spared,
            budgets=self.budgets,
            shares_by_policy=self.accounts.shares,
            job_work=self.accounts.job_work,
            pricing=self.accounts.pricing,
            arrivals=self.accounts.arrivals,
            known_jobs=self.accounts.jobs,
            gangs=self.gangs.pods,
            pools=self.accounts.pools,
            starvation=self.starvation,
            solutions=self.solves.solutions,
            narrowed=self.held.narrowed,
            copy_nodes=set if self.attempts is None else self.attempts.copy_nodes,
            data_gains=self.held.gains,
            near_slots=self.held.near_slots,
            restartable=self.accounts.restartable,
        )

    def _nominated(self) -> Iterator[Task]:
        """The pods for which room is held."""
        for node in self.placed.nominated:
            yield from self.placed.nominated_on(node)

    # -- the step --------------------------------------------------------------------------------

    def begin_step(self, now: float) -> None:
        """A step begins at this time, seconds."""
        self.before, self.now, self.view = self.now, now, replace(self.view, now=now)
        pricing = self.accounts.pricing
        if pricing is not None and now >= pricing.next_due:
            pricing.update(now)

    def end_step(self) -> list[Command]:
        """The step is over; its commands."""
        commands, self._commands = self._commands, []
        return commands

    def use_pools(self) -> None:
        """There is a Pool: until the first one, pools cost nothing."""
        if not self.has_pools:
            self.has_pools = True
            self.accounts.count_pools()

    # -- pending pods ----------------------------------------------------------------------------

    def set_pending(self, task: Task) -> Task | None:
        """A pending pod of ours was seen; as it was seen before, None for the first time."""
        before = self._pending.get(task.uid)
        self._pending[task.uid] = task
        accounts = self.accounts
        if accounts.job_work is not None and (before is None or before.job != task.job):
            accounts.job_work.add(task)
        for account in accounts.of_pending:
            if task.gates or task.deleting:
                account.leave(task.uid)
            else:
                account.wait(task)
        return before

    def enqueue(self, task: Task, event: str) -> None:
        """Put the pod into its class queue. `event`: why, as kube-scheduler's metrics name it."""
        if task.gang is not None and self.gangs.keeps(task):
            self.waiting_times.discard(task.uid)  # the gang waits as a whole
            self.gangs.hold(task)
            self.places.move(task.uid, "gang")
            self.reports.add(task.uid, self.now, task.gang)
            return
        queued = self._add_to_class_queue(task, event)
        if queued is not None:
            self.places.move(task.uid, "classQueue", queued)
            if self.has_pools:
                self._note_placeable(task, queued.pending)
            if task.gang is not None:
                self.gangs.let_go(task)
            self.reports.add(task.uid, self.now, queued.pending, at_once=queued.pending.never_feasible)
            self.waiting_times.add(task, self.now)

    def requeue(self, task: Task, event: str) -> None:
        """Put a pod that has changed into the queue where it belongs now; it has waited since before."""
        uid = task.uid
        report_at = self.reports.first_due(uid)
        self.leave(uid)
        self._cancel_reports(uid)
        self.enqueue(task, event)
        if report_at is not None:
            self.reports.make_first_due(uid, report_at)

    def hold_back(self, task: Task, limit: Limit) -> None:
        """The pod, which has left its queue, waits until its pool has room."""
        uid = task.uid
        self.waiting_times.discard(uid)
        if self.deferrals.since:
            self.deferrals.discard(uid)
        if uid in self.expected_waits.open:
            self.expected_waits.discard(uid)
        if self.gangs.pods:
            self.gangs.discard(uid)
        self.places.move(uid, "heldBack")
        self.held_back.add(task, limit)
        self.reports.add(uid, self.now, limit.pool)
        self.count_attempts("unschedulable", task.profile)

    def return_pods(self) -> None:
        """Pods whose back-off is over, and those whose pools have room now, wait in their queues again."""
        if self.backoff.waiting:
            for uid in self.backoff.take_due(self.now):
                self.enqueue(self._pending[uid], "BackoffComplete")
        if self.has_pools and self.held_back.may_start:
            for task in self.held_back.take_ready():
                self.enqueue(self._pending[task.uid], "PoolChange")

    def _note_placeable(self, task: Task, pending: PendingClass) -> None:
        """Whether a pod that has joined a class is demand of its pool."""
        if pending.never_feasible:
            self.pools.mark_unplaceable(task)
        else:
            self.pools.mark_placeable(task.uid)

    def unplaceable(self, tasks: Iterable[Task]) -> None:
        """No node could ever run these tasks of a class, or so few of a gang that it never starts."""
        if self.has_pools:
            for task in tasks:
                self.pools.mark_unplaceable(task)

    def _placeable_again(self, pending: PendingClass) -> None:
        """A class that no node could ever run is asked about again, or is empty."""
        gang = None if pending.gang is None else self.gangs.find(pending.gang)
        for task in pending if gang is None else tuple(gang.held.values()):
            self.pools.mark_placeable(task.uid)

    def enqueue_lead(self, lead: Task, event: str) -> None:
        """Put the lead of a gang into a class queue of its own, where it waits for the turn of the gang."""
        queued = self._add_to_class_queue(lead, event, lead.gang)
        if queued is not None:
            self.places.move(lead.uid, "lead", queued)
            self.gangs.pods[lead.uid].lead = lead
        else:
            self.gangs.discard(lead.uid)  # it backs off

    def dequeue_lead(self, gang: WaitingGang) -> None:
        """Let the lead of a gang wait among the others: the gang has no turn now."""
        queued = None if gang.lead is None else self.places.queued(gang.lead.uid)
        if queued is not None:
            self.class_queues.discard(queued)
            self.end_turn(gang)

    def end_turn(self, gang: WaitingGang) -> None:
        """Note that the lead of a gang, which was taken from its class queue, waits among the others."""
        if gang.lead is not None:
            self.places.move(gang.lead.uid, "gang")
            gang.lead = None

    def enqueue_at_nodes(self, reservation: Reservation) -> None:
        """Note that the tasks of a new reservation wait in node queues."""
        for task in reservation.tasks:
            self.places.move(task.uid, "nodeQueue", reservation)

    def _add_to_class_queue(self, task: Task, event: str, gang: GangKey | None = None) -> Queued | None:
        """Its entry in a class queue; None if the Order has failed, and the pod backs off."""
        order = self.profiles[task.profile].order
        try:
            queued = self.class_queues.add(task, order, gang)
        except Exception as error:  # a plug-in's defect must not stop the others
            problem = f"{type(error).__name__}: {error}"
            self.fault(order, problem)
            self.back_off(task, "SchedulerError", f"policy {order} failed: {problem}")
            return None
        self.counters.incoming["active", event] += 1
        return queued

    def dequeue(self, uid: str) -> None:
        """Take the pod out of the queue where it is: it waits no more. It is moved or forgotten next."""
        self.leave(uid)
        self._cancel_reports(uid)
        self.waiting_times.discard(uid)

    def _cancel_reports(self, uid: str) -> None:
        """What would be said of its wait is not said as it was."""
        self.reports.cancel(uid)
        if uid in self.expected_waits.open:
            self.expected_waits.discard(uid)

    def leave(self, uid: str) -> None:
        """Take the pod out of the queue where it is, to be put into another one next."""
        place, handle = self.places.entry(uid)
        take_out = self._leave.get(place)
        if take_out is not None:
            take_out(uid, handle)

    def _leave_class_queue(self, uid: str, queued: Queued) -> None:
        if self.has_pools:
            self.pools.mark_placeable(uid)
        self.class_queues.discard(queued)
        if self.deferrals.since:
            self.deferrals.discard(uid)
        if self.gangs.pods:
            self.gangs.discard(uid)  # a lead, or of a complete gang

    def set_aside(self, uid: str, why: Literal["arriving", "gated", "deleting"]) -> None:
        """Note that the pod, which is in no queue, is not to be placed."""
        self.places.move(uid, why)

    def back_off(self, task: Task, reason: FailureReason, message: str) -> None:
        """The pod failed for a reason that no cluster event resolves: report it and try again later."""
        self.reports.cancel(task.uid)
        self.waiting_times.discard(task.uid)
        self.places.move(task.uid, "backOff", self.backoff.add(task.uid, self.now))
        self.counters.incoming["backoff", "ScheduleAttemptFailure"] += 1
        self.count_attempts("error" if reason == "SchedulerError" else "unschedulable", task.profile)
        self.report(task, reason, message)

    def forget(self, uid: str) -> Task | None:
        """The pod is bound or gone: forget it everywhere. Returns it as it was pending, if it was."""
        task = self._pending.pop(uid, None)
        if task is None:
            return None  # a pod that is not pending is in no queue
        if self.places.of(uid) != "assumed":  # of which nothing is reported
            self.dequeue(uid)
            self.reports.forget(uid)
        self.places.forget(uid)
        self.backoff.forget(uid)
        if self.accounts.job_work is not None:
            self.accounts.job_work.remove(task)
        for account in self.accounts.of_pending:
            account.leave(uid)
        return task

    # -- commands --------------------------------------------------------------------------------

    def bind(self, task: Task, row: int, grant: Grant = NO_GRANT, instead_of: Iterable[Task] = ()) -> None:
        """Assume the pod on the node, with this grant if it requests devices, and bind it.

        `instead_of`: nominated pods of lower priority, whose room it may take.
        """
        self.send(self.assume(task, row, grant, instead_of))

    def assume(
        self, task: Task, row: int, grant: Grant = NO_GRANT, instead_of: Iterable[Task] = ()
    ) -> AssumedBind:
        """Count the pod as placed, as `bind` does; `send` or `undo` must follow in this step."""
        return self._binds.assume(task, row, grant, instead_of, self.now)

    def undo(self, assumed: AssumedBind) -> None:
        """Count a pod that was not nominated, and whose bind was not sent, no longer as placed."""
        self._binds.undo(assumed)

    def send(self, assumed: AssumedBind) -> None:
        """Bind the pod, which counts as placed already."""
        task = assumed.task
        self.places.move(task.uid, "assumed")
        self.reports.forget(task.uid)
        if not assumed.for_volumes:  # which may take minutes
            self.reports.allowance.sent(task.uid, self.now)
        self.waiting_times.discard(task.uid)
        if task.uid in self.expected_waits.open:
            self.expected_waits.placed(task.uid, self.now)
        if task.gang is not None:
            self.gangs.assumed(task.uid)
        if self.accounts.job_work is not None:
            self.accounts.job_work.start(task)
        order = self._informed_orders.get(task.profile)
        if order is not None:
            self.guarded(order, order.placed, self.view, task, assumed.row)
        self._commands.append(self._binds.command(assumed))

    def nominate(self, task: Task, node: str) -> None:
        """Write into the pod's status that room is held for it on this node; empty: on none any more."""
        self._commands.append(Nominate(task.uid, task.namespace, task.name, task.profile, node))

    def mark_straggling(self, task: Task, reason: StragglingReason, message: str) -> None:
        """Write on a running pod that it is late, or that it is so no more."""
        is_late = reason in ("ExpectedToEndLate", "WorthRestarting")
        pod = task.uid, task.namespace, task.name, task.profile
        self._commands.append(MarkStraggling(*pod, is_late, reason, message))

    def look_at_pools(self) -> None:
        """Note which pools have too little; when one may take room back, its pods are asked about now."""
        if self.starvation.look(self.now):
            self.relief.expedite(self.now, at_once=self.starvation.has_new_claims)
            if self.starvation.has_new_claims:
                self.held.let_go_all(self.now)

    def evict(
        self, victim: Task, task: Task, claim: Entitlement | None = None, *, by_costs: bool = False
    ) -> None:
        """Delete a bound pod to make room for the task, which is nominated to its node.

        `by_costs`: not for a claim or a priority, but because pods then lose less in sum.
        """
        self.evictions.send(victim.uid, task.uid)
        self.pools.evict(victim)
        self.budgets.spend(victim)
        self.counters.preemption_victims += 1
        pod, needs_room = (victim.uid, victim.namespace, victim.name), (task.uid, task.namespace, task.name)
        pool, kind = ("", "costs" if by_costs else "") if claim is None else (claim.pool, claim.kind)
        self._commands.append(Evict(*pod, victim.node, task.profile, *needs_room, pool, kind))

    def say_dry_run(self, task: Task, row: int, victims: Sequence[Task], claim: Entitlement) -> None:
        """Say on the task whom its pool would evict for it, not too often for one pool."""
        if not self.evictions.may_say(claim.pool, self.now):
            return
        self.counters.dry_run_victims += len(victims)
        pod, pools = (
            (task.uid, task.namespace, task.name, task.profile),
            sorted({each.pool for each in victims}),
        )
        node = self.cluster.names[row]
        self._commands.append(ReportReclaim(*pod, claim.pool, claim.kind, node, len(victims), tuple(pools)))

    def eviction_refused(self, uid: str) -> None:
        """Look at its node again. Where it was no passing conflict, the pod is spared for a time."""
        self.pools.spare(uid)
        self.evictions.refuse(uid, self.now, stays=uid in self.placed)
        self._look_again_at(uid)

    def review_spared(self) -> None:
        """Pods that have been spared for long enough may be victims again."""
        for uid in self.evictions.take_spared(self.now):
            self._look_again_at(uid)

    def _look_again_at(self, uid: str) -> None:
        row = self.cluster.rows.get(self.placed.node_of(uid))
        if row is not None:
            self.cluster.usage.record(row)

    def refused(self, profile: str, class_key: ClassKey) -> None:
        """Tasks of this profile and class were refused: its policies are to be asked about them."""
        if self.profiles[profile].relieve.traits.evicts:
            self.relief.add((profile, class_key))
        if self.profiles[profile].order.traits.reserves_nodes:
            self.reserving.add_waiting((profile, class_key))

    def gang_refused(self, profile: str, gang: WaitingGang) -> None:
        """A gang found no room: policies that take room back are to be asked, unless they were in vain."""
        if self.has_pools and self.profiles[profile].relieve.traits.reclaims:
            self.relief.add_waiting((profile, gang.key))

    def waits(self, task: Task) -> None:
        """The task waits for a busy node by a policy: other pods may have to make room for it too.

        In a node queue it is not asked about again, and pods of lower priority may start elsewhere later.
        """
        may_have_to = self.places.of(task.uid) == "nodeQueue" or self._may_outrank(task)
        if may_have_to and self.profiles[task.profile].relieve.traits.evicts:
            self.relief.add_waiting((task.profile, (task.spec, task.workload)))

    def may_evict_for(self, task: Task) -> bool:
        """Whether its profile evicts pods, and one that is on a node has a lower priority."""
        evicts = self.profiles[task.profile].relieve.traits.evicts
        return evicts and task.preempts and self._may_outrank(task)

    def _may_outrank(self, task: Task) -> bool:
        return may_outrank(task.priority, self.placed.lowest_priority)

    def report(self, task: Task, reason: ReportReason, message: str) -> None:
        """Write on the pod why it is not placed, unless it says so already."""
        on_the_pod = self._pending.get(task.uid, task).reported
        if self.reports.record(task.uid, message, on_the_pod, self.now):
            self._commands.append(Report(task.uid, task.namespace, task.name, task.profile, reason, message))

    def record_plans(self) -> None:
        """Write what is planned for DAG jobs, where it has changed."""
        self._commands.extend(self.plan_records.due(self.view))

    def record_pools(self) -> None:
        """Write what is measured of Pools, where it has changed."""
        self._commands.extend(self.pool_records.due(self.now))
        if self.pool_refusals.next_due <= self.now:
            self._commands.extend(self.pool_refusals.due(self.now))

    def say_hot_spots(self) -> None:
        """Say of data sets for which many pods wait that copies of them would help."""
        self._commands.extend(self.held.hot_spots(self.now))

    def solve(self, profile: Profile, ask: Ask) -> None:
        """Have a problem of a Place policy solved outside of the step."""
        self._commands.append(self.solves.ask(profile.place, profile.scheduler_name, ask))

    def known_pod(self, uid: str) -> Task | None:
        """A pod that is pending or on a node; None if there is none."""
        return self._pending.get(uid) or self.placed.task(uid)

    def fault(self, policy: Policy, message: str) -> None:
        """A policy has failed or asked for an action that was refused."""
        self._commands.append(Fault(str(policy), message))
        self.counters.faults += 1

    def guarded(
        self, policy: Policy, hook: Callable[..., T | None], *arguments: object, failed: T | None = None
    ) -> T | None:
        """What a plug-in answers; `failed` if it raises, which is its Fault and does not stop the others."""
        try:
            return hook(*arguments)
        except Exception as error:
            self.fault(policy, f"{type(error).__name__}: {error}")
            return failed

    # -- counting --------------------------------------------------------------------------------

    def count_attempts(self, result: AttemptResult, profile: str, pods: int = 1) -> None:
        """Count attempts to place pods of a profile."""
        self.counters.attempts[result, profile] += pods
