"""A model of the API server, the watches, the answers to binds and the kubelets.

The store is the truth. Nodes, pods and DAG jobs reach the engine through three watches, each in order but
late. Binds, nominations and evictions reach the store when the test says so. Answers of binds may be lost,
and are then resolved by reading the pod. An evicted pod terminates until the test ends it.
`Delivered` is the cluster state according to the events that the engine has received so far, computed in
the simplest way: commands are checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from msgspec.structs import replace

import pod_rules
from eclectus.engine.agenda import WRITTEN_AGAIN_SECONDS
from eclectus.model.commands import Bind, Command, Evict, Fault, Nominate, RecordPlan, Report
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    EvictRefused,
    GangGone,
    GangSeen,
    JobGone,
    JobSeen,
    NodeGone,
    NodeSeen,
    NominateRefused,
    PoolGone,
    PoolSeen,
    TaskGone,
    TaskSeen,
)
from eclectus.model.job import Job
from eclectus.model.objects import Gang, GangKey, Node, Task
from judge import crowded, refusal

FOREIGN = "other"  # the profile of pods that another scheduler places


class Delivered:
    """The cluster state according to the events delivered to the engine, and the binds it has issued."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, Task] = {}
        self.jobs: dict[str, Job] = {}
        self.gangs: dict[GangKey, int] = {}  # pods that start together
        self.bound: dict[str, str] = {}  # uid -> node, of our binds issued and not refused
        self.nominated: dict[str, str] = {}  # uid -> node, of our waiting pods for which room is held
        self.nominated_before: dict[str, str] = {}  # likewise, of pods that are being bound to another node
        self.withdrawn: dict[str, str] = {}  # uid -> node, of nominations that the store may still show
        self.evicted: set[str] = set()  # uids of evictions issued and not refused

    def apply(self, event: Event) -> None:
        """The engine receives this event."""
        match event:
            case NodeSeen(node):
                self.nodes[node.name] = node
            case NodeGone(name):
                self.nodes.pop(name, None)
            case PoolSeen() | PoolGone():
                pass  # what is in which pool, the invariants ask the engine
            case JobSeen() | JobGone() | GangSeen() | GangGone():
                self._job_or_gang(event)
            case TaskSeen(task) if task.ended:
                self._gone(task.uid)
            case TaskSeen(task):
                self.tasks[task.uid] = task
                if task.node:
                    self.bound.pop(task.uid, None)
                    self.nominated.pop(task.uid, None)
                    self.nominated_before.pop(task.uid, None)
                elif task.profile != FOREIGN and task.uid not in self.bound:
                    self._nominated(task)
            case TaskGone(uid):
                self._gone(uid)
            case BindRefused(uid, node) if self.bound.get(uid) == node:
                del self.bound[uid]
                before = self.nominated_before.pop(uid, "")
                if uid in self.tasks:
                    self._bind_refused(self.tasks[uid], node, before)
            case EvictRefused(uid):
                self.evicted.discard(uid)

    def _job_or_gang(self, event: JobSeen | JobGone | GangSeen | GangGone) -> None:
        match event:
            case JobSeen(job):
                self.jobs[job.uid] = job
            case JobGone(uid):
                self.jobs.pop(uid, None)
            case GangSeen(gang):
                self.gangs[gang.key] = gang.min_count
            case GangGone(key):
                self.gangs.pop(key, None)

    def _gone(self, uid: str) -> None:
        for known in (self.tasks, self.bound, self.nominated, self.nominated_before, self.withdrawn):
            known.pop(uid, None)
        self.evicted.discard(uid)

    def _bind_refused(self, task: Task, node: str, before: str) -> None:
        """The pod is nominated again where it was before, or else where its status says."""
        if task.nominated == node:
            self.withdrawn[task.uid] = node
        if before in self.nodes and not task.gates and not task.deleting:
            self.nominated[task.uid] = before
        else:
            self._nominated(task)

    def _nominated(self, task: Task) -> None:
        """What a waiting pod of ours says of its nomination."""
        if task.gates or task.deleting:
            self.nominated.pop(task.uid, None)
        elif task.gang is not None:
            pass  # what its status says counts for a gang that is complete, and here none is then nominated
        elif task.nominated and task.nominated != self.withdrawn.get(task.uid):
            self.nominated.setdefault(task.uid, task.nominated)

    def node_of(self, task: Task) -> str:
        """The node of a pod that is bound or being bound, as far as the engine can know."""
        return task.node or self.bound.get(task.uid, "")

    def nomination_of(self, task: Task) -> str:
        """The node that holds room for a pod that waits."""
        if self.node_of(task):
            return ""
        foreign = task.nominated if task.profile == FOREIGN and not task.deleting else ""
        return self.nominated.get(task.uid, "") or foreign

    def on(self, node: str) -> list[Task]:
        """Pods that hold room on a node."""
        return [
            task for task in self.tasks.values() if node in (self.node_of(task), self.nomination_of(task))
        ]

    def is_complete(self, gang: GangKey) -> bool:
        """Whether so many pods of a PodGroup have nodes as must start together."""
        placed = [task for task in self.tasks.values() if task.gang == gang and self.node_of(task)]
        return gang in self.gangs and len(placed) >= self.gangs[gang]

    def beside(self, task: Task, node: str) -> list[Task]:
        """Pods beside which this one must fit: room held for pods of lower priority is free to it."""
        others = [other for other in self.on(node) if other.uid != task.uid]
        return [each for each in others if self.node_of(each) or each.priority >= task.priority]

    def refused_by_pods(
        self, task: Task, node: str, leaving: Sequence[Task] = (), nominated: bool = False
    ) -> str:
        """Why other pods on nodes, but for those that leave, keep the pod away from this node.

        `nominated`: count pods that are nominated to a node as well.
        """
        others = (other for other in self.tasks.values() if other.uid != task.uid)
        there = (
            (self.node_of(other) or (self.nomination_of(other) if nominated else ""), other)
            for other in others
        )
        placed = [
            (self.nodes[name], replace(other, node=name))
            for name, other in there
            if name in self.nodes and other not in leaving
        ]
        return pod_rules.refusal(task.spec, task, self.nodes[node], [*self.nodes.values()], placed)

    def waiting(self) -> list[Task]:
        """Our pods that wait for a node."""
        ours = (task for task in self.tasks.values() if task.profile != FOREIGN)
        return [task for task in ours if not self.node_of(task) and not task.deleting]


