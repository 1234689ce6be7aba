"""Event handlers: each event updates the state. Late, repeated and unknown events do no harm.

What the API server has refused, a bind, a nomination or an eviction, is undone in the state. After events
about storage the pods that use it are resolved again at the end of the events of the step.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from eclectus.accounts.pool_tree import PoolNamespace
from eclectus.cluster.nodes import Cluster
from eclectus.engine.attempts import Attempts
from eclectus.engine.learner_feed import LearnerFeed
from eclectus.engine.nominations import Nominations
from eclectus.engine.pod_specs.namespaces import NamespaceSelectors
from eclectus.engine.pod_specs.waiting_specs import ProfileRules, WaitingSpecs
from eclectus.engine.quota import PoolMembers
from eclectus.engine.state import ForeignPod, State
from eclectus.model import events
from eclectus.model.objects import ENDED, Task
from eclectus.model.volumes import AttachLimits

# For which a pod with terms has found no room, when others are late; then another has its turn.
CHANGE_SECONDS = 10.0
TOMBSTONES_MOST = 10_000  # events are late by seconds, not by more pods than this

_SET_ASIDE = frozenset({"arriving", "gated", "deleting"})
# What the queues and the rules look at: a pod that changes in nothing else keeps its place.
_scheduling_fields = attrgetter(
    "spec", "priority", "workload", "gates", "profile", "job", "stage", "estimate", "path", "gang", "pool",
    "inputs",
)  # fmt: skip


class EventHandlers:
    """`handlers`: type of event -> what updates the state."""

    def __init__(self, state: State, learner: LearnerFeed, nominations: Nominations) -> None:
        self._state = state
        self._learner = learner
        self._nominations = nominations
        self._profile_rules = ProfileRules(state.profiles.values())
        self._selectors = NamespaceSelectors()
        self._specs = WaitingSpecs(
            state.profiles.values(), state.cluster, state.pending, state.volumes, state.data_sets
        )
        self._members = PoolMembers(state.pools, lambda: chain(state.pending.values(), state.placed.tasks()))
        spread, jobs = self._specs.default_spread, state.accounts.jobs
        self._foreign_pending = state.foreign_pending
        self._change_at = 0.0
        # The uids of the pods that ended or were deleted last, oldest first.
        self._tombstones = OrderedDict[str, None]()
        self._bound_before_list = set[str]()  # the uids of pods that were bound when the last list began
        self.handlers: Mapping[type, Callable[[Any], None]] = {
            events.NodeSeen: self._node_seen,
            events.NodeGone: self._node_gone,
            events.PodsListed: self._pods_listed,
            events.TaskSeen: self._task_seen,
            events.TaskGone: lambda event: self._gone(event.uid),
            events.ProgressSaid: self._progress_said,
            events.BindConfirmed: self._bind_confirmed,
            events.BindRefused: self._bind_refused,
            events.NominateRefused: self._nominate_refused,
            events.EvictRefused: lambda event: state.eviction_refused(event.uid),
            events.BudgetSeen: lambda event: self._change_budgets(state.budgets.set, event.budget),
            events.BudgetGone: lambda event: self._change_budgets(
                state.budgets.remove, event.namespace, event.name
            ),
            **storage_handlers(state.cluster),
            events.PodSelectorSeen: lambda event: spread.set(event.selector),
            events.PodSelectorGone: lambda event: spread.remove(event.kind, event.namespace, event.name),
            events.NamespaceSeen: self._namespace_seen,
            events.NamespaceGone: self._namespace_gone,
            events.PoolSeen: self._pool_seen,
            events.PoolGone: lambda event: self._members.drop(event.name),
            events.GangSeen: lambda event: state.gangs.set(event.gang),
            events.GangGone: lambda event: state.gangs.remove(event.key),
            events.JobSeen: lambda event: None if jobs is None else jobs.see(event.job),
            events.JobGone: lambda event: None if jobs is None else jobs.drop(event.uid),
            events.LoadSeen: lambda event: state.cluster.set_loads(dict(event.loads)),
            events.Solved: state.solves.answer,
            events.NodeRecalled: lambda event: learner.node_recalled(event.learned),
        }

    # -- nodes ---------------------------------------------------------------------------------

    def _node_seen(self, event: events.NodeSeen) -> None:
        state, name = self._state, event.node.name
        before = state.cluster.node(name)
        is_new = before is None
        row = state.cluster.set_node(event.node)
        state.data_sets.relabel(() if before is None else before.labels, event.node.labels)
        if is_new:
            state.learn.add_node(row, name, state.cluster.capacity)
            state.placed.add_node(name)

    def _node_gone(self, event: events.NodeGone) -> None:
        state = self._state
        row = state.cluster.rows.get(event.name)
        if row is None:
            return
        # Deferrals name rows, and this row may soon be another node's.
        state.deferrals.release(list(state.deferrals.waits))
        for task in state.node_queues.cancel_all(row):
            state.enqueue(task, "NodeDelete")
        self._nominations.node_gone(event.name)
        state.placed.remove_node(event.name)
        state.learn.remove_node(row)
        labels = state.cluster.labels.of_row(row)
        state.cluster.drop_node(event.name)
        state.data_sets.relabel(labels, ())

    # -- pods ----------------------------------------------------------------------------------

    def _pods_listed(self, _event: events.PodsListed) -> None:
        """What a list that begins now says is newer than all that was seen before, or etcd was restored."""
        self._tombstones.clear()
        self._bound_before_list = {task.uid for task in self._state.placed.tasks() if task.node}

    def _task_seen(self, event: events.TaskSeen) -> None:
        task = event.task
        if task.uid in self._tombstones:
            return  # late: a uid is used again only where etcd was restored, and then all pods are listed
        if not task.node and task.uid in self._bound_before_list:  # likewise: its bind is forgotten
            self._bound_before_list.discard(task.uid)
            self._gone(task.uid)
            del self._tombstones[task.uid]
        attempts = self._state.attempts
        if attempts is not None and (task.speculative or task.copy_of):
            self._see_attempt(attempts, task)
            task = self._elsewhere(attempts, task)
        if task.phase in ENDED:
            self._ended_seen(task)
        else:
            self._seen(task)

    def _ended_seen(self, task: Task) -> None:
        state = self._state
        self._learner.task_ended(task)
        if state.accounts.jobs is not None and task.phase == "Succeeded":
            state.accounts.jobs.succeed(task)
        self._gone(task.uid)
        if task.gang is not None:
            state.gangs.end(task)

    def _seen(self, task: Task) -> None:
        """A pod that has not ended, pending or on a node."""
        state, uid = self._state, task.uid
        if task.has_terms or uid in self._selectors.pods:
            task = self._selectors.resolved(task)
        if not task.node:
            if task.profile in state.profiles:
                self._ours_seen(self._profile_rules.applied(task))
            else:
                self._see_gang(task)
                self._foreign(task)
            return
        if task.gang is not None or uid in state.gangs.pods:
            state.gangs.see(task)
        if uid in state.placed.assumed or uid in state.pending:
            self._bound(uid)
        if uid in self._foreign_pending:  # arrives only now: its scheduler may never have bound it
            del self._foreign_pending[uid]
            self._arrived(task)
        state.placed.set(self._members.resolved(task) if state.has_pools else task, task.node, state.now)
        self._learner.task_on_node(task)

    def _see_attempt(self, attempts: Attempts, task: Task) -> None:
        """A pod that may have a copy, or is one."""
        if task.ended:
            attempts.end(task, self._state.now)
            return
        if task.deleting:
            self._learner.attempt_deleted(task)
        if task.profile in self._state.profiles:
            attempts.see(self._in_pool(task), self._state.now)

    def _elsewhere(self, attempts: Attempts, task: Task) -> Task:
        """A waiting pod, with the nodes on which it is not put, or rather not, since it does work again."""
        original = attempts.original_of(task)
        if original is None or task.node:
            return attempts.rather_elsewhere(task)
        state = self._state
        speculate = state.profiles[original.task.profile].speculate
        rows = state.guarded(speculate, speculate.too_slow, state.view, original.task)
        slow = tuple(state.cluster.names[row] for row in rows or ())
        return replace(task, spec=replace(task.spec, slow_nodes=slow)) if slow else task

    def _progress_said(self, event: events.ProgressSaid) -> None:
        if self._state.attempts is not None:
            self._state.attempts.progress_said(event.uid, event.progress)

    def _ours_seen(self, task: Task) -> None:
        """A pending pod of our profiles: completed now, or later where its namespace must wait."""
        state, late = self._state, self._specs.late
        if task.uid not in state.pending and task.uid in state.placed:
            return  # late: it is bound already, and a bound pod never becomes unbound
        if late.must_wait(task):
            self._completed_later(task)
            return
        if task.uid in late.tasks:
            late.discard(task.uid)
        self._see_gang(task)
        self._pending(task if task.deleting else self._specs.completed(task))

    def _see_gang(self, task: Task) -> None:
        gangs = self._state.gangs
        if task.gang is not None or task.uid in gangs.pods:
            gangs.see(task)

    def _arrived(self, task: Task) -> None:
        """The task is pending here, or was bound by another scheduler; once a task."""
        state = self._state
        if not task.spec.long_running:
            self._learner.task_arrived(task)
            if state.accounts.arrivals is not None and not task.spec.probe:
                state.accounts.arrivals.add(task, state.now)

    def _foreign(self, task: Task) -> None:
        """Another scheduler's pending pod: it may be bound later, and a nomination takes room."""
        if self._state.placed.is_bound(task.uid):
            return  # late: a bound pod never becomes unbound
        self._foreign_pending[task.uid] = ForeignPod(task.namespace, task.name, task.profile)
        if task.nominated and not task.deleting:
            self._state.placed.set(self._in_pool(task), task.nominated, self._state.now)
        else:
            self._state.placed.remove(task.uid)

    def _pending(self, task: Task) -> None:
        """A pending pod of ours, completed unless it is being deleted: into the queue where it belongs."""
        task = self._in_pool(task)
        state, uid = self._state, task.uid
        if task.asked_pool and state.has_pools:
            state.pool_refusals.see(task, state.now)
        before = state.set_pending(task)
        place = None if before is None else state.places.of(uid)
        if place == "assumed":
            return  # its bind is under way: what was seen now counts if the bind is refused
        if before is None:
            self._arrived(task)
        if task.deleting or task.gates:
            state.dequeue(uid)
            state.set_aside(uid, "deleting" if task.deleting else "gated")
        elif before is None:
            state.enqueue(task, "PodAdd")
        elif place in _SET_ASIDE or (
            place != "backOff" and _scheduling_fields(before) != _scheduling_fields(task)
        ):
            state.requeue(task, "PodUpdate")
        if task.nominated or state.placed.nominated:
            self._nominations.observe(task)

    def _pool_seen(self, event: events.PoolSeen) -> None:
        self._state.use_pools()
        self._members.see(event.pool)

    def _namespace_seen(self, event: events.NamespaceSeen) -> None:
        self._selectors.relabel(event.name, event.labels)
        self._members.see_namespace(event.name, PoolNamespace(event.labels, event.pool))

    def _namespace_gone(self, event: events.NamespaceGone) -> None:
        self._selectors.relabel(event.name, None)
        self._members.see_namespace(event.name, None)

    def _in_pool(self, task: Task) -> Task:
        return self._members.resolved(task) if self._state.has_pools else task

    def _regroup(self, uid: str) -> None:
        """The pod may be in another pool now."""
        state, task = self._state, self._state.pending.get(uid)
        if task is not None and self._in_pool(task) is not task:
            if state.places.of(uid) == "arriving":
                state.set_pending(self._in_pool(task))
            else:
                self._pending(task)
        on_node = state.placed.task(uid)
        if on_node is not None and self._in_pool(on_node) is not on_node:
            state.placed.set(self._in_pool(on_node), state.placed.node_of(uid), state.now)

    def _completed_later(self, task: Task) -> None:
        """A pending pod of ours whose namespace has no fuel: until it has, the pod is as it was before."""
        state, uid = self._state, task.uid
        if uid not in state.pending:
            state.set_pending(self._in_pool(task))
            self._arrived(task)
            state.set_aside(uid, "arriving")
        self._specs.late.add(task)

    def _gone(self, uid: str) -> None:
        """The pod has ended or was deleted."""
        state = self._state
        if state.gangs.pods or state.gangs.ended:
            state.gangs.forget(uid)
        if uid in self._tombstones:
            return  # deleted after its end: only its gang still counted it
        self._tombstones[uid] = None
        if len(self._tombstones) > TOMBSTONES_MOST:
            self._tombstones.popitem(last=False)
        self._foreign_pending.pop(uid, None)
        self._learner.task_gone(state.placed.task(uid), uid)
        if state.attempts is not None:
            state.attempts.forget(uid)
        if uid in self._selectors.pods:
            self._selectors.discard(uid)
        if uid in state.pending:
            self._waits_no_more(uid)
        if state.has_pools:
            state.pool_refusals.forget(uid)
        state.evictions.end(uid)
        if uid in state.placed.assumed:
            state.placed.confirm(uid)
            state.reports.allowance.answered(uid, state.before, state.now)
        state.placed.remove(uid)

    def _waits_no_more(self, uid: str) -> None:
        """A pending pod is bound or gone."""
        state = self._state
        self._specs.discard(uid)
        if uid in state.volumes.binding:
            state.volumes.bind_ended(uid)
        state.forget(uid)
        if uid in self._nominations.withdrawn:
            self._nominations.forget(uid)

    # -- specs that depend on more than the pod --------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether specs of pods, or their pools, may have changed by anything but what was seen of them."""
        if self._state.has_pools and self._members.is_changing:
            return True
        return self._selectors.has_news or self._specs.has_news

    def bring_specs_up_to_date(self) -> None:
        """Complete pods whose terms select other namespaces now, late ones, and those with another spec.

        And move pods to other pools.
        """
        if self._state.has_pools:
            for uid in self._members.take():
                self._regroup(uid)
        for task in self._selectors.take_changed() if self._selectors.has_news else ():
            self._seen(task)
        late = self._specs.late
        for task in late.take() if late.tasks else ():
            self._see_gang(task)
            self._pending(self._specs.completed(task))
        for task in self._specs.take_changed():
            if self._state.places.of(task.uid) != "arriving":  # otherwise all is asked when its turn comes
                self._pending(task)
        if late.fuel.spent:
            late.fuel.renew()

    def change_places(self) -> None:
        """Where pods wait because of their terms, those that have found no room give their turn to them.

        Not those of gangs, and those for which room is made.
        """
        state, late = self._state, self._specs.late
        self._change_at = state.now + CHANGE_SECONDS
        for namespace in list(late.crowded):
            for uid in late.terms.pods_of(namespace):
                task, queued = state.pending[uid], state.places.queued(uid)
                since = None if queued is None else queued.pending.unschedulable_since
                if since is None or since > state.now - CHANGE_SECONDS or task.gang is not None:
                    continue
                if not state.placed.is_nominated(uid):
                    state.dequeue(uid)
                    self._specs.discard(uid)
                    state.set_aside(uid, "arriving")
                    late.step_back(task)

    @property
    def change_at(self) -> float:
        """When pods that wait because of their terms change places, seconds; inf if there are none."""
        return self._change_at if self._specs.late.crowded else inf

    @property
    def must_wait(self) -> bool:
        """Whether terms of pods differ on the labels of namespaces, or some are not in their pools yet."""
        if self._state.has_pools and self._members.is_moving:
            return True
        return self._selectors.has_news and bool(self._selectors.changing)  # what changes is news

    @property
    def goes_on(self) -> bool:
        """Whether more specs are to be brought up to date in the next step."""
        late = self._specs.late
        is_due = bool(late.tasks) and late.are_due
        has_news = self._selectors.has_news or self._specs.default_spread.has_news
        has_news = has_news or bool(self._state.data_sets.changed)
        return is_due or has_news or (self._state.has_pools and self._members.is_changing)

    # -- answers of the API server ----------------------------------------------------------------------

    def _bind_confirmed(self, event: events.BindConfirmed) -> None:
        if event.uid in self._state.placed.assumed:
            self._bound(event.uid)

    def _bound(self, uid: str) -> None:
        """The pod is bound, as the answer or the watch says, whichever comes first."""
        state = self._state
        task = state.pending.get(uid)
        if task is not None:
            self._waits_no_more(uid)
        if state.placed.confirm(uid):
            state.reports.allowance.answered(uid, state.before, state.now)
            if task is not None:
                state.count_attempts("scheduled", task.profile)

    def _bind_refused(self, event: events.BindRefused) -> None:
        state = self._state
        nominated = state.placed.forget(event.uid, event.node)
        if nominated is None:
            return
        state.reports.allowance.answered(event.uid, state.before, state.now)
        state.volumes.bind_ended(event.uid)
        state.gangs.bind_refused(event.uid)
        task = state.pending.get(event.uid)
        if task is None:
            return
        if state.accounts.job_work is not None:
            state.accounts.job_work.start(task, is_undone=True)
        if task.deleting:
            state.set_aside(task.uid, "deleting")
            return
        self._nominations.bind_refused(task, event.node, nominated)
        if task.gates:
            state.set_aside(task.uid, "gated")
        else:
            refusal = f"binding to node {event.node} was refused: {event.reason}"
            state.back_off(task, "SchedulerError", refusal)

    def _nominate_refused(self, event: events.NominateRefused) -> None:
        state = self._state
        task = state.pending.get(event.uid)
        if task is not None and event.node and state.placed.is_nominated(event.uid):
            self._nominations.withdraw(task)

    # -- PodDisruptionBudgets ----------------------------------------------------------------------

    def _change_budgets(self, change: Callable[..., None], *arguments: object) -> None:
        """Where the budgets allow more than before, policies are asked at once to make room."""
        state, before = self._state, self._state.budgets.generation
        change(*arguments)
        if state.budgets.generation != before:
            state.relief.expedite(state.now)


