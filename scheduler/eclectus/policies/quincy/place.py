"""Quincy's rounds: a network of all waiting pods is solved outside of the step, and the answer committed.

A round begins when pods wait for which some node has room, `interval` after the last one began. Until its
answer comes these pods are deferred. The answer is about a past: each pod of it is bound only where its node
is still there and has room now; pods and nodes may have gone, and others may have taken the room. If no
answer comes within `solveTimeout`, or none is to be had, pods are placed one by one by the same costs, so
that a solver that is away costs quality and no time.

M. Isard and others, "Quincy: Fair Scheduling for Distributed Computing Clusters", SOSP 2009; I. Gog and
others, "Firmament: Fast, Centralized Cluster Scheduling at Scale", OSDI 2016. Departures:
- costs are by model (costs/): by default run times. Those of the paper, bytes to be moved, are `quincy`.
- by default running pods stay where they are. With `running: preempt` a round may end those that say so
  (running.py), after a least time and for a least gain. None is moved, for a pod that is moved begins anew.
- pods have vectors of requests, a network has slots. A node has as many slots for a class as pods of it fit
  there, and in all as many as for the class of which most fit. Where pods of several classes did not fit
  together, the rest is solved again, up to `RETRIES` times and within the time limit of the first round, and
  then placed one by one.
- a class of pods has a node X of its own (graph.py).
- gangs are placed by the same costs, one pod after the other, because all of a gang is decided at once.
- pods' preferences have no weight;
- a pod of higher priority gets a node before one of lower priority: where a round has both, staying costs it
  more than nodes can differ (`groups.outranked`). So it does not stay by choice either. Copies come behind.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from sys import maxsize
from typing import Literal

from typing_extensions import override

from eclectus.cluster.resources import PODS
from eclectus.framework import (
    Action,
    Ask,
    Bind,
    Defer,
    FlowPart,
    Need,
    PendingTasks,
    Place,
    PlaceTraits,
    Preempt,
    Reason,
    SettingsError,
    Solution,
    Task,
    Unschedulable,
    View,
    Wait,
    setting,
)
from eclectus.maths.pool_shares import level_shares
from eclectus.policies.quincy.costs import Costs, Prices, model_of
from eclectus.policies.quincy.costs.cost_model import DataCosts
from eclectus.policies.quincy.draft import Draft
from eclectus.policies.quincy.graph import Job
from eclectus.policies.quincy.groups import job_of
from eclectus.policies.quincy.round import Answer, Round
from eclectus.policies.quincy.running import Ends, Hysteresis, RunningPods

ROUND_MOST = 2000  # pods in a round: as many as a step places
RETRIES = 3  # rounds in succession after which pods did not fit together
SOON = 0.01  # seconds, after which a round that must not wait begins
AGAIN = 1.0  # seconds, after which pods that stay by choice are asked about again, if nothing happens
ASKED = Reason("is part of a flow problem of all waiting pods, whose answer is to come")
NEXT = Reason("is part of the next flow problem of all waiting pods")
ENDING = Reason("pods are ended for it by the flow problem of all waiting pods")
NO_PLACE = Reason("no node has room, nor would one without the pods that may be ended for it now")
GONE = -1  # as a row

Running = Literal["pinned", "preempt"]


@dataclass(eq=False)
class Quincy(Place):
    """All waiting pods at once, at the least sum of costs."""

    costs: Costs = setting(
        "rosella",
        "what nodes cost: expected run times by learned speeds, the time in which pods' data come to them, "
        "pods on the node, or bandwidth that is left",
        why="run times are what users wait for",
    )
    bandwidth: str = setting(
        "example.com/bandwidth",
        "the extended resource that nodes offer and pods request, with `costs: network`",
        why="Kubernetes has no resource of its own for it: name yours",
    )
    rack: str = setting(
        "topology.kubernetes.io/zone",
        "the label by whose value nodes are in one rack, with `costs: quincy`; a node without it is alone",
        why="Kubernetes has no label for racks, and what moves between zones is slow and paid for",
    )
    rack_seconds: float = setting(
        1.0,
        "the time that a GB takes from another node of the rack, with `costs: quincy`",
        why="Firmament's; 8 Gbit/s",
        unit="s/GB",
        least=0,
        most=100_000,
    )
    across_seconds: float = setting(
        2.0,
        "the time that a GB takes from another rack, with `costs: quincy`",
        why="Firmament's; it took 20 where the network between racks was the bottleneck",
        unit="s/GB",
        least=0,
        most=100_000,
    )
    wait_weight: float = setting(
        0.5,
        "what a second of waiting costs, in seconds of moving data, with `costs: quincy`",
        why="Firmament's: a node to which data move for 10 s is taken after 20 s",
        unit="times",
        least=0.001,
        most=1000,
    )
    fair_share: bool = setting(
        False,
        "a job gets no more than its max-min fair part of the slots, and no less if it has pods to start",
        why="throughput is best without; the paper's best results have it on",
    )
    running: Running = setting(
        "pinned",
        "whether rounds may end running pods for others, with `preempt`: those that say that they are "
        "restartable, of Jobs, which then make new ones",
        why="what such a pod has done is lost",
    )
    min_runtime: float = setting(
        60.0,
        "for how long a pod runs before it may be ended, with `running: preempt`",
        why="a pod that has just begun has cost its start, and shares change with every pod that comes",
        unit="s",
        least=0,
        most=86_400,
    )
    min_gain: float = setting(
        10.0,
        "how much has to be saved where a pod is ended, beside what it has run, with `running: preempt`",
        why="as long as a pod takes to start anew; costs are no more exact than that",
        unit="s",
        least=0,
        most=86_400,
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
        prices = Prices(self.rack, self.rack_seconds, self.across_seconds, self.wait_weight)
        self._model = model_of(self.costs, self.bandwidth, prices)
        if self.running == "preempt" and not self._model.is_time:
            raise SettingsError("running", "preempt needs costs that are times: rosella or quincy")
        self._hysteresis = Hysteresis(self.min_runtime, self.min_gain)
        self._data: DataCosts | None = None  # in this cycle
        self._round: Round | None = None
        self._next_at = -inf  # when the next round may begin, seconds
        self._retries = 0
        # When the next round is given up at the latest, seconds: pods have waited for a solver before it.
        self._due = inf
        # For people: the last round, what became of it, and (group, node) -> pods.
        self._last: Round | None = None
        self._answer: Answer = "awaited"
        self._flows: dict[tuple[int, int], int] = {}

    @property
    @override
    def traits(self) -> PlaceTraits:
        """What jobs hold is needed for fair shares only, and what may be ended to end it."""
        preempts = self.running == "preempt"
        needs: set[Need] = {"shares"} if self.fair_share else set()
        if preempts:
            needs |= {"restartable pods"}
        return PlaceTraits(
            defers=True, takes_all_pending=True, asks_solver=True, preempts=preempts, needs=frozenset(needs)
        )

    @override
    def counted_by(self, task: Task) -> str:
        return job_of(task)

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Ask, wait, or commit what was answered."""
        taken = list[Task]()
        mode, solution = "", None
        self._data = self._model.data(view)
        for task in pending:
            if not view.task_class(task).fits_now_count and not self._may_preempt(view, task):
                yield Unschedulable(task)
                continue
            if self._preempts(view) and view.placed.is_nominated(task.uid):
                yield Defer(task, Wait(ENDING, view.now + AGAIN))
                continue
            if not mode and task.gang is None:
                mode, solution = self._mode(view)
            if task.gang is not None or mode == "one by one":
                yield self._cheapest(view, task)
            elif mode == "wait":
                if self._round is not None:  # it may have come since that was asked
                    self._due = min(self._due, view.now + self.solve_timeout)
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

    def _may_preempt(self, view: View, task: Task) -> bool:
        """Whether pods that may be ended are looked at for a task without room."""
        return self._preempts(view) and task.preempts and task.gang is None and not task.copy_of

    def _preempts(self, view: View) -> bool:
        """Whether pods run that it may end; those of other profiles may be known where it ends none."""
        return self.running == "preempt" and bool(view.restartable)

    def _mode(self, view: View) -> tuple[str, Solution | None]:
        """What is to be done with pods now, and the solution if that is to commit it."""
        if self._round is None:
            if view.now < self._next_at:
                return "wait", None
            return ("ask" if view.now + SOON < self._due else self._alone()), None
        solution = view.solution(self)
        if solution is None and view.now < self._round.until:
            return "wait", None
        self._answer = "failed" if solution is None else solution.status
        if solution is None or solution.status != "optimal":
            return self._alone(), None
        return "commit", solution

    def _alone(self) -> str:
        """Pods are placed without a solver."""
        self._round, self._retries, self._due = None, 0, inf
        return "one by one"

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
        return last.explained(at, self._flows, self._answer, now)

    # -- asking ------------------------------------------------------------------------------------

    def _ask(self, view: View, taken: Sequence[Task]) -> Iterator[Action]:
        """Begin a round. Tasks without any place are in none, and are soon looked at again.

        None of these is unschedulable: a pod of their class may come for which others may be ended.
        """
        until, self._next_at, self._due = self._due, view.now + self.interval, inf
        running = RunningPods(view, taken, self._hysteresis) if self._preempts(view) else None
        if running is not None:
            again = Wait(NO_PLACE, max(min(running.next_at, view.now + AGAIN), view.now + SOON))
            yield from (Defer(task, again) for task in taken if not running.has_place(view.task_class(task)))
            taken = [task for task in taken if running.has_place(view.task_class(task))]
        if not taken:
            return
        self._round = self._last = self._begun(view, taken, running, until)
        self._answer, self._flows = "awaited", {}
        yield Ask(self._round.network.problem, self._round.until - view.now)
        yield from (Defer(task, Wait(ASKED, self._round.until)) for task in taken)

    def _begun(self, view: View, taken: Sequence[Task], running: RunningPods | None, until: float) -> Round:
        """`until`: when it is given up at the latest, seconds."""
        draft = Draft(view, self._model, taken, self._data, running)
        return draft.round(self._bounds(view, draft), min(view.now + self.solve_timeout, until))

    def _bounds(self, view: View, draft: Draft) -> list[Job]:
        """How many tasks each job starts, or keeps of those that may be ended, at least and at most."""
        waiting, ends = draft.pods_of_jobs()
        if not self.fair_share:
            return [Job()] * len(waiting)
        shares = view.shares(self)
        # Those that were ended hold their places until they have gone, but these are given to others already.
        leave = Counter(job_of(each) for uid in view.evicted if (each := view.placed.task(uid)) is not None)
        held = {job: shares.held(job).get(PODS, 0) - leave[job] for job in waiting}
        stays = [held[job] - ends[job] for job in waiting]
        demands = [float(held[job] + pods) for job, pods in waiting.items()]
        none, equal = [0.0] * len(demands), [1.0] * len(demands)
        fair = level_shares(float(int(draft.slots.sum()) + sum(stays)), demands, none, equal)
        return [
            Job(max(floor(share) - kept, 0), max(ceil(share) - kept, 0))
            for share, kept in zip(fair, stays, strict=True)
        ]

    # -- answers -----------------------------------------------------------------------------------

    def _commit(self, view: View, taken: Sequence[Task], solution: Solution) -> Iterator[Action]:
        """Bind what was answered as far as it still holds; all others wait for the next round."""
        begun, self._round = self._round, None
        if begun is None:
            return
        to_of, ends = self._read(view, begun, solution)
        misfits, left, ending = list[Task](), list[Task](), Wait(ENDING, view.now + AGAIN)
        for task in taken:
            to = to_of.get(begun.group_of.get(task.uid, -1))
            if not to:
                left.append(task)
                continue
            node = to.popleft()
            row = view.cluster.rows.get(begun.nodes[node], GONE)
            action: Bind | Preempt | None = None
            if row != GONE and view.task_class(task).scalars.fits_now[row]:
                action = Bind(task, row)
            elif row != GONE and node >= begun.first_place:
                action = ends.make_room(task, row, ending)
            if action is not None:
                yield action
            else:
                (left if ends.are_enough else misfits).append(task)
        yield from self._try_again(view, misfits, begun.until)
        waits = dict[int, Wait]()  # by group
        for task in left:
            at = begun.group_of.get(task.uid)
            if at is not None and at not in waits:
                waits[at] = self._stays(view, begun, at)
            yield Defer(task, self._next_wait(view) if at is None else waits[at])

    def _read(self, view: View, begun: Round, solution: Solution) -> tuple[Mapping[int, deque[int]], Ends]:
        """Where pods of each group were sent, by position, and which pods the answer ends."""
        to_of, staying = defaultdict[int, deque[int]](deque), Counter[int]()
        groups = len(begun.groups)
        for source, node, pods in begun.network.placed(solution.routes):
            self._flows[source, node] = self._flows.get((source, node), 0) + pods
            if source < groups:
                to_of[source].extend([node] * pods)
            else:
                staying[source - groups] += pods
        return to_of, Ends(view, begun.tasks, staying)

    def _try_again(self, view: View, misfits: Sequence[Task], until: float) -> Iterator[Action]:
        """Pods that did not fit together are in the next round, which is due; after several one by one.

        `until`: when their first round would have been given up.
        """
        self._retries = self._retries + 1 if misfits else 0
        if self._retries > RETRIES:
            self._retries = 0
            yield from (self._cheapest(view, task) for task in misfits)
        elif misfits:
            self._next_at, self._due = view.now, min(self._due, until)
            yield from (Defer(task, self._next_wait(view)) for task in misfits)

    def _next_wait(self, view: View) -> Wait:
        return Wait(NEXT, max(self._next_at, view.now + SOON))

    def _stays(self, view: View, begun: Round, group: int) -> Wait:
        """Why a pod of the round stays without a node."""
        staying, cheapest = begun.groups[group].waits_at, int(begun.costs(group).min())
        stays = (
            "waits for a node nearer to its data"
            if begun.nearness[group].rows
            else "stays without a node for now"
        )
        message = f"{stays}: that costs {staying}, and the cheapest node {cheapest} or more"
        return Wait(Reason(message), view.now + max(self.interval, AGAIN))

    def _cheapest(self, view: View, task: Task) -> Action:
        """The node with room of least cost; of equal ones the lowest row."""
        task_class = view.task_class(task)
        rows = task_class.fits_now_rows
        if not len(rows):
            return (
                Defer(task, self._next_wait(view)) if self._may_preempt(view, task) else Unschedulable(task)
            )
        costs = self._model.costs(view, task_class, rows) + self._model.crowding(view, rows)[0]
        if self._data is not None and task.inputs:
            costs = costs + self._data.costs(task.inputs, rows)
        return Bind(task, int(rows[costs.argmin()]))
