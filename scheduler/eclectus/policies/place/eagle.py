"""Eagle: short jobs avoid nodes with long tasks, and reservations stay until their job is done.

Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick to Your Probes", SoCC
2016. Long tasks are placed centrally, as in Hawk. A short job of m tasks sends probes (here: reservations)
to max(20, 2 m) nodes. A node that runs or queues long tasks rejects the probe and answers with a bit vector
of all nodes that do (succinct state sharing). Rejected probes are sent again to other nodes; what is
rejected again goes to nodes that never get long tasks. A reservation stays at its node until its job has no
task left to start (sticky batch probing). Use it with `line: {policy: srpt}`.

A short task never waits behind a long one, with one exception: a short job whose constraints exclude all
nodes of the short partition, while all others have long tasks.

Soft constraints, preferred node affinity here, are Phoenix's part (Thinakaran and others, "Phoenix: A
Constraint-aware Scheduler for Heterogeneous Datacenters", ICDCS 2017), built on Eagle, with `preferences:
negotiated`. A job keeps to the nodes that it prefers while these have a slot for all that want one (a CRV of
at most 1). Else it gives preferences up, lightest first, where it is expected to end sooner without; never a
constraint. The wait at a node counts what its reservations are expected to bring.

Departures:
- a task is long by its own estimate, and short without one; in the paper a job is, by the mean of its tasks;
- the engine keeps the node queues, and messages take no time, so the bit vector is never outdated (IdealEagle
  in the paper) and the second round is never rejected. Nodes without long tasks are therefore used up first,
  and the short partition only if there is none;
- the paper has no constraints. Here all probes of a job go to nodes that may run it; if these are no more
  than its probes, each gets one, which is enough since reservations stay.

Departures in negotiation, of which the published part has no rule or formula:
- a wait is that of the work ahead on many nodes, not of an M/G/1 queue at each, which has none at full load;
- what a preference gains is learned (`learn`), where the paper has a table of slowdowns, which measure having
  a constraint and not giving it up. Where no gain is known, a job goes where it is expected to start first;
- a job decides once, when it arrives, and its probes count in the estimates of the next. So there is no
  hysteresis, and jobs of one class do not change their nodes all at once;
- a long task decides for itself, by the waits that the central part estimates, from long tasks alone;
- preferences about other pods and taints have no effect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal

import numpy as np
from typing_extensions import override

from eclectus.framework import Action, Floats, ReserveMany, Rows, Task, TaskClass, View, setting
from eclectus.maths.backlog_wait import Filling
from eclectus.maths.scarcity import Integers
from eclectus.policies.shared import Backlog, Hybrid, Tasks, expected_seconds, mean_seconds

SETS_MOST = 16  # of nodes between which a job chooses: all subsets of four preferences


@dataclass(eq=False)
class Eagle(Hybrid):
    """Long tasks centrally; short jobs by sticky reservations on nodes without long tasks."""

    least_probes: int = setting(20, "least number of reservations of a short job", "as in the paper", least=1)

    preferences: Literal["ignored", "kept", "negotiated"] = setting(
        "ignored",
        "what preferred node affinity is: of no effect; as good as required; or given up by jobs that are "
        "expected to end sooner without",
        why="Eagle has no soft constraints, and Phoenix negotiates them; kept is what to compare with",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._work = Backlog()

    @override
    def place_job(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        """As in Hawk; with soft constraints on the nodes that the job prefers, as far as it pays."""
        weights = None if self.preferences == "ignored" else task_class.preferred_weights
        if weights is None:
            yield from super().place_job(view, tasks, task_class, rows)
            return
        sets = _by_weight(rows, weights.refresh()[rows])
        is_open = self.preferences == "negotiated" and len(sets) > 1
        parts = [(task,) for task in tasks] if self.is_long(tasks[0]) else [tasks]
        for part in parts:
            chosen = self._negotiated(view, part, task_class, sets) if is_open else sets[0]
            yield from super().place_job(view, part, view.task_class(part[0]), chosen)

    def _negotiated(self, view: View, tasks: Tasks, task_class: TaskClass, sets: Sequence[Rows]) -> Rows:
        """The set of nodes on which the job is expected to end first; of equal ones the most preferred."""
        self.long.refresh(view)
        is_long = self.is_long(tasks[0])
        used = [
            self.rows_for_long(view, each) if is_long else self._without_long(view, each) for each in sets
        ]
        queued, waits = self._ahead(view, task_class, sets[-1], is_long)
        # While preferred nodes have a slot for all that want one, demand over supply is at most 1.
        if queued[used[0]].sum() + len(tasks) <= _free_slots(task_class, used[0]):
            return sets[0]
        ends = []
        for rows in used:
            probed = waits[rows], task_class.service_slots[rows]
            if not is_long:
                probed = _probed(*probed, self._probes(len(tasks)))
            ends.append(
                _end_seconds(*probed, len(tasks), _run_seconds(view, tasks[0], task_class, rows, sets[-1]))
            )
        return sets[ends.index(min(ends))]

    def _ahead(self, view: View, task_class: TaskClass, rows: Rows, is_long: bool) -> tuple[Floats, Floats]:
        """What is ahead of a job at each of the rows: tasks of reservations, and the wait in seconds.

        Both of shape [capacity]. For long tasks only long ones count, as where they are placed.
        """
        queued, waits = np.zeros((2, view.cluster.capacity))
        if is_long:
            waits[rows] = self.long.wait(view, task_class, rows)
            return queued, waits
        self._work.refresh(view)
        queued[rows], seconds = self._work.reserved(view, rows)
        waits[rows] = self._work.wait(view, task_class, rows) + seconds / task_class.service_slots[rows]
        return queued, waits

    def reserve(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """Sticky reservations on nodes without long tasks, as far as there are such nodes."""
        self.long.refresh(view)
        return ReserveMany(tuple(tasks), self._draw(view, rows, len(tasks)), sticky=True)

    def _draw(self, view: View, rows: Rows, count: int) -> tuple[int, ...]:
        """Nodes for the reservations of a job of `count` tasks that may run on `rows`."""
        # 1. Probes go to random nodes; where there are no more nodes than probes, to each of them once.
        probes = min(self._probes(count), len(rows))
        drawn = np.array(self.draw(view, rows, probes))
        rejected = self.long.any_at(drawn)
        if not rejected.any():
            return tuple(drawn.tolist())
        # 2. Rejected probes go to nodes without long tasks, unless each of these has a probe already.
        accepted = tuple(drawn[~rejected].tolist())
        others = self._without_long(view, rows)
        if probes == len(rows) and not self.long.any_at(others).any():
            return accepted
        # 3. If there is no such node, they go to nodes that never get long tasks.
        return (*accepted, *self.draw(view, others, min(int(rejected.sum()), len(others))))

    def _probes(self, tasks: int) -> int:
        """How many reservations a job of so many tasks has where there are nodes enough."""
        return max(self.least_probes, ceil(self.ratio * tasks))

    def _without_long(self, view: View, rows: Rows) -> Rows:
        """Those of the rows that accept probes: without long tasks, else for short ones alone, else all."""
        free = rows[~self.long.any_at(rows)]
        others = free if len(free) else self.rows_for_short_alone(view, rows)
        return others if len(others) else rows


# When a job would end in a set of nodes: W + S of Phoenix, W being the wait of its middle task and S the run
# time there.


def _by_weight(rows: Rows, weights: Integers) -> list[Rows]:
    """The rows that meet preferences of some weight or more, for the heaviest weights and last for the least.

    `weights`: of the preferences that each of the rows meets.
    """
    levels = np.unique(weights)[::-1]
    levels = np.append(levels[: SETS_MOST - 1], levels[SETS_MOST - 1 :][-1:])
    return [rows[weights >= level] for level in levels]


def _free_slots(task_class: TaskClass, rows: Rows) -> float:
    """Tasks of the class that fit now on the rows."""
    fit = rows[task_class.fits_now[rows]]
    return float(np.floor(1.0 - task_class.overflow[fit]).sum())


def _run_seconds(view: View, task: Task, task_class: TaskClass, rows: Rows, every: Rows) -> float:
    """The run time on the rows: the estimate, times how long the class takes there over that on all."""
    rate = view.speeds(task_class).rate
    there, usual = (mean_seconds(task_class, rate, each) for each in (rows, every))
    if task.estimate is None or there == inf:
        return there
    return expected_seconds(view, task, int(rows[0])) * there / usual


def _probed(waits: Floats, slots: Floats, probes: int) -> tuple[Floats, Floats]:
    """Waits and slots of nodes that get a probe: in the order of waits every so many-th, as in the mean."""
    if probes >= len(waits):
        return waits, slots
    order = np.argsort(waits, kind="stable")
    drawn = order[((np.arange(probes) + 0.5) * len(order) / probes).astype(np.intp)]
    return waits[drawn], slots[drawn]


def _end_seconds(waits: Floats, slots: Floats, tasks: int, run_seconds: float) -> float:
    """When the middle task of a job ends, seconds from now: whichever node is free first starts the next.

    inf where no node ever is.
    """
    ends = np.isfinite(waits)
    if run_seconds == inf or not ends.any():
        return inf
    return Filling(waits[ends], slots[ends]).seconds(run_seconds * (tasks - 1) / 2.0) + run_seconds