def storage_handlers(cluster: Cluster) -> Mapping[type, Callable[[Any], None]]:
    """Type of event -> what updates the cluster."""
    volumes, storage = cluster.volumes, cluster.volumes.storage
    return {
        events.VolumeClaimSeen: lambda event: storage.set_claim(event.claim),
        events.VolumeClaimGone: lambda event: storage.drop_claim(event.key),
        events.VolumeSeen: lambda event: volumes.set_volume(event.volume),
        events.VolumeGone: lambda event: volumes.drop_volume(event.name),
        events.StorageClassSeen: lambda event: storage.set_class(event.storage_class),
        events.StorageClassGone: lambda event: storage.drop_class(event.name),
        events.FreeStorageSeen: lambda event: storage.set_free(event.free),
        events.FreeStorageGone: lambda event: storage.drop_free(event.key),
        events.StorageDriverSeen: lambda event: storage.set_driver(
            event.name, event.publishes_capacity, event.must_be_installed
        ),
        events.StorageDriverGone: lambda event: storage.set_driver(event.name, False, False),
        events.AttachLimitsSeen: lambda event: volumes.set_attach_limits(event.limits),
        events.AttachLimitsGone: lambda event: volumes.set_attach_limits(AttachLimits(event.node)),
        events.AttachmentSeen: lambda event: volumes.set_attachment(event.attachment),
        events.AttachmentGone: lambda event: volumes.drop_attachment(event.name),
    }