class ModelServer:
    """The store, the watches and the binds under way."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, Task] = {}
        self.jobs: dict[str, Job] = {}
        self.delivered = Delivered()
        self.node_watch: list[Event] = []
        self.task_watch: list[Event] = []
        self.job_watch: list[Event] = []
        self.gangs: dict[GangKey, Gang] = {}
        self.binds_in_flight: list[Bind] = []  # not in the store yet
        self.reliefs_in_flight: list[Nominate | Evict] = []  # likewise, in order
        self.lost_binds: list[Bind] = []  # in the store or not; the engine got no answer
        self.ever_bound: dict[str, str] = {}
        self.reported_at: dict[str, float] = {}  # uid -> when a report was last written, seconds

    # -- the store -------------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """A node is created or changed."""
        self.nodes[node.name] = node
        self.node_watch.append(NodeSeen(node))

    def drop_node(self, name: str) -> None:
        """A node is removed, and its pods with it."""
        del self.nodes[name]
        self.node_watch.append(NodeGone(name))
        for task in [task for task in self.tasks.values() if task.node == name]:
            self.drop_task(task.uid)

    def put_task(self, task: Task) -> None:
        """A pod is created or changed."""
        self.tasks[task.uid] = task
        self.task_watch.append(TaskSeen(task))

    def drop_task(self, uid: str) -> None:
        """A pod is removed."""
        del self.tasks[uid]
        self.task_watch.append(TaskGone(uid))

    def end_task(self, uid: str, now: float, seconds: float) -> None:
        """A pod succeeds after it has run for this many seconds, and is removed."""
        task = replace(self.tasks[uid], phase="Succeeded", started=now - seconds, finished=now)
        self.task_watch.append(TaskSeen(task))
        self.drop_task(uid)

    def put_job(self, job: Job) -> None:
        """A DAG job is created or changed."""
        self.jobs[job.uid] = job
        self.job_watch.append(JobSeen(job))

    def drop_job(self, uid: str) -> None:
        """A DAG job is removed; its pods may stay for a while."""
        del self.jobs[uid]
        self.job_watch.append(JobGone(uid))

    def put_gang(self, gang: Gang) -> Event:
        """A PodGroup is created or changed, and is seen at once."""
        self.gangs[gang.key] = gang
        return GangSeen(gang)

    def drop_gang(self, key: GangKey) -> Event:
        """A PodGroup is removed, and that is seen at once."""
        del self.gangs[key]
        return GangGone(key)

    def on(self, node: str) -> list[Task]:
        """Pods bound to a node."""
        return [task for task in self.tasks.values() if task.node == node]

    def bind(self, uid: str, node: str) -> str:
        """What the binding subresource does; it does not check for room. Returns why not, empty if bound."""
        task = self.tasks.get(uid)
        if task is None:
            return "not found"
        if task.node or task.deleting or task.gates:
            return "already bound" if task.node else "deleting or gated"
        assert self.ever_bound.setdefault(uid, node) == node, f"{task} is bound twice"
        placed = self.on(node)
        self.put_task(replace(task, node=node))
        if node not in self.nodes or crowded(task.spec, self.nodes[node], placed):
            self.task_watch.append(TaskSeen(replace(self.tasks[uid], phase="Failed")))  # OutOfcpu
            self.drop_task(uid)
        return ""

    # -- between the store and the engine ----------------------------------------------------------

    def accept(self, commands: list[Command], now: float) -> None:
        """Check and accept the commands of the engine, at this time in seconds."""
        for command in commands:
            assert not isinstance(command, Fault), command
            match command:
                case Report():
                    self._report(command, now)
                case RecordPlan():
                    self._record_plan(command)
                case Nominate():
                    self._nominate(command)
                    self.reliefs_in_flight.append(command)
                case Evict():
                    self._check_eviction(command)
                    self.reliefs_in_flight.append(command)
                case Bind():
                    self._check_bind(command)
                    self.binds_in_flight.append(command)
        bound = (self.delivered.tasks[each.uid] for each in commands if isinstance(each, Bind))
        for gang in {task.gang for task in bound if task.gang is not None}:
            assert self.delivered.is_complete(gang), f"{gang} is bound in part"

    def _report(self, report: Report, now: float) -> None:
        assert report.message
        task = self.tasks.get(report.uid)
        if task is not None:
            seen = self.delivered.tasks.get(report.uid, task)
            is_old = now - self.reported_at.get(report.uid, 0.0) >= WRITTEN_AGAIN_SECONDS
            has_it = task.reported == seen.reported == report.message  # a later one may be under way
            assert not has_it or is_old, f"{task} gets a report that it has been seen to have"
            self.reported_at[report.uid] = now
            self.put_task(replace(task, reported=report.message))

    def _record_plan(self, record: RecordPlan) -> None:
        plan, seen = record.plan, self.delivered.jobs[record.uid]
        times = (plan.finish_seconds, plan.deadline, plan.slip_seconds)
        assert all(isfinite(each) for each in times if each is not None), plan
        held = (plan.share, plan.lent, plan.borrowed, plan.lent_seconds, plan.borrowed_seconds)
        assert all(amount > 0 for amounts in held for _, amount in amounts), plan
        assert (plan.slips, plan.slip_seconds) >= (seen.slips, seen.slip_seconds), f"{seen} forgets slips"
        job = self.jobs.get(record.uid)
        if job is not None:
            slips = {"slips": plan.slips, "slip_seconds": plan.slip_seconds}
            totals = {"lent_seconds": plan.lent_seconds, "borrowed_seconds": plan.borrowed_seconds}
            self.put_job(replace(job, deadline=plan.deadline, **slips, **totals))

    def _nominate(self, nominate: Nominate) -> None:
        known, uid = self.delivered, nominate.uid
        if uid not in known.tasks:
            return  # it has gone by a later event of the same step
        if nominate.node:
            assert not known.node_of(known.tasks[uid]), f"{nominate.name} is nominated though it is bound"
            known.nominated[uid] = nominate.node
            known.withdrawn.pop(uid, None)
        elif uid in known.nominated:
            known.withdrawn[uid] = known.nominated.pop(uid)
        else:  # a later event deletes or gates it, or a status of before had nominated it, or its gang
            task = known.tasks[uid]
            is_of_before = uid in known.withdrawn or (task.gang is not None and task.nominated)
            assert task.deleting or task.gates or is_of_before, f"{nominate.name} is not nominated"
            known.withdrawn[uid] = task.nominated

    def _check_eviction(self, evict: Evict) -> None:
        known = self.delivered
        victim, preemptor = known.tasks[evict.uid], known.tasks[evict.preemptor]
        assert evict.uid not in known.evicted, f"{victim} is evicted twice"
        there = {known.tasks[uid].node for uid in known.evicted if known.tasks[uid].gang == victim.gang}
        is_with_gang = bool(evict.pool and victim.gang) and known.nominated[preemptor.uid] in there
        is_there = victim.node == known.nominated[preemptor.uid] or is_with_gang
        assert victim.node == evict.node, f"{victim} is not on {evict.node}"
        assert is_there, f"{victim} is in nobody's way"
        is_lower = victim.priority < preemptor.priority
        assert is_lower or evict.pool, f"{victim} has not a lower priority than {preemptor}"
        known.evicted.add(evict.uid)

    def forget_nominations_of_gangs(self) -> None:
        """A new process does not take over what was held for gangs; once they are complete it would again."""
        for task in [each for each in self.tasks.values() if each.gang is not None and each.nominated]:
            self.put_task(replace(task, nominated=""))

    def write_relief(self, refused: bool) -> list[Event]:
        """The oldest nomination or eviction reaches the store, or is refused."""
        command = self.reliefs_in_flight.pop(0)
        task = self.tasks.get(command.uid)
        if isinstance(command, Nominate):
            if task is None or task.node or refused:
                return [NominateRefused(command.uid, command.node, "refused")]
            self.put_task(replace(task, nominated=command.node))
        elif refused:
            return [EvictRefused(command.uid, "refused")]
        elif task is not None:
            self.put_task(replace(task, deleting=True))
        return []

    def _check_bind(self, bind: Bind) -> None:
        known = self.delivered
        task = known.tasks[bind.uid]
        assert not known.node_of(task), f"{task} is bound twice"
        problem = refusal(task, known.nodes.get(bind.node), known.beside(task, bind.node))
        problem = problem or known.refused_by_pods(task, bind.node)
        assert not problem, f"{task} to {bind.node}: {problem}"
        assert not task.gates, f"{task} is gated"
        known.bound[bind.uid] = bind.node
        before = known.nominated.pop(bind.uid, bind.node)
        if before != bind.node:
            known.nominated_before[bind.uid] = before

    def deliver(self, nodes: int, tasks: int) -> list[Event]:
        """Take this many events from each watch; of jobs as many as of nodes."""
        events = self.job_watch[:nodes] + self.node_watch[:nodes] + self.task_watch[:tasks]
        del self.job_watch[:nodes], self.node_watch[:nodes], self.task_watch[:tasks]
        return events

    def answer(self, at: int) -> Event:
        """A bind reaches the store, and its answer comes back."""
        bind = self.binds_in_flight.pop(at)
        reason = self.bind(bind.uid, bind.node)
        return BindRefused(bind.uid, bind.node, reason) if reason else BindConfirmed(bind.uid, bind.node)

    def refuse(self, at: int) -> Event:
        """A bind is refused for a reason that has nothing to do with the pod."""
        bind = self.binds_in_flight.pop(at)
        return BindRefused(bind.uid, bind.node, "too many requests")

    def lose(self, at: int, before: bool) -> None:
        """A bind is lost before it reaches the store, or else its answer is lost."""
        bind = self.binds_in_flight.pop(at)
        if not before:
            self.bind(bind.uid, bind.node)
        self.lost_binds.append(bind)

    def resolve_lost_binds(self) -> Iterator[Event]:
        """Read the pods of binds whose answers were lost, and answer."""
        for bind in self.lost_binds:
            task = self.tasks.get(bind.uid)
            if task is not None and task.node == bind.node:
                yield BindConfirmed(bind.uid, bind.node)
            else:
                yield BindRefused(bind.uid, bind.node, "found unbound")
        self.lost_binds = []

    def relist(self) -> list[Event]:
        """A watch was lost: events for all stored objects, and for those the engine knows that are gone."""
        known = self.delivered
        self.node_watch, self.task_watch, self.job_watch = [], [], []
        gone: list[Event] = [NodeGone(name) for name in known.nodes if name not in self.nodes]
        gone += [TaskGone(uid) for uid in known.tasks if uid not in self.tasks]
        gone += [JobGone(uid) for uid in known.jobs if uid not in self.jobs]
        gone += [GangGone(key) for key in known.gangs if key not in self.gangs]
        stored = [*map(NodeSeen, self.nodes.values()), *map(TaskSeen, self.tasks.values())]
        return [*gone, *stored, *map(JobSeen, self.jobs.values()), *map(GangSeen, self.gangs.values())]
