"""Quincy's rounds: a network of all waiting pods is solved outside of the step, and the answer committed.

A round begins when pods wait for which some node has room, `interval` after the last one began. Until its
answer comes these pods are deferred. The answer is about a past: each pod of it is bound only where its node
is still there and has room now; pods and nodes may have gone, and others may have taken the room. If no
answer comes within `solveTimeout`, or none is to be had, pods are placed one by one by the same costs, so
that a solver that is away costs quality and no time.

M. Isard and others, "Quincy: Fair Scheduling for Distributed Computing Clusters", SOSP 2009; I. Gog and
others, "Firmament: Fast, Centralized Cluster Scheduling at Scale", OSDI 2016. Departures:
- costs are run times, numbers of pods or bandwidth, by model (costs/). Quincy's are bytes to be moved.
- running pods stay where they are. The paper's running arcs, by which a round may also end or move a pod, are
  left out: in Kubernetes a pod that is moved begins anew.
- pods have vectors of requests, a network has slots. A node has as many slots for a class as pods of it fit
  there, and in all as many as for the class of which most fit. Where pods of several classes did not fit
  together, the rest is solved again, up to `RETRIES` times, and then placed one by one.
- a class of pods has a node X of its own (graph.py).
- gangs are placed by the same costs, one pod after the other, because all of a gang is decided at once.
- pods' preferences have no weight;
- a pod of higher priority gets a node before one of lower priority: where a round has both, staying costs it
  more than nodes can differ (`_outranked`). So it does not stay by choice either. Copies come behind.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log2
from sys import maxsize
from typing import Literal, NamedTuple

import numpy as np
from typing_extensions import override

from eclectus.cluster.resources import PODS
from eclectus.framework import (
    COST_MOST,
    Action,
    Ask,
    Bind,
    ClassKey,
    Defer,
    FlowArc,
    FlowPart,
    Ints,
    Need,
    PendingTasks,
    Place,
    PlaceTraits,
    Reason,
    Rows,
    Solution,
    Task,
    TaskClass,
    Unschedulable,
    View,
    Wait,
    setting,
)
from eclectus.maths.pool_shares import level_shares
from eclectus.policies.quincy.costs import Costs, model_of
from eclectus.policies.quincy.costs.cost_model import WHOLE_MOST
from eclectus.policies.quincy.graph import Group, Job, Network, NodeSlots, Reach, network

ROUND_MOST = 2000  # pods in a round: as many as a step places
ARCS_MOST = 200_000  # from classes to nodes; of each class those to the cheapest nodes
NODES_LEAST = 64  # of a class, however many classes there are
RETRIES = 3  # rounds in succession after which pods did not fit together
SOON = 0.01  # seconds, after which a round that must not wait begins
AGAIN = 1.0  # seconds, after which pods that stay by choice are asked about again, if nothing happens
ASKED = Reason("is part of a flow problem of all waiting pods, whose answer is to come")
NEXT = Reason("is part of the next flow problem of all waiting pods")
ARCS_SHOWN = 20  # to people, of a group
Answer = Literal["awaited", "optimal", "infeasible", "failed"]
GONE = -1  # as a row
BUCKETS = 4  # of waiting time, for each doubling of it: pods in one are equal


class Round(NamedTuple):
    """What was asked."""

    network: Network
    nodes: Sequence[str]  # names, by position in the network
    groups: Sequence[Group]
    reaches: Sequence[Reach]
    group_of: Mapping[str, int]  # uid -> group
    at: float  # when it was asked, seconds
    until: float  # when it is given up, seconds


@dataclass(eq=False)
class Quincy(Place):
    """All waiting pods at once, at the least sum of costs."""

    costs: Costs = setting(
        "rosella",
        "what nodes cost: expected run times by learned speeds, pods on the node, or bandwidth that is left",
        why="run times are what users wait for",
    )
    bandwidth: str = setting(
        "example.com/bandwidth",
        "the extended resource that nodes offer and pods request, with `costs: network`",
        why="Kubernetes has no resource of its own for it: name yours",
    )
    fair_share: bool = setting(
        False,
        "a job gets no more than its max-min fair part of the slots, and no less if it has pods to start",
        why="throughput is best without; the paper's best results have it on",
    )
    interval: float = setting(
        0.2,
        "from the beginning of one round to the next, at least",
        why="a pod that comes alone is placed at once, and of a burst many are seen together",
        unit="s",
        least=0.01,
        most=60,
    )
    solve_timeout: float = setting(
        5.0,
        "how long a round waits for its answer; then pods are placed one by one by the same costs",
        why="ten times what 10,000 nodes with 2,000 pods take",
        unit="s",
        least=0.1,
        most=60,
    )

    def __post_init__(self) -> None:
        self._model = model_of(self.costs, self.bandwidth)
        self._round: Round | None = None
        self._next_at = -inf  # when the next round may begin, seconds
        self._retries = 0
        # For people: the last round, what became of it, and (group, node) -> pods.
        self._last: Round | None = None
        self._answer: Answer = "awaited"
        self._flows: dict[tuple[int, int], int] = {}

    @property
    @override
    def traits(self) -> PlaceTraits:
        """What jobs hold is needed for fair shares only."""
        needs: frozenset[Need] = frozenset({"shares"}) if self.fair_share else frozenset()
        return PlaceTraits(defers=True, takes_all_pending=True, asks_solver=True, needs=needs)

    @override
    def counted_by(self, task: Task) -> str:
        return job_of(task)

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Ask, wait, or commit what was answered."""
        taken = list[Task]()
        mode, solution = "", None
        for task in pending:
            task_class = view.task_class(task)
            if not task_class.fits_now_count:
                yield Unschedulable(task)
                continue
            if not mode and task.gang is None:
                mode, solution = self._mode(view)
            if task.gang is not None or mode == "one by one":
                yield self._cheapest(view, task)
            elif mode == "wait":
                yield Defer(task, self._wait)
                pending.skip(task, maxsize)
            else:
                taken.append(task)
                if len(taken) == ROUND_MOST:
                    break
        if not taken:
            return
        if solution is not None:
            yield from self._commit(view, taken, solution)
        else:
            yield from self._ask(view, taken)

    def _mode(self, view: View) -> tuple[str, Solution | None]:
        """What is to be done with pods now, and the solution if that is to commit it."""
        if self._round is None:
            return ("wait" if view.now < self._next_at else "ask"), None
        solution = view.solution(self)
        if solution is None and view.now < self._round.until:
            return "wait", None
        self._answer = "failed" if solution is None else solution.status
        if solution is None or solution.status != "optimal":
            self._round = None
            return "one by one", None
        return "commit", solution

    @property
    def _wait(self) -> Wait:
        """For the answer, or for the next round."""
        return Wait(NEXT, self._next_at) if self._round is None else Wait(ASKED, self._round.until)

    @override
    def flow_part(self, uid: str, now: float) -> FlowPart | None:
        last = self._last
        at = None if last is None else last.group_of.get(uid)
        if last is None or at is None:
            return None
        group, of_class = last.groups[at], last.reaches[last.groups[at].reach]
        arcs = [
            FlowArc(last.nodes[node], cost, slots, self._flows.get((at, node), 0))
            for node, slots, cost in zip(*(each.tolist() for each in of_class[:3]), strict=True)
        ]
        arcs.sort(key=lambda arc: (not arc.flow, arc.cost))
        sent = sum(arc.flow for arc in arcs)
        return FlowPart(
            asked=now - last.at,
            answer=self._answer,
            groups=len(last.groups),
            arcs=len(last.network.problem.tails),
            pods=group.pods,
            staying=group.waits_at,
            stay=group.pods - sent if self._answer == "optimal" else 0,
            nodes=tuple(arcs[:ARCS_SHOWN]),
            not_listed=max(len(arcs) - ARCS_SHOWN, 0),
        )

    # -- asking ------------------------------------------------------------------------------------

    def _ask(self, view: View, taken: Sequence[Task]) -> Iterator[Action]:
        """Begin a round."""
        self._round = self._last = self._begun(view, taken)
        self._answer, self._flows = "awaited", {}
        self._next_at = view.now + self.interval
        yield Ask(self._round.network.problem, self.solve_timeout)
        yield from (Defer(task, Wait(ASKED, self._round.until)) for task in taken)

    def _begun(self, view: View, taken: Sequence[Task]) -> Round:
        waiting = _Waiting(view, taken)
        known = {key: self._known(view, each, len(waiting.classes)) for key, each in waiting.classes.items()}
        rows = np.unique(np.concatenate([each.rows for each in known.values()]))
        slots = np.zeros(len(rows), dtype=np.int64)
        reaches = []
        for key, each in known.items():
            nodes = np.searchsorted(rows, each.rows)
            rises = np.full(len(nodes), self._model.rise(waiting.classes[key]), dtype=np.int64)
            reaches.append(Reach(nodes, each.slots, each.costs, rises))
            np.maximum.at(slots, nodes, each.slots)
        place_of = {key: at for at, key in enumerate(known)}
        groups = [
            Group(waiting.jobs[key.job], place_of[key.of_class], len(tasks), staying)
            for (key, tasks), staying in zip(
                waiting.groups.items(), self._staying(view, waiting), strict=True
            )
        ]
        groups = _outranked(groups, [key.precedence for key in waiting.groups], reaches)
        jobs = self._bounds(view, waiting, int(slots.sum()))
        built = network(groups, jobs, reaches, NodeSlots(slots, *self._model.crowding(view, rows)))
        group_of = {task.uid: at for at, tasks in enumerate(waiting.groups.values()) for task in tasks}
        names = [view.cluster.names[row] for row in rows.tolist()]
        return Round(built, names, groups, reaches, group_of, view.now, view.now + self.solve_timeout)

    def _known(self, view: View, task_class: TaskClass, classes: int) -> _Known:
        """The nodes with room for a class, the cheapest of very many; and what it costs there."""
        rows = task_class.fits_now_rows
        costs = self._model.costs(view, task_class, rows)
        most = max(ARCS_MOST // classes, NODES_LEAST)
        if len(rows) > most:
            cheapest = np.sort(np.argsort(costs, kind="stable")[:most])
            rows, costs = rows[cheapest], costs[cheapest]
        slots: Ints = np.floor(1.0 - task_class.overflow[rows]).astype(np.int64)
        return _Known(rows, np.maximum(slots, 1), costs)

    def _staying(self, view: View, waiting: _Waiting) -> Iterator[int]:
        """What it costs each group that one of its pods stays without a node."""
        for key, tasks in waiting.groups.items():
            waited = max(view.now - tasks[0].created, 0.0)
            yield self._model.waiting(view, waiting.classes[key.of_class], waited)

    def _bounds(self, view: View, waiting: _Waiting, slots: int) -> list[Job]:
        """How many of its tasks each job starts at least and at most."""
        if not self.fair_share:
            return [Job()] * len(waiting.jobs)
        shares = view.shares(self)
        running = [shares.held(job).get(PODS, 0) for job in waiting.jobs]
        pods = Counter[str]()
        for key, tasks in waiting.groups.items():
            pods[key.job] += len(tasks)
        demands = [float(held + pods[job]) for held, job in zip(running, waiting.jobs, strict=True)]
        none, equal = [0.0] * len(demands), [1.0] * len(demands)
        fair = level_shares(float(slots + sum(running)), demands, none, equal)
        return [
            Job(max(floor(share) - held, 0), max(ceil(share) - held, 0))
            for share, held in zip(fair, running, strict=True)
        ]

    # -- answers -----------------------------------------------------------------------------------

    def _commit(self, view: View, taken: Sequence[Task], solution: Solution) -> Iterator[Action]:
        """Bind what was answered as far as it still holds; all others wait for the next round."""
        begun, self._round = self._round, None
        if begun is None:
            return
        rows: dict[int, deque[int]] = defaultdict(deque)
        for group, node, pods in begun.network.placed(solution.routes):
            self._flows[group, node] = self._flows.get((group, node), 0) + pods
            rows[group].extend([view.cluster.rows.get(begun.nodes[node], GONE)] * pods)
        misfits, left = list[Task](), list[Task]()
        for task in taken:
            to = rows.get(begun.group_of.get(task.uid, -1))
            if not to:
                left.append(task)
            elif (row := to.popleft()) != GONE and view.task_class(task).scalars.fits_now[row]:
                yield Bind(task, row)
            else:
                misfits.append(task)
        yield from self._try_again(view, misfits)
        for task in left:
            at = begun.group_of.get(task.uid)
            yield Defer(task, self._next_wait(view) if at is None else self._stays(view, begun, at))

    def _try_again(self, view: View, misfits: Sequence[Task]) -> Iterator[Action]:
        """Pods that did not fit together are in the next round, which is due; after several one by one."""
        self._retries = self._retries + 1 if misfits else 0
        if self._retries > RETRIES:
            self._retries = 0
            yield from (self._cheapest(view, task) for task in misfits)
        elif misfits:
            self._next_at = view.now
            yield from (Defer(task, self._next_wait(view)) for task in misfits)

    def _next_wait(self, view: View) -> Wait:
        return Wait(NEXT, max(self._next_at, view.now + SOON))

    def _stays(self, view: View, begun: Round, group: int) -> Wait:
        """Why a pod of the round stays without a node."""
        of = begun.groups[group]
        staying, cheapest = of.waits_at, int(begun.reaches[of.reach].costs.min())
        message = (
            f"stays without a node for now: that costs {staying}, and the cheapest node {cheapest} or more"
        )
        return Wait(Reason(message), view.now + max(self.interval, AGAIN))

    def _cheapest(self, view: View, task: Task) -> Action:
        """The node with room of least cost; of equal ones the lowest row."""
        task_class = view.task_class(task)
        rows = task_class.fits_now_rows
        if not len(rows):
            return Unschedulable(task)
        costs = self._model.costs(view, task_class, rows) + self._model.crowding(view, rows)[0]
        return Bind(task, int(rows[costs.argmin()]))


class _Known(NamedTuple):
    """Rows with room for a class, how many of its pods fit on each, and what the first costs."""

    rows: Rows
    slots: Ints
    costs: Ints


class _GroupKey(NamedTuple):
    """What equal pods have in common."""

    job: str
    of_class: ClassKey
    precedence: tuple[int, bool]  # priority, and whether it is no copy
    bucket: int  # of the time that they have waited


class _Waiting:
    """The tasks of a round. `jobs`: their positions."""

    def __init__(self, view: View, taken: Sequence[Task]) -> None:
        self.groups: dict[_GroupKey, list[Task]] = {}
        self.jobs: dict[str, int] = {}
        self.classes: dict[ClassKey, TaskClass] = {}
        for task in taken:
            job, class_key = job_of(task), (task.spec, task.workload)
            self.jobs.setdefault(job, len(self.jobs))
            if class_key not in self.classes:
                self.classes[class_key] = view.task_class(task)
            bucket = int(BUCKETS * log2(1.0 + max(view.now - task.created, 0.0)))
            key = _GroupKey(job, class_key, (task.priority, not task.copy_of), bucket)
            self.groups.setdefault(key, []).append(task)


def _outranked(
    groups: Sequence[Group], precedence: Sequence[tuple[int, bool]], reaches: Sequence[Reach]
) -> list[Group]:
    """The groups, with such costs of staying that one of higher precedence stays only if all lower ones do.

    Each step of precedence adds more than what two groups can differ in. Nodes that count as dead are left
    out of that: nobody has to go there.
    """
    ranks = {each: rank for rank, each in enumerate(sorted(set(precedence)))}
    if len(ranks) == 1:
        return list(groups)
    costs = np.concatenate([reach.costs for reach in reaches])
    costs = costs[costs < WHOLE_MOST]
    staying = [group.waits_at for group in groups]
    step = (int(np.ptp(costs)) if len(costs) else 0) + max(staying) - min(staying) + 1
    return [
        group._replace(waits_at=min(group.waits_at + ranks[each] * step, COST_MOST))
        for group, each in zip(groups, precedence, strict=True)
    ]


def job_of(task: Task) -> str:
    """Its namespace and controller; of a pod without one the kind of its work."""
    return f"{task.namespace}/{task.job or task.workload}"
