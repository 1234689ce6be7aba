"""Nominations: pending pods for which room is held on one node until it is free.

A pod is nominated because pods of lower priority are evicted for it there, or because its status says so
(`nominatedNodeName`, written by an earlier process or by another component). Its room counts as held, as in
kube-scheduler's filters. The pod still waits in its class queue: room elsewhere may come first.

Of a gang that is not complete either so many pods are nominated as start together, or none: they are bound
when all of them fit, and if one of them loses its room all do.

Rules of kube-scheduler: the nominated node is tried before all others; room held for a pod of lower priority
is free to a pod of higher priority; a nominated pod whose room cannot come any more is no longer nominated,
nor one whose pool holds too much when its room is free: a limit was lowered in the meantime.
Room comes from pods of lower priority that are on their way out or, where the pod's Order keeps the node free
for it, from any that end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from eclectus.accounts.pools import Limit, pool_group
from eclectus.engine.gangs import WaitingGang
from eclectus.engine.queues.class_queues import PendingClass
from eclectus.engine.state import State
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.framework import JobPlanner, Order
from eclectus.model.objects import GangKey, Task, may_outrank, outranks


class Nominations:
    """Holds room for pending pods of our profiles, and binds them when it is free."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._placed = state.placed
        self._usage_cursor = self._shape_cursor = 0
        self._limits_version = 0  # of pools, as of the last review
        # Nodes with nominated pods that have changed since the last placement.
        self._changed: set[str] = set()
        # uid -> the node that was withdrawn: the pod's status names it until our write has arrived.
        self._withdrawn: dict[str, str] = {}
        self.withdrawn: Mapping[str, str] = self._withdrawn
        self._inherited: dict[str, None] = {}  # uids of pods nominated by others, perhaps to take room back
        self._inherited_gangs: dict[GangKey, WaitingGang] = {}

    def observe(self, task: Task) -> None:
        """A pending pod of ours was seen. No room is held for a part of a gang, nor beyond a pool's limit."""
        uid = task.uid
        of_gang = self._gang_of(task)
        if task.gates or task.deleting:
            if self._placed.is_nominated(uid):
                self._placed.remove(uid)
        elif of_gang is not None and not (of_gang.has_room and self._placed.is_nominated(uid)):
            if self._placed.is_nominated(uid):
                self._release(task)
        elif self._placed.is_nominated(uid):  # its requests or labels may have changed
            self._placed.set(task, self._placed.node_of(uid), self._state.now)
        elif not task.nominated or task.nominated == self._withdrawn.get(uid):
            return
        elif self._state.pools.limit_on(task) is None:
            self._placed.set(task, task.nominated, self._state.now)
            self._inherited[uid] = None

    def inherit(self, gang: WaitingGang) -> None:
        """Hold the room that an earlier process was making for a gang, or for a part of it, for this step.

        Policies are asked in it, so that nobody takes the room before (`review_inherited`).
        """
        rows, pools = self._state.cluster.rows, self._state.pools
        for task in gang.held.values():
            is_named = task.nominated in rows and task.nominated != self._withdrawn.get(task.uid)
            if is_named and self._takes_back(task) and pools.limit_on(task) is None:
                self._placed.set(task, task.nominated, self._state.now)
                gang.has_room = True
                self._inherited_gangs[gang.key] = gang

    def bind_refused(self, task: Task, node: str, nominated: str) -> None:
        """A bind to this node was refused: the pod is not nominated there again, whatever its status says.

        `nominated`: another node, to which it was nominated before the bind, and is again; or empty.
        """
        if task.nominated == node:
            self._withdrawn[task.uid] = node
        state = self._state
        if nominated in state.cluster.rows and not task.gates and not state.gangs.keeps(task):
            self._placed.set(task, nominated, state.now)
        else:
            self.observe(task)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        self._withdrawn.pop(uid, None)

    def node_gone(self, node: str) -> None:
        """A node is about to lose its row."""
        for task in self._ours_on(node):
            self.withdraw(task)  # and with it others of its gang

    def nominate(self, task: Task, row: int) -> None:
        """Hold room for the pod on this row. Pods of lower priority nominated there give theirs up."""
        state, node = self._state, self._state.cluster.names[row]
        for other in self._lower_on(node, task):
            if other.uid in state.pending:
                self.withdraw(other)
        self._withdrawn.pop(task.uid, None)
        self._placed.set(task, node, state.now)
        state.nominate(task, node)
        if state.gangs.keeps(task):
            gang = state.gangs.pods[task.uid]
            gang.has_room = True
            state.dequeue_lead(gang)

    def withdraw(self, task: Task) -> None:
        """Hold no room for this nominated pod any more. Policies are soon asked about it again."""
        state, profile = self._state, self._state.profiles[task.profile]
        if not self._placed.is_nominated(task.uid):
            return  # it went with another pod of its gang
        gang = self._gang_of(task)
        if gang is not None:
            self.withdraw_gang(gang)
            return
        self._release(task)
        key = (task.profile, (task.spec, task.workload))
        if profile.relieve.traits.evicts:
            state.relief.disappoint(key, state.now)
        if profile.order.traits.reserves_nodes:
            state.reserving.ask_again(key, state.now)

    def withdraw_gang(self, gang: WaitingGang) -> None:
        """Hold no room for any pod of a gang that is not complete: it waits for its turn again."""
        for task in self._give_back(gang):
            self._state.relief.disappoint((task.profile, gang.key), self._state.now)

    def _give_back(self, gang: WaitingGang) -> list[Task]:
        """Hold no room for any pod of the gang; those for which it was held."""
        gang.has_room = False
        tasks = self.of_gang(gang)
        for task in tasks:
            self._release(task)
        self._state.gangs.change(gang)
        return tasks

    def of_gang(self, gang: WaitingGang) -> list[Task]:
        """The pods of a gang that is not complete for which room is held."""
        return [self._state.pending[uid] for uid in gang.held if self._placed.is_nominated(uid)]

    def _gang_of(self, task: Task) -> WaitingGang | None:
        """The gang with which a nominated pod starts, or loses its room; None: it does by itself."""
        return self._state.gangs.pods[task.uid] if self._state.gangs.keeps(task) else None

    def _release(self, task: Task) -> None:
        self._withdrawn[task.uid] = self._placed.node_of(task.uid)
        self._placed.remove(task.uid)
        self._state.nominate(task, "")

    def dispatch_changed(self) -> None:
        """Bind nominated pods whose room is free now, on the nodes that have changed.

        Where no pod is nominated it need not be called.
        """
        cluster = self._state.cluster
        used, reshaped = cluster.usage.since(self._usage_cursor), cluster.shape.since(self._shape_cursor)
        self._usage_cursor, self._shape_cursor = cluster.usage.head, cluster.shape.head
        nodes = list(self._placed.nominated)
        if used is not None and reshaped is not None:
            changed = {cluster.names[row] for row in (*used, *reshaped)}
            nodes = [
                node
                for node in nodes
                if node in changed or node not in cluster.rows or (changed and self._has_pod_rules(node))
            ]
        for node in nodes:
            self._dispatch(node)
        self._changed.update(nodes)

    def review_limits(self) -> None:
        """Take back what pools would hold beyond limits that have changed, the least important pods first."""
        version = self._state.pools.limits_version
        if version != self._limits_version:
            self._limits_version = version
            self._take_back_excess(
                task for node in list(self._placed.nominated) for task in self._ours_on(node)
            )

    def _take_back_excess(self, tasks: Iterable[Task]) -> None:
        pools = self._state.pools
        nominated = [task for task in tasks if task.pool]
        jobs = Counter(map(pool_group, nominated))
        for task in sorted(nominated, key=lambda each: (each.priority, -each.created)):
            limit = pools.excess_of(task, jobs[pool_group(task)])
            if limit is not None and self._placed.is_nominated(task.uid):
                jobs[pool_group(task)] -= 1
                self._hold_back(task, limit)

    def review_inherited(self) -> None:
        """Let policies go on where an earlier process was making room for pods of a pool and was stopped.

        It may have evicted some of the victims and not the others. Until now their room was held, so that
        nobody took it; policies are asked in this step, and prefer the node.
        """
        inherited = [task for uid in self._inherited if (task := self._state.pending.get(uid)) is not None]
        self._inherited.clear()
        for gang in self._inherited_gangs.values():
            tasks = self.of_gang(gang) if gang.has_room else []
            if tasks and not (len(tasks) >= gang.needed and self._may_start_together(tasks)):
                self._give_back(gang)
                self._state.relief.add((tasks[0].profile, gang.key))
        self._inherited_gangs.clear()
        for task in inherited:
            row = self._state.cluster.rows.get(self._placed.node_of(task.uid))
            if row is None or not self._takes_back(task) or not self._placed.is_nominated(task.uid):
                continue
            if not self._fits(task, row, once_gone=True) and not self._is_kept(task, row):
                self._release(task)
                self._state.refused(task.profile, (task.spec, task.workload))

    def _is_inherited(self, task: Task) -> bool:
        return task.uid in self._inherited and self._takes_back(task)

    def _takes_back(self, task: Task) -> bool:
        return bool(task.pool) and self._state.profiles[task.profile].relieve.traits.reclaims

    def review_kept(self) -> None:
        """Ask Orders whether they still keep nodes free: a reason may end although no node has changed."""
        for node in list(self._placed.nominated):
            if any(self._order_of(task).traits.reserves_nodes for task in self._ours_on(node)):
                self._dispatch(node)

    def _has_pod_rules(self, node: str) -> bool:
        """Whether a change of another node may have opened this one to a pod that is nominated to it."""
        return any(task.spec.has_pod_rules for task in self._placed.nominated_on(node))

    def _dispatch(self, node: str) -> None:
        row, gangs = self._state.cluster.rows.get(node), dict[GangKey, WaitingGang]()
        for task in sorted(self._ours_on(node), key=lambda each: (-each.priority, each.created)):
            if (gang := self._gang_of(task)) is not None:
                gangs[gang.key] = gang
            elif row is not None and self._fits(task, row):
                if not self._is_held_back(task):
                    self._state.relief.succeeded((task.profile, (task.spec, task.workload)))
                    self.bind(task, row)
            elif row is None or not (self._is_inherited(task) or self._may_get_room(task, row)):
                self.withdraw(task)
        for gang in gangs.values():
            if gang.has_room:
                self._dispatch_gang(gang)

    def _dispatch_gang(self, gang: WaitingGang) -> None:
        """Bind all pods of a gang for which room is held, when all of them fit; none, if one never will."""
        tasks, rows = self.of_gang(gang), self._state.cluster.rows
        places = [(task, rows.get(self._placed.node_of(task.uid))) for task in tasks]
        waiting = [each for each in places if each[1] is None or not self._fits(each[0], each[1])]
        if gang.key in self._inherited_gangs and (waiting or len(tasks) < gang.needed):
            return
        if waiting and not self._may_start_together([task for task, _ in waiting]):
            self.withdraw_gang(gang)
        elif not waiting:
            jobs = Counter(map(pool_group, tasks))
            if any(self._state.pools.excess_of(task, jobs[pool_group(task)]) for task in tasks):
                self.withdraw_gang(gang)
                return
            gang.has_room = False
            self._state.relief.succeeded((tasks[0].profile, gang.key))
            for task, row in places:
                if row is not None:
                    self.bind(task, row)
            self._state.gangs.succeeded(gang, tasks)

    def _may_start_together(self, tasks: Iterable[Task]) -> bool:
        """Whether each has room when those that are on their way out have ended."""
        places = ((task, self._state.cluster.rows.get(self._placed.node_of(task.uid))) for task in tasks)
        return all(row is not None and self._fits(task, row, once_gone=True) for task, row in places)

    def _is_held_back(self, task: Task) -> bool:
        """Whether a limit of its pool keeps the pod from starting: then it waits for that, without room."""
        limit = self._state.pools.limit_on(task)
        if limit is not None:
            self._hold_back(task, limit)
        return limit is not None

    def _hold_back(self, task: Task, limit: Limit) -> None:
        gang = self._gang_of(task)
        if gang is not None:
            self.withdraw_gang(gang)
            return
        if self._placed.is_nominated(task.uid):
            self._release(task)
        if self._state.places.of(task.uid) in ("classQueue", "nodeQueue"):
            self._state.leave(task.uid)
            self._state.hold_back(task, limit)

    def bind(self, task: Task, row: int) -> None:
        """Bind a waiting pod, which may take what is held on this row for pods of lower priority."""
        self._state.dequeue(task.uid)
        self._state.bind(task, row, instead_of=self._lower_on(self._state.cluster.names[row], task))

    def bind_above_lower(self, refused: Mapping[PendingClass, None]) -> None:
        """Bind refused pods where room is held only for pods of lower priority.

        `refused`: the classes that were refused just now, or that pods have joined. All others can fit only
        on nodes that have changed since the last call.
        """
        nominated = list(self._placed.nominated)
        changed = [node for node in nominated if node in self._changed]
        self._changed.clear()
        for pending in self._state.class_queues.unschedulable_since(inf) if changed else refused:
            if pending.gang is None:
                self._bind_above_lower(pending, nominated if pending in refused else changed)

    def _bind_above_lower(self, pending: PendingClass, nodes: Sequence[str]) -> None:
        nominated = (other for node in nodes for other in self._placed.nominated_on(node))
        lowest = min((other.priority for other in nominated), default=inf)
        while may_outrank(pending.highest_priority, lowest) and len(pending):
            task = pending.highest()
            row = self.row_held_for_lower(task, nodes)
            if row is None:
                return
            if not self._is_held_back(task):
                self.bind(task, row)

    def row_held_for_lower(self, task: Task, nodes: Iterable[str] | None = None) -> int | None:
        """One of the nodes, by default of all, where room for the pod is held for lower priorities alone."""
        rows = self._state.cluster.rows
        for node in self._placed.nominated if nodes is None else nodes:
            row = rows.get(node)
            if row is not None and self._lower_on(node, task) and self._fits(task, row):
                return row
        return None

    def _fits(self, task: Task, row: int, *, once_gone: bool = False) -> bool:
        """Whether the pod fits beside what is held for others of its priority or higher.

        `once_gone`: when those that are on their way out have ended.
        """
        room = RoomWithout(self._state.view.task_class(task), row)
        node = self._state.cluster.names[row]
        if self._placed.node_of(task.uid) == node:
            room.remove(task)
        for other in self._lower_on(node, task):
            room.remove(other)
        evicted = self._state.evictions.sent
        for pod, _ in self._placed.bound_on(row) if once_gone else ():
            if pod.deleting or pod.uid in evicted:
                room.remove(pod)
        return room.fits

    def _may_get_room(self, task: Task, row: int) -> bool:
        """Whether a pod of lower priority is on its way out: evicted, or being deleted for another reason.

        For a pool that takes room back, one of any other pool. Of any priority where it was evicted for
        another pod and there is room for both once it has gone. Or whether the node is kept free for the pod.
        """
        evicted = self._state.evictions.sent
        if not self._state.view.task_class(task).scalars.feasible[row]:
            return False
        takes_back = self._takes_back(task)
        is_leaving = any(
            evicted.get(pod.uid) == task.uid
            or (
                (pod.deleting or pod.uid in evicted)
                and (outranks(task, pod) or (takes_back and pod.pool != task.pool))
            )
            for pod, _ in self._placed.bound_on(row)
        )
        return is_leaving or self._fits_beside_others(task, row) or self._is_kept(task, row)

    def _fits_beside_others(self, task: Task, row: int) -> bool:
        """Whether pods were evicted there for others, and when they have gone there is room for this one too.

        Room that is free first is free to any of those that are nominated, whichever pod was evicted for it.
        """
        evicted = self._state.evictions.sent
        is_one_evicted = any(pod.uid in evicted for pod, _ in self._placed.bound_on(row))
        return is_one_evicted and self._fits(task, row, once_gone=True)

    def _is_kept(self, task: Task, row: int) -> bool:
        order = self._order_of(task)
        if not isinstance(order, JobPlanner) or not order.traits.reserves_nodes:
            return False
        if self._state.may_evict_for(task):
            return False
        return bool(self._state.guarded(order, order.keeps_node, self._state.view, task, row))

    def _order_of(self, task: Task) -> Order:
        return self._state.profiles[task.profile].order

    def _ours_on(self, node: str) -> list[Task]:
        return [task for task in self._placed.nominated_on(node) if task.uid in self._state.pending]

    def _lower_on(self, node: str, task: Task) -> list[Task]:
        lower = [other for other in self._placed.nominated_on(node) if outranks(task, other)]
        if task.gang is None or not lower or not self._state.gangs.keeps(task):
            return lower
        return [other for other in lower if other.gang != task.gang]  # with which it starts
